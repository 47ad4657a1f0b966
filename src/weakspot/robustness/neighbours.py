"""Neighbour accuracy: which inputs are answered rightly only by luck? (Zhong et al. 2021, DeepRobust)"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.look import Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.state import Sum
from weakspot.core.step import Step
from weakspot.core.tasks import Task
from weakspot.looks import VARIATIONS, Brightness, Neighbour, Noise, Photometric, Rotate, Shift, Variation, moves
from weakspot.robustness.answers import Answered, answer_columns, answer_numbers
from weakspot.robustness.measures import squared_errors, within_tolerance
from weakspot.statistics.intervals import normal_quantile, wilson_interval
from weakspot.statistics.sequential import StoppingRule, certain_rule, predictive_rule, wald_rule

Release = Literal["certain", "predictive", "wald", "never"]


class NeighbourAccuracy(Probe):
    """Share of an input's variations, itself included, that the model answers rightly; weak at or below a cutoff.

    neighbour accuracy = (rightly answered among the original and m neighbours) / (m + 1). Beside it stand Simpson's
    diversity λ of the answers, their variation ratio and entropy, and the consistency with the answer to the original,
    which need no label. An input may be released before all its looks are taken: `accuracy` is then that of the looks
    used, and `at_least` and `at_most` bound it over all looks.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    cutoff: an input is weak if its neighbour accuracy is at most this.
    release: when to stop looking at an input: "certain", once no further look can change its verdict; "predictive",
        once all looks would change it with a chance of at most `error`; "wald", by a sequential probability ratio test
        of cutoff ± 0.1; "never", so that all looks are taken.
    error: the error rate of "predictive" and "wald".
    seed: of the draws; with it and the input's id any neighbour can be made again.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "multilabel")

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    cutoff: float = 0.75
    release: Release = "certain"
    error: float = 0.02
    seed: int = 0

    tally = Rows()

    def __post_init__(self) -> None:
        if self.looks < 1 or not 0 <= self.cutoff < 1:
            raise ConfigError(f"expected looks ≥ 1 and 0 ≤ cutoff < 1, got {self.looks} and {self.cutoff}")
        if self.release not in get_args(Release):
            raise ConfigError(f"release {self.release!r} is not known: choose one of {', '.join(get_args(Release))}")
        stopping_rule(self.release, self.looks + 1, self.cutoff, self.error)  # refused before the pass

    @classmethod
    def check_task(cls, task: Task, options: Mapping[str, Any]) -> None:
        """Say of numbers that they need a tolerance."""
        try:
            super().check_task(task, options)
        except ConfigError as error:
            if task not in NeighbourTolerance.tasks:
                raise
            raise ConfigError(
                f"{error}: give `tolerance`, such as 3, for how many times the training data's mean squared error "
                "still counts as right (in Python ask NeighbourTolerance)"
            ) from error

    @property
    def needs(self) -> Needs:
        """The original and m neighbours."""
        return Needs(looks={Original(): 1, Neighbour(self.variation, self.seed): self.looks})

    @cached_property
    def _rule(self) -> StoppingRule | None:
        return stopping_rule(self.release, self.looks + 1, self.cutoff, self.error)

    def right(self, seen: Observation) -> np.ndarray:
        """Which samples are answered rightly, boolean."""
        return seen.right_answers

    def answers(self, seen: Observation) -> np.ndarray:
        """The answers as numbers of which only equality counts."""
        return answer_numbers(seen)

    def known(self, seen: Observation) -> dict[str, np.ndarray]:
        """What to keep of the original: its target and the answer to it."""
        return {"target": seen.targets.cpu().numpy(), "predicted": seen.answers}

    def observe(self, seen: Observation) -> Sequence[str] | None:
        """Count the right answers; release those whose verdict is settled."""
        if seen.number == 0:
            self._seen = Answered(seen.ids, self.looks + 1)
            self._known = self.known(seen)
        right, used = self._seen.add(seen.ids, self.answers(seen), self.right(seen))
        if self._rule is None:
            return None
        settled, _ = self._rule.verdicts(right, used)
        return [seen.ids[row] for row in np.flatnonzero(settled)] or None

    def close(self, ids: Sequence[str]) -> None:
        """Keep the tallies of the batch."""
        self.tally.append(ids, **self._seen.measures(), **self._known)

    def finish(self) -> Finding:
        """The verdict of every input, the weakest first; the share of weak ones, and how many looks it took."""
        rows = self.tally.read()
        ids = np.array(rows.ids)
        order = np.argsort(ids)  # sums must not depend on the order of the data
        kept = {name: np.asarray(rows[name])[order] for name in rows if name != "sample"}
        right, used = kept.pop("right"), kept.pop("used")
        rule = self._rule or certain_rule(self.looks + 1, self.cutoff)
        _, weak = rule.verdicts(right, used)
        columns = {
            "id": ids[order],
            "weak": weak,
            **accuracy_columns(right, used, self.looks + 1),
            **self.shown(kept),
        }
        ranked = np.lexsort((columns["at_least"], columns["at_most"]))  # equal ones stay in the order of the ids
        table = {name: column[ranked] for name, column in columns.items()}
        return self.finding(summary=self._summary(weak, right, used, kept["right_as_it_is"]), table=table)

    def shown(self, kept: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns of the table beside the accuracy, targets and answers by their names."""
        own = {name: values for name, values in kept.items() if name not in ("target", "predicted", "right_as_it_is")}
        return {**own, **answer_columns(kept["target"], kept["predicted"], self.setting)}

    def _summary(
        self, weak: np.ndarray, right: np.ndarray, used: np.ndarray, correct: np.ndarray
    ) -> dict[str, Estimate]:
        complete = bool((used == self.looks + 1).all())
        mean = {"neighbour_accuracy": _mean(right / used, "mean over the inputs")} if complete else {}
        return {
            "weak_share": share(weak, "share of the inputs that are weak"),
            "lucky": Estimate(int((weak & correct).sum()), about="inputs answered rightly as they are, yet weak"),
            **mean,
            "accuracy": share(correct, "share of the inputs answered rightly as they are"),
            "looks_per_input": Estimate(float(used.mean()), about=f"of {self.looks + 1} possible"),
            "inputs": Estimate(len(weak), about="samples examined"),
        }


class SquaredError(Probe):
    """Mean squared error over the training data: the measure of what a driving model's answer may be off (Tian 2018).

    Mean over inputs and outputs of (ŷ − y)².
    """

    tasks = ("regression", "keypoints")
    split = "train"

    squares = Sum()
    numbers = Sum()
    inputs = Sum()

    def observe(self, seen: Observation) -> None:
        """Add up the squared errors."""
        outputs, targets = seen.outputs.double(), seen.targets.double()
        errors = outputs.reshape(len(outputs), -1) - targets.reshape(len(targets), -1)
        self.squares = self.squares + errors.square().sum()
        self.numbers = self.numbers + errors.numel()
        self.inputs = self.inputs + len(errors)

    def finish(self) -> Finding:
        """The mean."""
        mean = float(self.squares) / max(int(self.numbers), 1)
        return self.finding(
            summary={
                "mean_squared_error": Estimate(mean, about="mean of (ŷ − y)² over inputs and outputs"),
                "inputs": Estimate(int(self.inputs), about="samples examined"),
            }
        )


class NeighbourTolerance(NeighbourAccuracy):
    """Neighbour accuracy of numbers: right if the squared error is at most a multiple of the training data's.

    Right iff (ŷ − y)² ≤ tolerance · MSE of the training data (Zhong et al. 2021, after DeepTest, Tian et al. 2018).
    Answers agree if they lie within the same tolerance of the answer to the original. Targets stay as they are, so what
    they measure must not change with the input; keypoints, which are places, refuse variations that move something.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    cutoff: an input is weak if its neighbour accuracy is at most this.
    release: when to stop looking at an input; as in `NeighbourAccuracy`.
    error: the error rate of "predictive" and "wald".
    seed: of the draws; with it and the input's id any neighbour can be made again.
    tolerance: how many times the training data's mean squared error still counts as right; the paper's λ.
    trained: the Finding of `SquaredError`.
    """

    tasks = ("regression", "keypoints")

    variation: Variation = Brightness(0.2) & Noise(0.05)
    tolerance: float = 3.0
    trained: Finding

    @classmethod
    def check_task(cls, task: Task, options: Mapping[str, Any]) -> None:
        """Refuse to move images whose keypoints cannot be moved along: in which unit they are is not known."""
        super().check_task(task, options)
        if task == "keypoints" and moves(options.get("variation", cls.variation)):
            still = ", ".join(name for name, kind in VARIATIONS.items() if issubclass(kind, Photometric))
            raise ConfigError(
                "the variation moves what is in the image, and the keypoints of the data stay where they are, so right "
                f"answers would count as wrong: ask with neighbours that move nothing ({still})"
            )

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The mean squared error over the training data."""
        return {"trained": Step.of(SquaredError)}

    @cached_property
    def _error(self) -> float:
        return float(self.trained.summary["mean_squared_error"].value or 0)

    def right(self, seen: Observation) -> np.ndarray:
        """Which numbers lie within the tolerance of the target."""
        return within_tolerance(seen.outputs.cpu(), seen.targets.cpu(), self._error, self.tolerance)

    def answers(self, seen: Observation) -> np.ndarray:
        """0 where the answer lies within the tolerance of that to the original, else 1."""
        outputs = seen.outputs.cpu().numpy()
        if seen.number == 0:
            self._original = dict(zip(seen.ids, outputs, strict=True))
        original = np.stack([self._original[name] for name in seen.ids])
        return (~within_tolerance(outputs, original, self._error, self.tolerance)).astype(np.int64)

    def known(self, seen: Observation) -> dict[str, np.ndarray]:
        """The squared error of the original."""
        return {"squared_error": squared_errors(seen.outputs.cpu(), seen.targets.cpu())}

    def shown(self, kept: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns of the table beside the accuracy."""
        return {name: values for name, values in kept.items() if name != "right_as_it_is"}


def stopping_rule(release: Release, total: int, cutoff: float, error: float) -> StoppingRule | None:
    """When to stop looking, by its name; none where all looks are taken."""
    rules: dict[Release, Callable[[], StoppingRule | None]] = {
        "certain": lambda: certain_rule(total, cutoff),
        "predictive": lambda: predictive_rule(total, cutoff, error),
        "wald": lambda: wald_rule(total, cutoff, error),
        "never": lambda: None,
    }
    return rules[release]()


def accuracy_columns(right: np.ndarray, used: np.ndarray, total: int) -> dict[str, np.ndarray]:
    """Accuracy over the looks used with Wilson's interval, its bounds over all looks, and the counts."""
    low, high = wilson_interval(right, used)
    at_least, at_most = accuracy_bounds(right, used, total)
    return {
        "accuracy": right / used,
        "low": low,
        "high": high,
        "at_least": at_least,
        "at_most": at_most,
        "looks_used": used,
        "right": right,
    }


def accuracy_bounds(right: np.ndarray, used: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest accuracy over `total` looks, given that `right` of the first `used` were answered rightly.

    >>> accuracy_bounds(np.array([3]), np.array([4]), 8)
    (array([0.375]), array([0.875]))
    """
    return right / total, (right + total - used) / total


def share(chosen: np.ndarray, about: str) -> Estimate:
    """The share of true entries with Wilson's interval."""
    low, high = wilson_interval(int(chosen.sum()), len(chosen))
    return Estimate(float(chosen.mean()), float(low), float(high), 0.95, about)


def _mean(values: np.ndarray, about: str) -> Estimate:
    mean = float(values.mean())
    spread = normal_quantile(0.95) * float(values.std()) / len(values) ** 0.5
    return Estimate(mean, max(mean - spread, 0.0), min(mean + spread, 1.0), 0.95, about)
