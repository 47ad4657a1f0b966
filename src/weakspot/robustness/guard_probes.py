"""A guard beside a model: fitted on held-out labelled data, judged on test data, used on inputs without labels.

Confidence (Hendrycks and Gimpel 2017) is among its scores, and its rival in every table.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Literal

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable, id_order
from weakspot.core.source import Source
from weakspot.core.step import Step
from weakspot.core.taps import Tap
from weakspot.core.tasks import Task
from weakspot.estimates import share_of
from weakspot.robustness.guard_file import guard_arrays, guard_of
from weakspot.robustness.guard_fitting import GuardInputs, GuardSettings, NoGuardError, fit_guard, scored
from weakspot.robustness.guard_measures import (
    drift_parts,
    evaluation_parts,
    fitted_summary,
    method_rows,
    sample_columns,
)
from weakspot.robustness.guard_outputs import GUARD_EVALUATION, GUARDED_INPUTS, PREDICTION_GUARD
from weakspot.robustness.guard_runtime import GuardModule, input_statistics
from weakspot.robustness.metrics_promises import OperatingPoint


class GuardRows(Probe):
    """What the guard's probes keep of each input: outputs, features, what it looks like; and its target.

    labelled: whether targets are kept.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification",)
    labelled: ClassVar[bool]

    records = Rows()

    @property
    @abstractmethod
    def layer(self) -> str | None:
        """The layer whose values are read; None for a black box."""

    @property
    def tap(self) -> Tap | None:
        """Where the features are."""
        return None if self.layer is None else Tap(self.layer)

    def observe(self, seen: Observation) -> None:
        """Keep what a guard sees."""
        columns: dict[str, Any] = {"outputs": seen.outputs.double().cpu().numpy()}
        columns["confidence"] = seen.probabilities.double().amax(1).cpu().numpy()
        columns["statistics"] = input_statistics(seen.inputs.double()).cpu().numpy()
        columns["shape"] = np.tile(np.array(seen.inputs.shape[1:], dtype=np.int64), (len(seen.ids), 1))
        if self.tap is not None:
            columns["features"] = seen.channels(self.tap).mean.double().cpu().numpy()
        if self.labelled:
            columns["target"] = seen.targets.long().cpu().numpy()
        self.records.append(seen.ids, **columns)

    def _seen(self) -> tuple[RowTable, GuardInputs]:
        """The rows, and what the guard sees of them, in the order of the ids."""
        rows = self.records.read()
        order = id_order(rows.ids)
        ids = np.array(rows.ids)[order]
        return rows, GuardInputs(ids, rows["outputs"], rows["statistics"], rows.get("features"), order)


