"""Surprise coverage: do test inputs range from the familiar to the strange? (Kim et al. 2019)

The training traces are rows on disk; an input is as surprising as its trace is unlike those of its predicted class.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weakspot.core.class_names import class_names
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.step import Step
from weakspot.coverage import finding_outputs as declared
from weakspot.coverage.counting import coverage_arrays, coverage_summary
from weakspot.coverage.metrics_surprise import distance_surprise, likelihood_surprise_of, surprise_buckets
from weakspot.coverage.trace_probes import LayerTraces, Traces

_ALIKE = 1e-4
"""How far two traces of one input may lie apart, relative to the larger: batches round differently."""


class SurpriseCoverage(LayerTraces):
    """What likelihood- and distance-based surprise coverage share: buckets of surprise as targets.

    Both explain the options.
    """

    split = "test"

    buckets: int = 1000
    upper: float = 2.0
    lower: float = 0.0
    classes: Sequence[str] = ()
    training: Finding
    baseline: Finding | None = None

    def __post_init__(self) -> None:
        surprise_buckets([], upper=self.upper, buckets=self.buckets, lower=self.lower)  # refuses what cannot be

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The training traces of the same layers."""
        return {"training": Step.of(LayerTraces, layers=options["layers"], side=options["side"])}

    @abstractmethod
    def scores(
        self, training: Traces, test: Traces, leave_out: np.ndarray
    ) -> tuple[np.ndarray, dict[str, Estimate], dict[str, np.ndarray]]:
        """The surprise of each test input, and what the summary and the arrays should say of how it was found."""

    def finish(self) -> Finding:
        """Coverage of the buckets, over all inputs and by class, and the surprise of each input."""
        test, training = Traces.of_rows(self.traces.read()), Traces.of_finding(self.training)
        scores, details, arrays = self.scores(training, test, same_inputs(test, training))
        bucket = surprise_buckets(scores, upper=self.upper, buckets=self.buckets, lower=self.lower)
        counts = np.bincount(bucket[bucket >= 0], minlength=self.buckets)
        predicted = test.classes.get("prediction")
        by_class = {} if predicted is None else self._by_class(bucket, predicted, training.classes["prediction"])
        return self.finding(
            summary={
                **coverage_summary(counts, test.count, baseline=self.baseline),
                **self._spread(scores),
                **details,
                **self._asked_classes(by_class),
            },
            table={
                "id": test.ids,
                **({} if predicted is None else {"prediction": predicted}),
                "surprise": scores,
                "bucket": bucket,
            },
            arrays={**coverage_arrays(counts, test.count), **by_class, **arrays},
        )

    def _spread(self, scores: np.ndarray) -> dict[str, Estimate]:
        middle = float(np.median(scores))
        return {
            "median_surprise": Estimate(middle if np.isfinite(middle) else None, about="half of the inputs have less"),
            "beyond": Estimate(
                int((scores > self.upper).sum()), about=f"inputs above the upper bound of {self.upper:g}"
            ),
            "below": Estimate(int((scores <= self.lower).sum()), about=f"inputs at or below {self.lower:g}"),
        }

    def _by_class(self, bucket: np.ndarray, predicted: np.ndarray, trained: np.ndarray) -> dict[str, np.ndarray]:
        count = 1 + int(max(predicted.max(), trained.max(), len(self.setting.classes or ()) - 1))
        inside = bucket >= 0
        cells = np.bincount(predicted[inside] * self.buckets + bucket[inside], minlength=count * self.buckets)
        counts = cells.reshape(count, self.buckets)
        inputs = np.bincount(predicted, minlength=count)
        return {"class_coverage": (counts > 0).mean(1), "class_inputs": inputs}

    def _asked_classes(self, by_class: Mapping[str, np.ndarray]) -> dict[str, Estimate]:
        if self.classes and not by_class:
            raise ConfigError(
                f"classes were asked for, and a {self.setting.task} subject has none: leave the option out"
            )
        names = class_names(self.setting.classes, len(by_class["class_inputs"])) if by_class else []
        summary = {}
        for name in map(str, self.classes):
            if name not in names:
                raise ConfigError(f"no class is called {name!r}: there are {', '.join(names[:20])}")
            number = names.index(name)
            about = f"by the {by_class['class_inputs'][number]} inputs predicted as {name} alone"
            summary[f"coverage, predicted {name}"] = Estimate(float(by_class["class_coverage"][number]), about=about)
        return summary


