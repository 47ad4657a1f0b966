"""Groups of images: is the network less accurate for some of them, and do they look different from inside?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weakspot.classes import finding_outputs as declared
from weakspot.classes.membership import Members, class_members, class_sizes, rankable_classes
from weakspot.classes.metrics_activation import activation_probability
from weakspot.classes.metrics_bias import Near
from weakspot.classes.metrics_distance import activation_distance
from weakspot.classes.metrics_groups import AccuracyGaps, GroupAccuracy, accuracy_gaps, group_accuracy, group_bias
from weakspot.classes.prediction_store import StoredPredictions, neural_path, stored_columns
from weakspot.core.class_names import named_classes
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.layers import Side
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.taps import Tap
from weakspot.data.text_rows import decoded, encoded
from weakspot.estimates import interval_estimate
from weakspot.statistics import Interval, value_groups


class GroupFairness(Probe):
    """Differences in accuracy between groups of images, with how differently the network treats them from inside.

    From outside: accuracy per group and the difference of every two, with intervals that hold together. From inside,
    after DeepInspect (Tian et al. 2020): the distance between what two groups activate, and the average bias over the
    predicted classes c, |Δ(c, a) − Δ(c, b)|/(Δ(c, a) + Δ(c, b)), which says beside which class the groups part. With
    several labels per image, an image is predicted correctly if all its labels are.

    groups: the column of the metadata that names each image's group; by default the images' true class. Numbers of more
        than ten values are cut into four groups at their quartiles.
    threshold: above which a neuron counts as active.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: where to look at a layer: its "output", before normalisation and activation, its "input", or "activated".
    near: how near a class must be to either group to count: "pairs", "matrix", a distance, or none, as in `ClassPairs`.
    least_images: below which a group or class is left out.
    confidence: with which all the intervals hold together.
    """

    outputs = declared.GROUP_FAIRNESS
    by_group = ("largest_difference", "worst_accuracy", "low", "high")

    tasks = ("classification", "multilabel")

    groups: str | None = None
    threshold: float = 0.5
    layers: str | tuple[str, ...] = "all"
    side: Side = "output"
    near: Near = "pairs"
    least_images: int = 10
    confidence: float = 0.95

    images = Rows()

    @property
    def tap(self) -> Tap:
        """Where the neurons are."""
        return Tap(self.layers, side=self.side, scaled=True)

    def observe(self, seen: Observation) -> None:
        """Keep each image's neural path, its prediction and its group."""
        columns: dict[str, Any] = {
            "bits": neural_path(seen, self.tap, self.threshold),
            **stored_columns(seen, labelled=True),
        }
        if self.groups is not None:
            column = np.asarray(metadata_column(seen, self.groups))
            columns["group"] = column.astype(np.float64) if column.dtype.kind in "iuf" else encoded(column)
        self.images.append(seen.ids, **columns)

    def finish(self) -> Finding:
        """Every two groups: their accuracies, and what parts them inside."""
        rows = self.images.read()
        stored = StoredPredictions(rows, self.setting, neurons=self.setting.layout(self.tap).neurons)
        names, number = group_numbers(rows["group"] if self.groups else rows["target"], stored.names)
        sizes = np.bincount(number, minlength=len(names))
        kept = rankable_classes(sizes, minimum=self.least_images)
        left_out = ", ".join(names[group] for group in np.setdiff1d(np.arange(len(names)), kept).tolist())
        counts = {
            "groups": Estimate(len(kept), about="groups with enough images"),
            "too_few_images": Estimate(len(names) - len(kept), about=left_out or "groups left out"),
        }
        if len(kept) < 2:
            return self.finding(summary=counts)
        inside = np.isin(number, kept)
        belongs = self.setting.groups_of(rows.ids)
        belongs = None if belongs is None else belongs[inside]
        accuracy = group_accuracy(rows["correct"][inside], np.array(names)[number[inside]], belongs)
        gaps = accuracy_gaps(accuracy, confidence=self.confidence)
        members = class_members(number, len(names))[:, kept]
        return self.finding(
            summary={**_summary(accuracy, gaps, self.confidence), **counts},
            table={**gap_columns(accuracy, gaps), **self._inner(stored, members, gaps.pairs)},
        )

    def _inner(self, stored: StoredPredictions, members: Members, pairs: np.ndarray) -> dict[str, np.ndarray]:
        """The same pairs of groups from inside: their distance, average bias and the class that parts them most."""
        images = stored.images
        classes = rankable_classes(class_sizes(images.predicted), minimum=self.least_images)
        probability = [
            activation_probability(images.bits, group, neurons=images.neurons)
            for group in (members, images.predicted[:, classes])
        ]
        distance = activation_distance(np.concatenate(probability))
        bias, worst = group_bias(distance, pairs, members.shape[1], near=self.near)
        beside = np.array([*stored.named(classes.tolist()), ""])
        return {"distance": distance[pairs[:, 0], pairs[:, 1]], "average_bias": bias, "worst_beside": beside[worst]}


def metadata_column(seen: Observation, name: str) -> np.ndarray:
    """A column of the metadata, refused by name where there is none."""
    if name not in seen.metadata:
        columns = ", ".join(map(repr, seen.metadata)) or "none at all"
        raise ConfigError(f"the metadata have no column {name!r}; there is {columns}: name one of them as groups")
    return seen.metadata[name]


def group_numbers(column: np.ndarray, classes: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Names of the groups and the number of each image's, from encoded names, numbers or true classes.

    Several true classes make a group of their own, named after all of them.
    """
    if column.dtype == np.float64:
        return value_groups(column)
    return value_groups(decoded(column) if column.dtype == np.uint8 else named_classes(column, classes, empty="none"))


def gap_columns(accuracy: GroupAccuracy, gaps: AccuracyGaps) -> dict[str, np.ndarray]:
    """One row per pair of groups, the largest difference first."""
    better, worse = gaps.pairs.T
    names = np.array(accuracy.groups)
    return {
        "better": names[better],
        "worse": names[worse],
        "accuracy_better": accuracy.accuracy[better],
        "accuracy_worse": accuracy.accuracy[worse],
        "difference": gaps.difference,
        "low": gaps.low,
        "high": gaps.high,
        "sure": gaps.sure,
        "images_better": accuracy.images[better],
        "images_worse": accuracy.images[worse],
    }


def _summary(accuracy: GroupAccuracy, gaps: AccuracyGaps, confidence: float) -> dict[str, Estimate]:
    worst = int(np.argmin(accuracy.accuracy))
    best_of_pair, worst_of_pair = (accuracy.groups[number] for number in gaps.pairs[0])
    return {
        "largest_difference": interval_estimate(
            gaps.difference[0],
            Interval(gaps.low[0], gaps.high[0]),
            f"in accuracy, {best_of_pair} over {worst_of_pair}",
            confidence=confidence,
        ),
        "sure_differences": Estimate(int(gaps.sure.sum()), about=f"of {gaps.sure.size} pairs of groups"),
        "worst_accuracy": interval_estimate(
            accuracy.accuracy[worst],
            Interval(*(ends[worst] for ends in accuracy.interval(confidence=confidence))),
            f"of group {accuracy.groups[worst]}",
            confidence=confidence,
        ),
    }
