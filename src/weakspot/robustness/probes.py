"""Neighbour accuracy: which inputs are predicted correctly only by luck? (Zhong et al. 2021, DeepRobust)"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.look import Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.core.state import Sum
from weakspot.core.step import Step
from weakspot.core.tasks import Task
from weakspot.estimates import share_of
from weakspot.looks import VARIATIONS, Brightness, Neighbour, Noise, Photometric, Rotate, Shift, Variation, moves
from weakspot.robustness.analysis import accuracy_columns, mean_estimate
from weakspot.robustness.finding_outputs import NEIGHBOUR_ACCURACY, NEIGHBOUR_TOLERANCE, SQUARED_ERROR
from weakspot.robustness.metrics import squared_errors, within_tolerance
from weakspot.robustness.predictions import BatchPredictions, named_columns, prediction_codes
from weakspot.robustness.worst_case import known_looks, worst_case_curve, worst_case_summary
from weakspot.statistics.sequential import StoppingRule, certain_rule, predictive_rule, wald_rule
from weakspot.statistics.thresholds import LowIf, check_threshold

EarlyStopping = Literal["certain", "predictive", "wald", "never"]


class NeighbourProbe(Probe):
    """Looks at each input and at m neighbours of it; the probes explain the options."""

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    threshold: float = 0.75
    weak_if: LowIf = "below"
    seed: int = 0

    @property
    def needs(self) -> Needs:
        """The original and m neighbours."""
        return Needs(looks={Original(): 1, Neighbour(self.variation, self.seed): self.looks})


class NeighbourAccuracy(NeighbourProbe):
    """Share of correct predictions for an input and its small variations; weak below a threshold.

    neighbour accuracy = (correct predictions for the original and m neighbours) / (m + 1). The table also holds
    Simpson's diversity λ of the predictions, their variation ratio and entropy, and the consistency with the prediction
    for the original, which need no label. With early stopping, `neighbour_accuracy` is that of the looks used, and
    `at_least` and `at_most` bound it over all looks.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    threshold: an input is weak if its neighbour accuracy is below this.
    weak_if: "below", or "at_or_below", so that an input exactly at the threshold is weak, too.
    worst_of: how many looks, the original among them, must all be correct in the worst case; none for as many as early
        stopping leaves known: all of them with "never".
    early_stopping: when to stop looking at an input: "certain", once no further look can change whether it is weak;
        "predictive", once all looks would change that with a probability of at most `error`; "wald", by a sequential
        probability ratio test of threshold ± 0.1; "never", so that all looks are taken.
    error: the error rate of "predictive" and "wald".
    seed: of the random variations; any neighbour can be made again from it and the input's id.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "multilabel")
    outputs = NEIGHBOUR_ACCURACY

    worst_of: int | None = None
    early_stopping: EarlyStopping = "certain"
    error: float = 0.02

    records = Rows()

    def __post_init__(self) -> None:
        if self.looks < 1:
            raise ConfigError(f"expected looks ≥ 1, got {self.looks}")
        check_threshold(self.threshold, self.weak_if)
        if self.early_stopping not in get_args(EarlyStopping):
            choices = ", ".join(get_args(EarlyStopping))
            raise ConfigError(f"early_stopping {self.early_stopping!r} is not known: choose one of {choices}")
        if self.worst_of is not None and not 1 <= self.worst_of <= self._known_looks:
            raise ConfigError(
                f"worst_of is {self.worst_of}: expected 1 to {self._known_looks}, after which early stopping may "
                "leave an input whose looks are all correct; early_stopping 'never' takes all looks"
            )

    @classmethod
    def check_task(cls, task: Task, options: Mapping[str, Any]) -> None:
        """Say of a regression that it needs a tolerance."""
        try:
            super().check_task(task, options)
        except ConfigError as error:
            if task == "segmentation":
                raise ConfigError(
                    f"{error}: give `least_iou`, such as 0.75, below which mean IoU of its neighbours an input is weak "
                    "(in Python use NeighbourSegmentation)"
                ) from error
            if task not in NeighbourTolerance.tasks:
                raise
            raise ConfigError(
                f"{error}: give `tolerance`, such as 3, for how many times the training data's mean squared error "
                "still counts as correct (in Python use NeighbourTolerance)"
            ) from error

    @cached_property
    def _rule(self) -> StoppingRule | None:
        return stopping_rule(self.early_stopping, self.looks + 1, self.threshold, self.error, self.weak_if)

    @property
    def _known_looks(self) -> int:
        return known_looks(self._rule, self.looks + 1)

    def correct(self, seen: Observation) -> np.ndarray:
        """Which samples are predicted correctly, boolean."""
        return seen.correct_array

    def predictions(self, seen: Observation) -> np.ndarray:
        """The predictions as numbers of which only equality counts."""
        return prediction_codes(seen)

    def original_columns(self, seen: Observation) -> dict[str, np.ndarray]:
        """What to keep of the original: its target and its prediction."""
        return {"target": seen.targets.cpu().numpy(), "prediction": seen.predicted_array}

    def observe(self, seen: Observation) -> Sequence[str] | None:
        """Count the correct looks; release the inputs that need no more."""
        if seen.number == 0:
            self._check_targets(seen)
            self._batch = BatchPredictions(seen.ids, self.looks + 1)
            self._original_columns = self.original_columns(seen)
        correct_looks, looks_used = self._batch.add(seen.ids, self.predictions(seen), self.correct(seen))
        if self._rule is None:
            return None
        settled, _ = self._rule.verdicts(correct_looks, looks_used)
        return [seen.ids[row] for row in np.flatnonzero(settled)] or None

    def _check_targets(self, seen: Observation) -> None:
        """Say of data without labels what can be asked of them."""
        if seen.batch.targets is None and self.setting.task in NeighbourAccuracy.tasks:
            raise DataError(
                f"neighbour accuracy needs targets, and the data have no targets: add them (sample {seen.ids[0]!r} has "
                "none), or ask what needs none: robustness: {unlabelled: test} ranks inputs by how much the "
                "predictions for their neighbours differ (in Python NeighbourDiversity)"
            )

    def close(self, ids: Sequence[str]) -> None:
        """Write the counts of the batch."""
        self.records.append(ids, **self._batch.columns(), **self._original_columns)

    def finish(self) -> Finding:
        """Every input with whether it is weak, the weakest first; the share of weak ones; how many looks it took."""
        rows = self.records.read()
        order = id_order(rows.ids)
        columns = {name: np.asarray(rows[name])[order] for name in rows if name != "sample"}
        correct_looks, looks_used = columns.pop("correct_looks"), columns.pop("looks_used")
        in_a_row, worst_of = columns.pop("correct_in_a_row"), self.worst_of or self._known_looks
        rule = self._rule or certain_rule(self.looks + 1, self.threshold, self.weak_if)
        _, weak = rule.verdicts(correct_looks, looks_used)
        table = {
            "id": np.array(rows.ids)[order],
            "weak": weak,
            **accuracy_columns(correct_looks, looks_used, self.looks + 1),
            "correct_in_all": in_a_row >= worst_of,
            **self.named(columns),
        }
        ranked = np.lexsort((table["at_least"], table["at_most"]))  # equal ones stay in the order of the ids
        return self.finding(
            summary={
                **self._summary(weak, correct_looks, looks_used, columns["correct"]),
                **worst_case_summary(table["correct_in_all"], worst_of),
                "inputs": Estimate(len(weak)),
            },
            table={name: column[ranked] for name, column in table.items()},
            arrays=worst_case_curve(in_a_row, self._known_looks, self.setting.groups_of(table["id"].tolist())),
        )

    def named(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The kept columns with targets and predictions by the names of their classes."""
        return {**columns, **named_columns(columns["target"], columns["prediction"], self.setting)}

    def _summary(
        self, weak: np.ndarray, correct_looks: np.ndarray, looks_used: np.ndarray, correct: np.ndarray
    ) -> dict[str, Estimate]:
        complete = bool((looks_used == self.looks + 1).all())
        mean = {"neighbour_accuracy": mean_estimate(correct_looks / looks_used)} if complete else {}
        return {
            "weak_share": share_of(weak),
            "fragile": Estimate(int((weak & correct).sum())),
            **mean,
            "accuracy": share_of(correct),
            "looks_per_input": Estimate(float(looks_used.mean()), about=f"mean number of looks, of {self.looks + 1}"),
        }


class SquaredError(Probe):
    """Mean squared error over the training data: the unit in which the error of a regression is measured (Tian 2018).

    Mean over inputs and outputs of (ŷ − y)².
    """

    tasks = ("regression", "keypoints")
    split = "train"
    outputs = SQUARED_ERROR

    squares = Sum()
    numbers = Sum()
    inputs = Sum()

    def observe(self, seen: Observation) -> None:
        """Add up the squared errors."""
        predictions, targets = seen.outputs.double(), seen.targets.double()
        errors = predictions.reshape(len(predictions), -1) - targets.reshape(len(targets), -1)
        self.squares = self.squares + errors.square().sum()
        self.numbers = self.numbers + errors.numel()
        self.inputs = self.inputs + len(errors)

    def finish(self) -> Finding:
        """The mean."""
        mean = float(self.squares) / max(int(self.numbers), 1)
        return self.finding(summary={"mean_squared_error": Estimate(mean), "inputs": Estimate(int(self.inputs))})


class ToleranceProbe(Probe):
    """A question about a regression: a prediction is correct if its error is within a multiple of the training data's.

    variation: how neighbours may differ from the input.
    tolerance: how many times the training data's mean squared error still counts as correct; the paper's λ.
    trained: the Finding of `SquaredError`.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("regression", "keypoints")

    variation: Variation = Brightness(0.2) & Noise(0.05)
    tolerance: float = 3.0
    trained: Finding

    @classmethod
    def check_task(cls, task: Task, options: Mapping[str, Any]) -> None:
        """Refuse to move images whose keypoints cannot be moved along: their unit is not known."""
        super().check_task(task, options)
        if task == "keypoints" and moves(options.get("variation", cls.variation)):
            still = ", ".join(name for name, kind in VARIATIONS.items() if issubclass(kind, Photometric))
            raise ConfigError(
                "the variation moves the image, and the keypoints of the data stay where they are, so correct "
                f"predictions would count as wrong: choose neighbours that move nothing ({still})"
            )

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The mean squared error over the training data."""
        return {"trained": Step.of(SquaredError)}

    @cached_property
    def unit_error(self) -> float:
        """The mean squared error over the training data."""
        return float(self.trained.summary["mean_squared_error"].value or 0)

    def correct(self, seen: Observation) -> np.ndarray:
        """Which numbers lie within the tolerance of the target."""
        return within_tolerance(seen.outputs.cpu(), seen.targets.cpu(), self.unit_error, self.tolerance)


class NeighbourTolerance(ToleranceProbe, NeighbourAccuracy):
    """Neighbour accuracy of a regression: correct if the squared error is within a multiple of the training data's.

    Correct if (ŷ − y)² ≤ tolerance · MSE of the training data (Zhong et al. 2021, after DeepTest, Tian et al. 2018).
    A prediction agrees with that for the original if it lies within the same tolerance of it. Targets stay as they are,
    so a variation must not change the true number; for keypoints, variations that move the image are refused.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    threshold: an input is weak if its neighbour accuracy is below this.
    weak_if: "below", or "at_or_below", so that an input exactly at the threshold is weak, too.
    worst_of: how many looks must all be correct in the worst case; as in `NeighbourAccuracy`.
    early_stopping: when to stop looking at an input; as in `NeighbourAccuracy`.
    error: the error rate of "predictive" and "wald".
    seed: of the random variations; any neighbour can be made again from it and the input's id.
    tolerance: how many times the training data's mean squared error still counts as correct; the paper's λ.
    trained: the Finding of `SquaredError`.
    """

    outputs = NEIGHBOUR_TOLERANCE

    def predictions(self, seen: Observation) -> np.ndarray:
        """0 where the prediction lies within the tolerance of that for the original, else 1."""
        outputs = seen.outputs.cpu().numpy()
        if seen.number == 0:
            self._original = dict(zip(seen.ids, outputs, strict=True))
        original = np.stack([self._original[name] for name in seen.ids])
        return (~within_tolerance(outputs, original, self.unit_error, self.tolerance)).astype(np.int64)

    def original_columns(self, seen: Observation) -> dict[str, np.ndarray]:
        """The squared error of the original."""
        return {"squared_error": squared_errors(seen.outputs.cpu(), seen.targets.cpu())}

    def named(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The kept columns: a regression has no names of classes."""
        return columns


def stopping_rule(
    early_stopping: EarlyStopping, total: int, threshold: float, error: float, weak_if: LowIf = "below"
) -> StoppingRule | None:
    """When to stop looking, by its name; None where all looks are taken."""
    rules: dict[EarlyStopping, Callable[[], StoppingRule | None]] = {
        "certain": lambda: certain_rule(total, threshold, weak_if),
        "predictive": lambda: predictive_rule(total, threshold, error, weak_if),
        "wald": lambda: wald_rule(total, threshold, error, weak_if),
        "never": lambda: None,
    }
    return rules[early_stopping]()