def same_inputs(test: Traces, training: Traces) -> np.ndarray:
    """For each test input its place among the training inputs if it is one of them, else −1; both in order of ids.

    The same id is not enough, since both may simply be numbered: the traces must agree too.
    """
    match = np.minimum(np.searchsorted(training.ids, test.ids), training.count - 1)
    named_alike = np.flatnonzero(training.ids[match] == test.ids)
    places = np.full(test.count, -1)
    for block in np.array_split(named_alike, max(1, len(named_alike) // 4096)):
        one, other = test.values[test.order[block]], training.values[training.order[match[block]]]
        near = np.abs(one - other).max(1, initial=0) <= _ALIKE * np.maximum(np.abs(one), np.abs(other)).max(
            1, initial=0
        )
        places[block[near]] = match[block[near]]
    return places


class DistanceSurpriseCoverage(SurpriseCoverage):
    """Share of the buckets of distance-based surprise that test inputs cover (DSC, Kim et al. 2019).

    An input's surprise (DSA) is the distance of its trace to the nearest training trace of the same predicted class,
    over that trace's distance to the nearest one of another class: above 1 it looks more like another class. Exact,
    over all training traces. For classes only: a regression has no other class, see `LikelihoodSurpriseCoverage`.

    layers: the layers whose neurons make the trace, by default the penultimate; several stand side by side.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    buckets: into how many equal parts the range from lower to upper is cut.
    upper: surprise above which an input belongs to no bucket.
    lower: surprise up to which an input belongs to no bucket.
    classes: predicted classes whose inputs' coverage to give besides, by name.
    training: the Finding of `LayerTraces` over the training data.
    baseline: the Finding of the same over training inputs, to be named beside.
    """

    outputs = declared.DISTANCE_SURPRISE_COVERAGE

    tasks = ("classification",)

    def scores(
        self, training: Traces, test: Traces, leave_out: np.ndarray
    ) -> tuple[np.ndarray, dict[str, Estimate], dict[str, np.ndarray]]:
        """DSA of each test input."""
        train, predicted = training.of_class("prediction"), test.of_class("prediction")
        scores = distance_surprise(training.in_order(), train, test.in_order(), predicted, leave_out=leave_out)
        never = int((~np.isin(predicted, train)).sum())
        about = "inputs of classes that no training input is predicted as: their surprise is infinite"
        return scores, {"unknown_class": Estimate(never, about=about)}, {}


class LikelihoodSurpriseCoverage(SurpriseCoverage):
    """Share of the buckets of likelihood-based surprise that test inputs cover (LSC, Kim et al. 2019).

    An input's surprise (LSA) is −log of the density of the training traces of its predicted class at its own trace:
    Gaussian kernels, Scott's bandwidth. A regression has one density for all. Neurons that vary by less than 1e-5 are
    left out; where a class's traces do not vary in some direction, its density is taken in those in which they do.

    layers: the layers whose neurons make the trace, by default the penultimate; several stand side by side.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    buckets: into how many equal parts the range from lower to upper is cut.
    upper: surprise above which an input belongs to no bucket.
    lower: surprise up to which an input belongs to no bucket; densities above 1 make it negative.
    classes: predicted classes whose inputs' coverage to give besides, by name.
    training: the Finding of `LayerTraces` over the training data.
    baseline: the Finding of the same over training inputs, to be named beside.
    """

    outputs = declared.LIKELIHOOD_SURPRISE_COVERAGE

    tasks = ("classification", "regression")

    upper: float = 2000.0

    def scores(
        self, training: Traces, test: Traces, leave_out: np.ndarray
    ) -> tuple[np.ndarray, dict[str, Estimate], dict[str, np.ndarray]]:
        """LSA of each test input, and what was made of each class's covariance."""
        surprise = likelihood_surprise_of(
            training.in_order(),
            training.classes.get("prediction"),
            test.in_order(),
            test.classes.get("prediction"),
            leave_out=leave_out,
        )
        names = class_names(self.setting.classes, 1 + max(surprise.densities)) if training.classes else ["all inputs"]
        singular = [
            names[number] for number, density in surprise.densities.items() if density.singular and density.directions
        ]
        none = [names[number] for number, density in surprise.densities.items() if not density.directions]
        summary = {
            "neurons": Estimate(len(surprise.neurons), about="neurons that vary enough to be taken into account"),
            "singular": Estimate(
                len(singular), about=f"densities taken in the directions that vary only{_of(singular)}"
            ),
            "without_density": Estimate(
                len(none), about=f"classes with no training inputs that differ: surprise is infinite{_of(none)}"
            ),
        }
        densities = sorted(surprise.densities.items())
        arrays = {
            "density_class": np.array([number for number, _ in densities]),
            "density_inputs": np.array([density.inputs for _, density in densities]),
            "density_directions": np.array([density.directions for _, density in densities]),
        }
        return surprise.scores, summary, arrays


def _of(names: Sequence[str], most: int = 10) -> str:
    """The names in a row, the first ones where there are many."""
    if not names:
        return ""
    return f": {', '.join(names[:most])}" + (f" and {len(names) - most} more" if len(names) > most else "")
