"""Detectors of weak inputs: trained on training data, used on inputs without labels (Zhong et al. 2021, DeepRobust).

DeepRobust-W reads the features of an input, DeepRobust-B the diversity of the predictions for a few neighbours, its
queries. A network on both sees more than either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.core.stateless_random import draw_keys
from weakspot.core.step import Step
from weakspot.core.taps import Layers
from weakspot.core.tasks import Task
from weakspot.estimates import share_of
from weakspot.looks import Neighbour, Rotate, Shift, Variation
from weakspot.robustness.detector_data import (
    DetectorBatch,
    DetectorLooks,
    correct_outcomes,
    fresh_looks,
    sorted_by_id,
)
from weakspot.robustness.detector_network import DetectorTraining, NothingToLearnError
from weakspot.robustness.detector_outputs import DETECTOR_EVALUATION, METHODS, WEAK_DETECTOR, WEAK_INPUTS
from weakspot.robustness.detectors import (
    Detector,
    FittedDetectors,
    fit_detectors,
    reliability_arrays,
    scalar_columns,
    with_baselines,
)
from weakspot.robustness.metrics import weak_inputs
from weakspot.robustness.metrics_detection import BY_GROUP, metrics_summary, metrics_table
from weakspot.robustness.metrics_promises import OperatingPoint
from weakspot.robustness.score_thresholds import RULES
from weakspot.statistics.thresholds import LowIf, check_threshold


class WeakDetector(Probe):
    """Detectors of weak inputs, trained on a sample of the training data: white box, black box and both together.

    A network on the features of a layer (DeepRobust-W), a threshold of Simpson's λ over the predictions for the queries
    (DeepRobust-B), and networks on the queries alone and on both (Zhong et al. 2021, and beyond it). For the detectors
    that see the queries, whether an input is weak is decided by the other looks. Networks are trained fold by fold:
    probabilities are calibrated (Platt) and score thresholds set (best F1) on inputs that they were not trained on.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours decide whether an input is weak.
    queries: the first so many neighbours are what a detector sees at run time; 0 for the white box alone.
    threshold: an input is weak if its neighbour accuracy is below this.
    weak_if: "below", or "at_or_below", so that an input exactly at the threshold is weak, too.
    layers: whose values the features are; none for a black box.
    sample: how many training inputs to learn from, drawn by their ids; none for all.
    rule: the score threshold of λ: "quantile", by the share of weak training inputs; "f1", the best F1 on them;
        "paper", the highest λ of a weak one, which mostly flags every input and then warns.
    aim: what the detectors' score thresholds are chosen by on held-out training inputs: "f1", the best F1; "network",
        where the network itself says "weak", as in the paper; or "recall", "precision" or "false_alarms" with their
        `value`. None for "network" with a weak_emphasis, whose dial any other choice undoes, else for "f1".
    value: of the recall (of the weak inputs), precision, or false alarms (of the strong ones), from 0 to 1.
    weak_emphasis: m of the selection weight (1 + (1 − n)^m·100^m)/(1 + 100^m): 0 draws all training inputs alike.
    tolerance: for a regression, how many times the mean squared error still counts as correct.
    hidden: units of the hidden layers.
    epochs: times over the sample.
    folds: into how many parts the sample is cut.
    seed: of neighbours, sample and training.
    device: where the networks are trained: "cpu", so that detectors are equal on every machine, or "cuda", whose memory
        then holds the features of the sample.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "regression")
    split = "train"
    outputs = WEAK_DETECTOR
    by_group = BY_GROUP

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    queries: int = 15
    threshold: float = 0.75
    weak_if: LowIf = "below"
    layers: Layers | None = "penultimate"
    sample: int | None = 10_000
    rule: Literal["quantile", "f1", "paper"] = "quantile"
    aim: Literal["f1", "network", "recall", "precision", "false_alarms"] | None = None
    value: float | None = None
    weak_emphasis: int = 0
    tolerance: float = 3.0
    hidden: tuple[int, ...] = (256, 128)
    epochs: int = 40
    folds: int = 5
    seed: int = 0
    device: str = "cpu"

    neighbours = Rows()

    def __post_init__(self) -> None:
        if not 0 <= self.queries < self.looks:
            raise ConfigError(
                "expected 0 ≤ queries < looks, so that some looks decide whether an input is weak; got "
                f"{self.queries} and {self.looks}"
            )
        check_threshold(self.threshold, self.weak_if)
        if self.layers is None and not self.queries:
            raise ConfigError("a detector must see something: give it layers, queries or both")
        if self.rule not in RULES:
            raise ConfigError(f"rule {self.rule!r} is not known: choose one of {', '.join(RULES)}")
        if self.sample is not None and self.sample < 2 * self.folds:
            raise ConfigError(f"a sample of {self.sample} cannot be cut into {self.folds} folds: give more")
        if (self.value is None) != (self.aim in (None, "f1", "network")):
            raise ConfigError(
                f"aim is {self.aim!r} and value {self.value}: recall, precision and false_alarms need a value, such as "
                "0.95, and nothing else takes one"
            )
        self._point  # noqa: B018 - refuses what it cannot do
        self._training  # noqa: B018 - refuses what it cannot do

    @cached_property
    def _point(self) -> OperatingPoint | None:
        """What all thresholds are chosen by, if not each by its own rule."""
        match self.aim:
            case "recall" | "precision" | "false_alarms" if self.value is not None:
                return OperatingPoint(self.aim, self.value)
        return None

    @cached_property
    def _training(self) -> DetectorTraining:
        return DetectorTraining(
            hidden=tuple(self.hidden),
            epochs=self.epochs,
            folds=self.folds,
            weak_emphasis=self.weak_emphasis,
            weak_if=self.weak_if,
            own_decision=self.aim == "network" or (self.aim is None and self.weak_emphasis > 0),
            seed=self.seed,
            device=self.device,
        )

    @property
    def detector_looks(self) -> DetectorLooks:
        """Which looks are taken at an input."""
        return DetectorLooks(Neighbour(self.variation, self.seed), self.looks, self.queries, self.layers)

    @property
    def needs(self) -> Needs:
        """The original with its features, and m neighbours."""
        return self.detector_looks.needs

    @cached_property
    def _chosen(self) -> frozenset[str]:
        """The ids of the sample: those with the smallest hashes, in whatever order they come."""
        ids = self.setting.ids
        if self.sample is None or self.sample >= len(ids):
            return frozenset(ids)
        keys = draw_keys(ids, self.seed)
        return frozenset(ids[index] for index in np.argpartition(keys, self.sample)[: self.sample])

    def observe(self, seen: Observation) -> list[str]:
        """Keep what the sample shows; all other inputs are released."""
        if seen.number == 0:
            chosen = [name for name in seen.ids if name in self._chosen]
            self._batch = DetectorBatch(self.detector_looks, chosen, truth=True)
        return self._batch.add(seen)

    def close(self, ids: Sequence[str]) -> None:
        """Write the batch."""
        if self._batch.ids:
            self.neighbours.append(self._batch.ids, **self._batch.columns())

    def finish(self) -> Finding:
        """The trained detectors, and how well they do on held-out training inputs; or why there is none."""
        rows = self.neighbours.read()
        ids, columns = sorted_by_id(rows, rows.ids)
        error = float(columns["outcomes"][:, 0].mean())
        correct = correct_outcomes(
            columns["outcomes"], self.setting.task, mean_squared_error=error, tolerance=self.tolerance
        )
        weak = weak_inputs(correct[:, fresh_looks(self.queries, self.looks)].mean(1), self.threshold, self.weak_if)
        groups = self.setting.groups_of(ids.tolist())
        weak_share = {"weak_share": share_of(weak, groups=groups)}
        inputs = {"inputs": Estimate(len(ids))}
        errors = {"mean_squared_error": np.array(error)} if self.setting.task == "regression" else {}
        errors["input_shape"] = columns["shape"][0]
        try:
            fitted = self._fitted(columns, correct, groups)
        except NothingToLearnError as nothing:
            return self.finding(summary={**weak_share, **no_detector(str(nothing)), **inputs}, arrays=errors)
        held_out = fitted.held_out(columns, weak, groups)
        return self.finding(
            summary={**weak_share, **metrics_summary(held_out, weak, groups), **inputs},
            table=metrics_table(held_out, weak, groups),
            arrays={**fitted.arrays(), **errors, **reliability_arrays(held_out, weak)},
        )

    def _fitted(self, columns: Mapping[str, np.ndarray], correct: np.ndarray, groups: Any) -> FittedDetectors:
        return fit_detectors(
            columns,
            correct,
            self.threshold,
            self.queries,
            self._training,
            rule=self.rule,
            point=self._point,
            groups=groups,
        )