class PredictionGuard(GuardRows):
    """A guard that says of each prediction how probably it is wrong, with thresholds that keep a promise.

    Fitted on labelled inputs that the model was not trained on and is not judged on. It weighs confidence (Hendrycks
    and Gimpel 2017), energy (Liu et al. 2020), maximum logit, Mahalanobis distance (Lee et al. 2018), distance to the
    nearest neighbours (Sun et al. 2022) and what the input looks like. The inputs are cut in three by their ids, or by
    what they belong to: a reference, a part to learn from, and a part to set thresholds on.

    aim: what the operating point is chosen by: "recall" (of the incorrect predictions), "precision", "false_alarms" (of
        the correct ones), or "risk": the share of the predictions not flagged that may be wrong.
    value: what it is to be, from 0 to 1.
    confidence: with which a promised risk holds.
    coverage: how often a prediction set holds the true class.
    sets: how prediction sets are made: "lac" (the smallest on average), "aps" or "raps" (more even over the inputs).
    unfamiliar: the share of inputs like the calibration data that may be called unfamiliar.
    neighbours: k of the nearest-neighbour distance.
    read: the layer whose values are read; none for a black box.
    least: how many inputs each of the three parts must have.
    seed: of how the inputs are cut in three.
    """

    split = "validation"
    name_says_split = False
    labelled = True
    outputs = PREDICTION_GUARD

    aim: Literal["recall", "precision", "false_alarms", "risk"] = "false_alarms"
    value: float = 0.05
    confidence: float = 0.95
    coverage: float = 0.9
    sets: Literal["lac", "aps", "raps"] = "lac"
    unfamiliar: float = 0.01
    neighbours: int = 10
    read: str | None = "penultimate"
    least: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        self._point = OperatingPoint(self.aim, self.value, self.confidence)
        for name in ("confidence", "coverage", "unfamiliar"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: expected a number between 0 and 1")
        if self.neighbours < 1:
            raise ConfigError(f"neighbours is {self.neighbours}: expected 1 or more")

    @property
    def layer(self) -> str | None:
        """The layer whose values are read."""
        return self.read

    def finish(self) -> Finding:
        """The guard, and how well every score does on the inputs that thresholds were set on; or why there is none."""
        rows, inputs = self._seen()
        counted = {"inputs": Estimate(len(inputs))}
        try:
            belongs = self.setting.groups_of(rows.ids)
            fitted = fit_guard(
                inputs,
                np.asarray(rows["target"])[inputs.order],
                self._settings(rows),
                None if belongs is None else belongs[inputs.order],
            )
        except NoGuardError as none:
            return self.finding(summary={"guard": Estimate(None, about=str(none)), **counted})
        table, flagged = method_rows(fitted, self._point)
        return self.finding(
            summary={**fitted_summary(fitted, flagged, table), **counted},
            table=table,
            arrays=guard_arrays(fitted.guard),
        )

    def _settings(self, rows: RowTable) -> GuardSettings:
        shapes = np.unique(np.asarray(rows["shape"]), axis=0)
        if len(shapes) != 1:
            raise NoGuardError(f"the inputs have {len(shapes)} sizes, such as {shapes[0]} and {shapes[1]}: resize them")
        return GuardSettings(
            point=self._point,
            miss=1 - self.coverage,
            sets=self.sets,
            unfamiliar=self.unfamiliar,
            neighbours=self.neighbours,
            probabilities=self.setting.scores == "probabilities",
            input_shape=tuple(int(size) for size in shapes[0]),
            layer=self._place(),
            least=self.least,
            seed=self.seed,
        )

    def _place(self) -> dict[str, Any] | None:
        """Where the runtime finds the layer."""
        if self.tap is None:
            return None
        points = self.setting.layout(self.tap).points
        if len(points) != 1:
            raise ConfigError(f"read is {self.read!r}, which are {len(points)} layers: name one")
        (point,) = points
        dims = {"name": point.name, "side": point.side, "channel_dim": point.channel_dim, "use": point.use}
        return {**dims, "channels": point.channels}


class GuardUser(GuardRows):
    """What the probes share that use a guard."""

    training: Mapping[str, Any] = field(default_factory=dict)
    guard: Finding

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The guard, fitted on the calibration data."""
        return {"guard": Step.of(PredictionGuard, **options["training"])}

    @classmethod
    def check_splits(
        cls, split: str, options: Mapping[str, Any], data: Mapping[str, Source], upstream: Mapping[str, str]
    ) -> None:
        """A guard that is judged on the inputs that it was fitted on would keep any promise."""
        if upstream.get("guard") == split:
            raise ConfigError(
                f"the guard is fitted on the split {split!r} and would be used on it: keep some labelled data apart "
                "and name that split, as guard: {from: SPLIT}"
            )

    @property
    def layer(self) -> str | None:
        """As the guard reads it."""
        name: str | None = self.guard.provenance["parameters"]["read"]
        return name

    def _none(self, rows: RowTable, **further: Estimate) -> Finding | None:
        """The Finding where there is no guard."""
        why = self.guard.summary.get("guard")
        if why is None:
            return None
        return self.finding(
            summary={"guard": Estimate(None, about=why.about), **further, "inputs": Estimate(rows.count)}
        )

    def _check_shape(self, guard: GuardModule, rows: RowTable) -> None:
        shapes = np.unique(np.asarray(rows["shape"]), axis=0).tolist()
        if shapes != [guard.about["input_shape"]]:
            raise ConfigError(
                f"the inputs have the shape {shapes[0]}, those that the guard was calibrated on "
                f"{guard.about['input_shape']}: resize or crop them alike"
            )


class GuardEvaluation(GuardUser):
    """How well a guard keeps its promises on labelled data, and tells incorrect from correct predictions.

    Beside every score alone, the first of which is confidence (Hendrycks and Gimpel 2017). Prediction sets are split
    conformal (Vovk et al. 2005): LAC, APS and RAPS.

    training: options of `PredictionGuard`, where no guard is given.
    guard: the Finding of `PredictionGuard`.
    """

    labelled = True
    outputs = GUARD_EVALUATION

    def finish(self) -> Finding:
        """A row per score; coverage, risk and the promises."""
        rows, inputs = self._seen()
        targets = np.asarray(rows["target"])[inputs.order]
        errors = np.asarray(rows["outputs"])[inputs.order].argmax(1) != targets
        none = self._none(rows, error_share=share_of(errors))
        if none is not None:
            return none
        guard = guard_of(self.guard)
        self._check_shape(guard, rows)
        return self.finding(**evaluation_parts(guard, self.guard, inputs, targets, self.setting.classes))


class GuardedInputs(GuardUser):
    """What a guard says of each input, without labels: how probably it is wrong, how familiar it is, and any drift.

    The alarm is a conformal test martingale (Vovk et al. 2021) on the guard's scores, input by input in the order of
    time: where nothing has changed, it is raised with a probability of at most `alarm_rate`, however many inputs.

    training: options of `PredictionGuard`, where no guard is given.
    guard: the Finding of `PredictionGuard`.
    time: the column of the metadata that orders the inputs; by default their ids do.
    alarm_rate: the probability of a false alarm.
    """

    labelled = False
    outputs = GUARDED_INPUTS

    time: str | None = None
    alarm_rate: float = 0.01

    times = Rows()

    def __post_init__(self) -> None:
        if not 0 < self.alarm_rate < 1:
            raise ConfigError(f"alarm_rate is {self.alarm_rate}: expected a number between 0 and 1, such as 0.01")

    def observe(self, seen: Observation) -> None:
        """Keep what the guard sees, and the time."""
        super().observe(seen)
        if self.time is not None:
            self.times.append(seen.ids, time=_times(seen, self.time))

    def finish(self) -> Finding:
        """The inputs, those least to be trusted first; and the drift."""
        rows, inputs = self._seen()
        none = self._none(rows)
        if none is not None:
            return none
        guard = guard_of(self.guard)
        self._check_shape(guard, rows)
        scores = scored(guard, inputs)
        table, summary = sample_columns(guard, inputs, scores, np.asarray(rows["confidence"])[inputs.order])
        stamps = None if self.time is None else np.asarray(self.times.read()["time"])[id_order(self.times.read().ids)]
        drift, arrays = drift_parts(guard, scores, inputs.ids, stamps, self.alarm_rate)
        return self.finding(summary={**summary, **drift, "inputs": Estimate(len(inputs))}, table=table, arrays=arrays)


def _times(seen: Observation, name: str) -> np.ndarray:
    if name not in seen.metadata:
        columns = ", ".join(map(repr, seen.metadata)) or "none at all"
        raise ConfigError(f"the metadata have no column {name!r} to order the inputs by; there is {columns}")
    column = seen.metadata[name]
    if column.dtype.kind not in "fiu":
        raise ConfigError(f"the metadata column {name!r} holds text: expected numbers, such as seconds since the start")
    return np.asarray(column, dtype=np.float64)
