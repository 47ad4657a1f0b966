"""Why inputs are weak: where they lie among the classes, which classes and which variations it is, what was said.

What Zhong et al. 2021 find of weak inputs (their first research question), asked of any model.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding, Picture
from weakspot.core.look import Look, Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.state import Sum
from weakspot.core.step import Step
from weakspot.core.taps import Layers, Tap
from weakspot.core.tasks import Task
from weakspot.data.thumbnails import thumbnails
from weakspot.looks import Neighbour, Rotate, Shift, Variation
from weakspot.robustness.answers import Answered, answer_columns, answer_numbers, named
from weakspot.robustness.gathering import InOrder, features_of
from weakspot.robustness.neighbours import NeighbourAccuracy
from weakspot.robustness.pictures import map_picture, strip_picture
from weakspot.robustness.study import apart, centre_distance_ratio, diversity_correlation, principal_map, spans
from weakspot.statistics.intervals import correlation_interval, wilson_interval


class WeakPlaces(Probe):
    """Where weak inputs lie among the classes, and how the diversity of answers goes with neighbour accuracy.

    The distance to the centre of the own class over that to the nearest other, compared between weak and strong inputs
    (Mann–Whitney, Cohen's d); Spearman's ρ of diversity and accuracy, for different numbers of neighbours; a map of the
    features by principal components (Zhong et al. 2021).

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    cutoff: an input is weak if its neighbour accuracy is at most this.
    layers: whose values the features are.
    thumbnail: size of the images on the map in pixels; 0 for no map.
    seed: of the draws.
    """

    tasks = ("classification",)

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    cutoff: float = 0.75
    layers: Layers = "penultimate"
    thumbnail: int = 32
    seed: int = 0

    places = Rows()

    @property
    def tap(self) -> Tap:
        """Where the features are."""
        return Tap(self.layers)

    @property
    def needs(self) -> Needs:
        """The original with its features, and m neighbours."""
        looks: dict[Look, int] = {Original(): 1, Neighbour(self.variation, self.seed): self.looks}
        return Needs(looks=looks, taps=(self.tap,))

    def observe(self, seen: Observation) -> None:
        """Keep the answers, and of the original its features."""
        if seen.number == 0:
            self._seen = Answered(seen.ids, self.looks + 1)
            self._known = {"features": features_of(seen, self.tap), "target": seen.targets.cpu().numpy()}
            if self.thumbnail and seen.inputs.ndim == 4:
                self._known["thumbnail"] = thumbnails(seen.inputs, self.thumbnail)
        self._seen.add(seen.ids, answer_numbers(seen), seen.right_answers)

    def close(self, ids: Sequence[str]) -> None:
        """Keep the batch."""
        answers = self._seen.answers.astype(np.int32)
        self.places.append(ids, answers=answers, right=self._seen.right.sum(1), **self._known)

    def finish(self) -> Finding:
        """The inputs with their places, the weakest first."""
        rows = self.places.read()
        names = np.array(rows.ids)
        by_id = np.argsort(names)  # sums must not depend on the order of the data
        ids, features = names[by_id], InOrder(rows["features"], by_id)
        kept = {name: np.asarray(rows[name])[by_id] for name in ("answers", "right", "target")}
        accuracy = kept["right"] / (self.looks + 1)
        weak = accuracy <= self.cutoff
        ratio = centre_distance_ratio(features, kept["target"])
        place = principal_map(features)
        counts = [m for m in (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50) if m < self.looks] + [self.looks]
        flawed = accuracy < 1  # as the paper's table: inputs that are always answered rightly would flatter it
        enough = int(flawed.sum()) > 2
        by_queries = diversity_correlation(kept["answers"][flawed], accuracy[flawed], counts) if enough else None
        order = np.lexsort((ids, accuracy))
        table = {"id": ids, "weak": weak, "accuracy": accuracy, "distance_ratio": ratio, "x": place[:, 0]}
        table |= {"y": place[:, 1], **answer_columns(kept["target"], kept["answers"][:, 0], self.setting)}
        shown = {}
        if "thumbnail" in rows:
            shown["map"] = map_picture(place, accuracy, InOrder(rows["thumbnail"], by_id))
        curve = {} if by_queries is None else {"queries": np.array(counts), "correlation": by_queries}
        return self.finding(
            summary={
                **_apart_estimates(ratio, weak),
                **_correlation(by_queries, int(flawed.sum())),
                "inputs": Estimate(len(ids), about="samples examined"),
            },
            table={name: values[order] for name, values in table.items()},
            arrays=curve,
            media=shown,
        )


def _apart_estimates(ratio: np.ndarray, weak: np.ndarray) -> dict[str, Estimate]:
    found = apart(ratio, weak)
    about = "distance to the centre of the own class over that to the nearest other"
    if found is None:
        return {"distance_effect": Estimate(None, about=f"{about}: too few weak or strong inputs to compare")}
    return {
        "distance_weak": Estimate(found.weak, about=f"{about}, mean of the weak inputs"),
        "distance_strong": Estimate(found.strong, about="the same, mean of the strong inputs"),
        "distance_effect": Estimate(found.effect, about="Cohen's d between the two; 0.8 is large"),
        "distance_p_value": Estimate(found.p_value, about="Mann–Whitney test of the two"),
    }


def _correlation(by_queries: np.ndarray | None, inputs: int) -> dict[str, Estimate]:
    about = "Spearman's ρ of diversity and accuracy over the inputs that are not always answered rightly"
    if by_queries is None or np.isnan(by_queries[-1]):
        return {"diversity_correlation": Estimate(None, about=f"{about}: too few")}
    value = float(by_queries[-1])
    low, high = correlation_interval(value, inputs)
    return {"diversity_correlation": Estimate(value, float(low), float(high), 0.95, about)}


class ClassRobustness(Probe):
    """Neighbour accuracy class by class: its quartiles, and the share of weak inputs (Zhong et al. 2021, appendix A).

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    cutoff: an input is weak if its neighbour accuracy is at most this.
    seed: of the draws.
    """

    tasks = ("classification",)

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    cutoff: float = 0.75
    seed: int = 0

    counts = Sum()
    """Inputs per class and number of right answers."""

    @property
    def needs(self) -> Needs:
        """The original and m neighbours."""
        return Needs(looks={Original(): 1, Neighbour(self.variation, self.seed): self.looks})

    def observe(self, seen: Observation) -> None:
        """Count the right answers."""
        if seen.number == 0:
            self._right = np.zeros(len(seen.ids), dtype=np.int64)
            self._target = seen.targets.cpu().numpy()
            self._classes = seen.outputs.shape[1]
        self._right += seen.right_answers

    def close(self, ids: Sequence[str]) -> None:
        """Fold the batch into the counts."""
        batch = np.zeros((self._classes, self.looks + 2), dtype=np.int64)
        np.add.at(batch, (self._target, self._right), 1)
        self.counts = self.counts + self.counts.new_tensor(batch)

    def finish(self) -> Finding:
        """One row per class, the weakest first."""
        counts = self.counts.numpy()[:, : self.looks + 2]
        present = np.flatnonzero(counts.sum(1))
        counts, shares = counts[present], np.arange(self.looks + 2) / (self.looks + 1)
        inputs, weak = counts.sum(1), (counts * (shares <= self.cutoff)).sum(1)
        low, high = wilson_interval(weak, inputs)
        quartiles = np.stack([quantiles_of_counts(row, shares) for row in counts])
        order = np.lexsort((present, -weak / inputs))
        table = {
            "class": named(present, self.setting.classes),
            "weak_share": weak / inputs,
            "weak_low": low,
            "weak_high": high,
            "accuracy": (counts * shares).sum(1) / inputs,
            **{f"quartile_{i + 1}": quartiles[:, i] for i in range(3)},
            "inputs": inputs,
        }
        worst, best = order[0], order[-1]
        return self.finding(
            summary={
                "weakest_class": Estimate(str(table["class"][worst]), about="the class with most weak inputs"),
                "weakest_share": _share_of(table, worst, "share of its inputs that are weak"),
                "strongest_share": _share_of(table, best, "the same of the class with fewest"),
                "classes": Estimate(len(present), about="classes compared"),
                "inputs": Estimate(int(inputs.sum()), about="samples examined"),
            },
            table={name: values[order] for name, values in table.items()},
            arrays={"counts": counts[order]},
        )


def quantiles_of_counts(counts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The quartiles of values that occur so often.

    >>> quantiles_of_counts(np.array([1, 2, 1]), np.array([0.0, 0.5, 1.0])).tolist()
    [0.0, 0.5, 0.5]
    """
    reached = np.cumsum(counts) / counts.sum()
    return np.asarray(values[[int(np.argmax(reached >= q - 1e-12)) for q in (0.25, 0.5, 0.75)]])


def _share_of(table: Mapping[str, np.ndarray], row: int, about: str) -> Estimate:
    value, low, high = (float(table[name][row]) for name in ("weak_share", "weak_low", "weak_high"))
    return Estimate(value, low, high, 0.95, about)


class VariationEffects(Probe):
    """Which variation hurts most: accuracy over the range of every quantity that is drawn, the others at random.

    The marginal effect of a quantity is what accuracy loses between its best and its worst bin.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    bins: into how many the range of each quantity is cut.
    seed: of the draws.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "multilabel")

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    bins: int = 8
    seed: int = 0

    looked = Sum()
    """Looks per quantity and bin."""
    right = Sum()
    """Right answers among them."""

    def __post_init__(self) -> None:
        if self.looks < 1 or self.bins < 2:
            raise ConfigError(f"expected looks ≥ 1 and bins ≥ 2, got {self.looks} and {self.bins}")

    @property
    def _look(self) -> Neighbour:
        return Neighbour(self.variation, self.seed)

    @property
    def needs(self) -> Needs:
        """The neighbours."""
        return Needs(looks={self._look: self.looks})

    @cached_property
    def _quantities(self) -> dict[tuple[str, str], tuple[int, np.ndarray]]:
        """The row of each quantity, by name and unit, with the borders of its bins."""
        found: dict[tuple[str, str], np.ndarray] = {}
        for number in self._look.numbers(self.looks):
            for span in spans(self._look.at(number)):
                found.setdefault((span.name, span.unit), span.edges(self.bins))
        return {key: (row, edges) for row, (key, edges) in enumerate(found.items())}

    def observe(self, seen: Observation) -> None:
        """Count looks and right answers by the bin of every quantity."""
        looked, right = np.zeros((2, len(self._quantities), self.bins), dtype=np.int64)
        parameters, answered = self._look.drawn(seen.ids, seen.number).numpy(), seen.right_answers
        for span in spans(self._look.at(seen.number)):
            row, place = self._quantities[span.name, span.unit][0], span.bins(parameters, self.bins)
            looked[row] += np.bincount(place, minlength=self.bins)
            right[row] += np.bincount(place[answered], minlength=self.bins)
        self.looked = self.looked + self.looked.new_tensor(looked)
        self.right = self.right + self.right.new_tensor(right)

    def finish(self) -> Finding:
        """One row per quantity and bin; the quantities by what they cost."""
        looked, right = self.looked.numpy(), self.right.numpy()
        accuracy = right / np.maximum(looked, 1)
        low, high = wilson_interval(right, looked)
        seen = np.where(looked > 0, accuracy, np.nan)
        effect = np.nanmax(seen, axis=1) - np.nanmin(seen, axis=1)
        keys = list(self._quantities)
        order = np.lexsort((np.arange(len(keys)), -effect))
        edges = np.stack([self._quantities[keys[row]][1] for row in order])
        table = {
            "quantity": np.repeat([keys[row][0] for row in order], self.bins),
            "unit": np.repeat([keys[row][1] for row in order], self.bins),
            "from": edges[:, :-1].ravel(),
            "to": edges[:, 1:].ravel(),
            "accuracy": accuracy[order].ravel(),
            "low": low[order].ravel(),
            "high": high[order].ravel(),
            "looks": looked[order].ravel(),
        }
        told = {
            f"effect_{i + 1}": Estimate(float(effect[row]), about=f"{keys[row][0]}: accuracy lost, best to worst bin")
            for i, row in enumerate(order[:5])
        }
        return self.finding(
            summary={"hurts_most": Estimate(keys[order[0]][0], about="the quantity with the largest effect"), **told},
            table=table,
        )


class WeakStrips(Probe):
    """The weakest inputs that are right as they are, each beside its neighbours, with what the model said of them.

    Which inputs these are comes from `NeighbourAccuracy` (Zhong et al. 2021); their neighbours are made again from the
    seed, the id and the number of the look.

    inputs: how many inputs to show.
    shown: how many neighbours of each.
    size: of each picture in pixels, at least.
    variation: how neighbours may differ from the input.
    looks: m, how many neighbours tell how weak an input is.
    cutoff: an input is weak if its neighbour accuracy is at most this.
    seed: of the draws.
    accuracy: the Finding of `NeighbourAccuracy`.
    """

    tasks = ("classification",)

    inputs: int = 6
    shown: int = 9
    size: int = 64
    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    cutoff: float = 0.75
    seed: int = 0
    accuracy: Finding

    pictures = Rows()

    def __post_init__(self) -> None:
        if not 1 <= self.shown <= self.looks:
            raise ConfigError(f"expected 1 ≤ shown ≤ looks, got {self.shown} and {self.looks}")

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The neighbour accuracy of the same data."""
        shared = {name: options[name] for name in ("variation", "looks", "cutoff", "seed")}
        return {"accuracy": Step.of(NeighbourAccuracy, **shared)}

    @property
    def needs(self) -> Needs:
        """The original and the neighbours to show."""
        return Needs(looks={Original(): 1, Neighbour(self.variation, self.seed): self.shown})

    @cached_property
    def _chosen(self) -> list[str]:
        """The weakest inputs that are answered rightly as they are."""
        table = self.accuracy.table
        if table is None:
            raise ConfigError(f"{self.accuracy.name} has no table of inputs; examine again")
        columns = (table[name].to_pylist() for name in ("id", "weak", "target", "predicted"))
        lucky = [name for name, weak, target, said in zip(*columns, strict=True) if weak and target == said]
        return lucky[: self.inputs]

    def observe(self, seen: Observation) -> list[str]:
        """Keep the pictures of the chosen inputs; everything else is let go at once."""
        chosen = set(self._chosen)
        mine = np.array([name in chosen for name in seen.ids])
        if mine.any():
            ids = [name for name in seen.ids if name in chosen]
            images = seen.inputs[seen.inputs.new_tensor(mine).bool()]
            made = seen.look.images(images, ids, seen.number) if isinstance(seen.look, Neighbour) else images
            shown = thumbnails(made, self.size)
            answers = {"predicted": seen.answers[mine], "right": seen.right_answers[mine]}
            number = np.full(len(ids), seen.number)
            self.pictures.append(ids, number=number, thumbnail=shown, **answers)
        return [name for name, kept in zip(seen.ids, mine, strict=True) if not kept]

    def finish(self) -> Finding:
        """One strip per input, the weakest first."""
        rows = self.pictures.read()
        ids, told = np.array(rows.ids), {name: np.asarray(rows[name]) for name in rows}
        strips: dict[str, Picture] = {}
        columns: dict[str, list[Any]] = {"id": [], "answers": [], "right": []}
        for name in self._chosen:
            own = np.flatnonzero(ids == name)
            own = own[np.argsort(told["number"][own])]
            said = [str(each) for each in named(told["predicted"][own], self.setting.classes)]
            right = told["right"][own]
            caption = f"{name}: said to be {said[0]}; its neighbours {', '.join(said[1:])}"
            strips[name] = strip_picture(list(told["thumbnail"][own]), right.tolist(), caption, size=self.size)
            for column, value in zip(columns, (name, " ".join(said), int(right.sum())), strict=True):
                columns[column].append(value)
        table = {"id": np.array(columns["id"], dtype=np.str_), "answers": np.array(columns["answers"], dtype=np.str_)}
        return self.finding(
            summary={"inputs": Estimate(len(strips), about="weak inputs shown, right as they are")},
            table={**table, "right": np.array(columns["right"], dtype=np.int64)},
            media=strips,
        )