def no_detector(why: str) -> dict[str, Estimate]:
    """The summary where nothing could be learnt."""
    return {"detector": Estimate(None, about=why)}


class DetectorProbe(Probe):
    """What the probes share that use trained detectors.

    truth: whether the targets are needed.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "regression")
    truth: ClassVar[bool]

    training: Mapping[str, Any] = field(default_factory=dict)
    detector: Finding

    records = Rows()

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The detectors, trained on the training data."""
        return {"detector": Step.of(WeakDetector, **options["training"])}

    @cached_property
    def detector_looks(self) -> DetectorLooks:
        """As the detector was trained, with the looks that it needs."""
        return Detector(self.detector).looks()

    @property
    def needs(self) -> Needs:
        """The original with its features, and the neighbours."""
        return self.detector_looks.needs

    def observe(self, seen: Observation) -> list[str]:
        """Keep what the detector sees and, where targets are needed, which looks are correct."""
        if seen.number == 0:
            self._batch = DetectorBatch(self.detector_looks, seen.ids, truth=self.truth)
        return self._batch.add(seen)

    def close(self, ids: Sequence[str]) -> None:
        """Write the batch."""
        self.records.append(self._batch.ids, **self._batch.columns())


class WeakInputs(DetectorProbe):
    """Which inputs a detector flags as weak; needs no labels (Zhong et al. 2021, DeepRobust-W and -B).

    Use it on new data: the probability that each input is weak, and what each detector says of it.

    training: options of `WeakDetector`, where no detector is given.
    detector: the Finding of `WeakDetector`.
    budget: how many inputs to list, those most likely weak first; none for all.
    """

    truth = False
    outputs = WEAK_INPUTS
    by_group = ("flagged_share",)

    budget: int | None = None

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise ConfigError(f"expected a budget of at least 1, got {self.budget}: leave it out to list all inputs")

    def finish(self) -> Finding:
        """The inputs, those most likely weak first."""
        rows = self.records.read()
        detector, order = Detector(self.detector), id_order(rows.ids)
        ids = np.array(rows.ids)[order]
        inputs = {"inputs": Estimate(len(ids))}
        if detector.why_none is not None:
            return self.finding(summary={**no_detector(detector.why_none), **inputs})
        by_method = {output.method: output for output in detector.outputs(rows, order)}
        best = by_method[detector.best]
        table: dict[str, np.ndarray] = {"id": ids, "probability": best.score, "flagged": best.flagged}
        table |= {name: o.score for name, o in by_method.items() if o.probability and name != best.method}
        table |= scalar_columns(rows, order)
        ranked = np.lexsort((ids, -best.score))[: self.budget]
        selected = {} if self.budget is None else {"selected": Estimate(len(ranked))}
        about, groups = f"share of the inputs flagged by {METHODS[best.method]}", self.setting.groups_of(ids.tolist())
        flagged = share_of(best.flagged, about, groups=groups)
        return self.finding(
            summary={"flagged_share": flagged, **selected, **inputs},
            table={name: values[ranked] for name, values in table.items()},
        )


