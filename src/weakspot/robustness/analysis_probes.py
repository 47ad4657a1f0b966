"""Why inputs are weak: where they lie among the classes, which classes it is, and examples.

The first research question of Zhong et al. 2021 (`zhong2021`), for any model.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from weakspot.core.class_names import named_classes
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding, Picture
from weakspot.core.look import Look, Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Rows
from weakspot.core.rows import id_order
from weakspot.core.state import Sum
from weakspot.core.step import Step
from weakspot.core.taps import Layers, Tap
from weakspot.data.thumbnails import thumbnails
from weakspot.looks import Neighbour
from weakspot.robustness.analysis import (
    class_table,
    correlation_by_queries,
    distance_estimates,
)
from weakspot.robustness.detector_data import ReorderedRows, layer_features
from weakspot.robustness.finding_outputs import (
    CLASS_ROBUSTNESS,
    WEAK_PLACES,
    WEAK_STRIPS,
)
from weakspot.robustness.metrics import weak_inputs
from weakspot.robustness.metrics_features import centre_distance_ratio, principal_components
from weakspot.robustness.pictures import map_picture, strip_picture
from weakspot.robustness.predictions import BatchPredictions, named_columns, prediction_codes
from weakspot.robustness.probes import NeighbourAccuracy, NeighbourProbe


class WeakPlaces(NeighbourProbe):
    """Where weak inputs lie in feature space, and how concentration of predictions and neighbour accuracy correlate.

    The distance to the centre of the input's class over that to the nearest other, compared between weak and strong
    inputs (Mann–Whitney, Cohen's d); Spearman's ρ of Simpson's λ and neighbour accuracy, for different numbers of
    neighbours; the features projected onto two principal components (Zhong et al. 2021).

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    threshold: an input is weak if its neighbour accuracy is below this.
    weak_if: "below", or "at_or_below", so that an input exactly at the threshold is weak, too.
    layers: whose values the features are.
    thumbnail: size of the images on the map in pixels; 0 for no map.
    seed: of the random variations.
    """

    tasks = ("classification",)
    outputs = WEAK_PLACES

    layers: Layers = "penultimate"
    thumbnail: int = 32

    records = Rows()

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
        """Keep the predictions, and of the original its features."""
        if seen.number == 0:
            self._batch = BatchPredictions(seen.ids, self.looks + 1)
            self._original: dict[str, Any] = {
                "features": layer_features(seen, self.tap),
                "target": seen.targets.cpu().numpy(),
            }
            if self.thumbnail and seen.inputs.ndim == 4:
                self._original["thumbnail"] = thumbnails(seen.inputs, self.thumbnail)
        self._batch.add(seen.ids, prediction_codes(seen), seen.correct_array)

    def close(self, ids: Sequence[str]) -> None:
        """Write the batch."""
        predictions = self._batch.predictions.astype(np.int32)
        self.records.append(ids, predictions=predictions, correct_looks=self._batch.correct_looks, **self._original)

    def finish(self) -> Finding:
        """The inputs with their coordinates, the weakest first."""
        rows = self.records.read()
        by_id = id_order(rows.ids)  # sums must not depend on the order of the data
        ids, features = np.array(rows.ids)[by_id], ReorderedRows(rows["features"], by_id)
        predictions, target = (np.asarray(rows[name])[by_id] for name in ("predictions", "target"))
        accuracy = np.asarray(rows["correct_looks"])[by_id] / (self.looks + 1)
        weak = weak_inputs(accuracy, self.threshold, self.weak_if)
        ratio, coordinates = centre_distance_ratio(features, target), principal_components(features)
        correlation, curve = correlation_by_queries(predictions, accuracy)
        table = {
            "id": ids,
            "weak": weak,
            "neighbour_accuracy": accuracy,
            "distance_ratio": ratio,
            "x": coordinates[:, 0],
            "y": coordinates[:, 1],
            **named_columns(target, predictions[:, 0], self.setting),
        }
        media = {}
        if "thumbnail" in rows:
            media["map"] = map_picture(coordinates, accuracy, ReorderedRows(rows["thumbnail"], by_id))
        order = np.lexsort((ids, accuracy))
        return self.finding(
            summary={**distance_estimates(ratio, weak), **correlation, "inputs": Estimate(len(ids))},
            table={name: values[order] for name, values in table.items()},
            arrays=curve,
            media=media,
        )


class ClassRobustness(NeighbourProbe):
    """Neighbour accuracy class by class: its quartiles, the share of weak inputs, and the worst case over all looks.

    After Zhong et al. 2021, appendix A.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    threshold: an input is weak if its neighbour accuracy is below this.
    weak_if: "below", or "at_or_below", so that an input exactly at the threshold is weak, too.
    seed: of the random variations.
    """

    tasks = ("classification",)
    outputs = CLASS_ROBUSTNESS

    counts = Sum()
    """Inputs per class and number of correct looks."""

    def observe(self, seen: Observation) -> None:
        """Count the correct looks."""
        if seen.number == 0:
            self._correct_looks = np.zeros(len(seen.ids), dtype=np.int64)
            self._target = seen.targets.cpu().numpy()
            self._classes = seen.outputs.shape[1]
        self._correct_looks += seen.correct_array

    def close(self, ids: Sequence[str]) -> None:
        """Add the batch to the counts."""
        batch = np.zeros((self._classes, self.looks + 2), dtype=np.int64)
        np.add.at(batch, (self._target, self._correct_looks), 1)
        self.counts = self.counts + self.counts.new_tensor(batch)

    def finish(self) -> Finding:
        """One row per class, the weakest first."""
        counts = self.counts.numpy()[:, : self.looks + 2]
        present = np.flatnonzero(counts.sum(1))
        counts = counts[present]
        names = named_classes(present, self.setting.classes, joined="+")
        table = class_table(counts, names, self.threshold, self.weak_if)
        order = np.lexsort((present, -table["weak_share"]))
        weakest, strongest, worst = order[0], order[-1], order[np.argmin(table["worst_case_accuracy"][order])]
        return self.finding(
            summary={
                "weakest_class": Estimate(str(table["class"][weakest])),
                "weakest_share": _share(table, weakest, "weak_share", "weak"),
                "strongest_share": _share(table, strongest, "weak_share", "weak"),
                "worst_case_class": Estimate(str(table["class"][worst])),
                "worst_case_accuracy": _share(table, worst, "worst_case_accuracy", "worst_case"),
                "classes": Estimate(len(present)),
                "inputs": Estimate(int(table["inputs"].sum())),
            },
            table={name: values[order] for name, values in table.items()},
            arrays={"counts": counts[order]},
        )


def _share(table: Mapping[str, np.ndarray], row: int, column: str, ends: str) -> Estimate:
    value, low, high = (float(table[name][row]) for name in (column, f"{ends}_low", f"{ends}_high"))
    return Estimate(value, low, high, 0.95)


class WeakStrips(NeighbourProbe):
    """The weakest inputs that are predicted correctly as they are, each beside its neighbours and their predictions.

    Which inputs these are comes from `NeighbourAccuracy` (Zhong et al. 2021); their neighbours are made again from the
    seed, the id and the number of the look.

    inputs: how many inputs to show.
    shown: how many neighbours of each.
    size: of each picture in pixels, at least.
    variation: how neighbours may differ from the input.
    looks: m, how many neighbours tell how weak an input is.
    threshold: an input is weak if its neighbour accuracy is below this.
    weak_if: "below", or "at_or_below", so that an input exactly at the threshold is weak, too.
    seed: of the random variations.
    accuracy: the Finding of `NeighbourAccuracy`.
    """

    tasks = ("classification",)
    outputs = WEAK_STRIPS

    inputs: int = 6
    shown: int = 9
    size: int = 64
    accuracy: Finding

    pictures = Rows()

    def __post_init__(self) -> None:
        if not 1 <= self.shown <= self.looks:
            raise ConfigError(f"expected 1 ≤ shown ≤ looks, got {self.shown} and {self.looks}")

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The neighbour accuracy of the same data."""
        shared = {name: options[name] for name in ("variation", "looks", "threshold", "weak_if", "seed")}
        return {"accuracy": Step.of(NeighbourAccuracy, **shared)}

    @property
    def needs(self) -> Needs:
        """The original and the neighbours to show."""
        return Needs(looks={Original(): 1, Neighbour(self.variation, self.seed): self.shown})

    @cached_property
    def _chosen(self) -> list[str]:
        """The weakest inputs that are predicted correctly as they are."""
        table = self.accuracy.table
        if table is None:
            raise ConfigError(f"{self.accuracy.name} has no table of inputs; examine again")
        columns = (table[name].to_pylist() for name in ("id", "weak", "correct"))
        fragile = [name for name, weak, correct in zip(*columns, strict=True) if weak and correct]
        return fragile[: self.inputs]

    def wants(self, ids: Sequence[str]) -> list[str]:
        """The chosen inputs alone."""
        chosen = set(self._chosen)
        return [name for name in ids if name in chosen]

    def observe(self, seen: Observation) -> None:
        """Keep the pictures, and what was predicted."""
        varied = (
            seen.look.images(seen.inputs, seen.ids, seen.number) if isinstance(seen.look, Neighbour) else seen.inputs
        )
        self.pictures.append(
            seen.ids,
            number=np.full(len(seen.ids), seen.number),
            thumbnail=thumbnails(varied, self.size),
            prediction=seen.predicted_array,
            correct=seen.correct_array,
        )

    def _measured(self, names: list[str]) -> dict[str, np.ndarray]:
        """Of inputs, the neighbour accuracy and the looks it rests on: more or fewer than those that are shown."""
        table = self.accuracy.table.select(["id", "neighbour_accuracy", "looks_used"])  # type: ignore[union-attr]
        found = {name: values for name, *values in zip(*table.to_pydict().values(), strict=True)}
        accuracy, used = zip(*(found[name] for name in names), strict=True) if names else ((), ())
        return {"neighbour_accuracy": np.array(accuracy, float), "looks_used": np.array(used, np.int64)}

    def finish(self) -> Finding:
        """One strip per input, the weakest first."""
        rows = self.pictures.read()
        ids, columns = np.array(rows.ids), {name: np.asarray(rows[name]) for name in rows}
        media: dict[str, Picture] = {}
        predictions, correct_looks, drawn = [], [], []
        for name in self._chosen:
            looks = np.flatnonzero(ids == name)
            looks = looks[np.argsort(columns["number"][looks])]
            predicted = [
                str(label) for label in named_classes(columns["prediction"][looks], self.setting.classes, joined="+")
            ]
            correct = columns["correct"][looks]
            caption = f"{name}: predicted as {predicted[0]}; its neighbours as {', '.join(predicted[1:])}"
            media[name] = strip_picture(list(columns["thumbnail"][looks]), correct.tolist(), caption, size=self.size)
            predictions.append(" ".join(predicted))
            correct_looks.append(int(correct.sum()))
            drawn.append(len(correct))
        return self.finding(
            summary={"inputs": Estimate(len(media))},
            table={
                "id": np.array(list(media), dtype=np.str_),
                "predictions": np.array(predictions, dtype=np.str_),
                "correct_looks": np.array(correct_looks, dtype=np.int64),
                "looks": np.array(drawn, dtype=np.int64),
                **self._measured(list(media)),
            },
            media=media,
        )