class DetectorEvaluation(DetectorProbe):
    """How well the detectors find the weak inputs of labelled data, beside baselines (Zhong et al. 2021).

    Whether an input is weak is decided by looks that were no queries. F1 depends on the share of weak inputs, so the
    Finding also holds that share, average precision and AUROC, and the F1 of flagging every input.

    training: options of `WeakDetector`, where no detector is given.
    detector: the Finding of `WeakDetector`.
    looks: m, how many neighbours there are in all; the first of them are the detector's queries.
    """

    truth = True
    outputs = DETECTOR_EVALUATION
    by_group = BY_GROUP

    looks: int = 50

    @cached_property
    def detector_looks(self) -> DetectorLooks:
        """As the detector was trained, with further looks that decide whether an input is weak."""
        return Detector(self.detector).looks(looks=self.looks)

    def finish(self) -> Finding:
        """One row per detector and baseline."""
        rows = self.records.read()
        detector, order = Detector(self.detector), id_order(rows.ids)
        ids = np.array(rows.ids)[order].tolist()
        correct = correct_outcomes(
            np.asarray(rows["outcomes"])[order],
            self.setting.task,
            mean_squared_error=detector.mean_squared_error,
            tolerance=detector.parameters["tolerance"],
        )
        fresh = fresh_looks(detector.parameters["queries"], self.looks)
        weak = detector.weak(correct[:, fresh].mean(1))
        groups = self.setting.groups_of(ids)
        weak_share, inputs = {"weak_share": share_of(weak, groups=groups)}, {"inputs": Estimate(len(ids))}
        if detector.why_none is not None:
            return self.finding(summary={**weak_share, **no_detector(detector.why_none), **inputs})
        methods = with_baselines(detector, ids, rows, order)
        return self.finding(
            summary={**weak_share, **metrics_summary(methods, weak, groups), **inputs},
            table=metrics_table(methods, weak, groups),
            arrays=reliability_arrays(methods, weak),
        )
