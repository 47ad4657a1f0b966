"""Errors under common corruptions: mean corruption error and its relative kin (Hendrycks and Dietterich 2019).

Known of each input are `wrong`, boolean, shape (inputs, kinds, severities), and `wrong_plain` of the input itself. All
numbers are means over the inputs, so their intervals are too: the inputs are drawn, the corruptions are not.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.estimates import interval_estimate
from weakspot.statistics import wilson_interval
from weakspot.statistics.intervals import normal_quantile

CLEAN = "clean"
"""The name of the error without any corruption, among a baseline's numbers."""
_CONFIDENCE = 0.95


def share_interval(shares: np.ndarray, *, looks: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean of shares from 0 to 1 over the first axis, and the ends of Wilson's interval for as many yes or no.

    A share between 0 and 1 varies less than a yes or no of the same mean, so the interval is never too short. With
    `looks`, all of so many intervals hold together (Bonferroni).
    """
    mean, inputs = shares.mean(0), len(shares)
    low, high = wilson_interval(mean * inputs, inputs, confidence=1 - (1 - _CONFIDENCE) / looks)
    return mean, low, high


def share_estimates(names: Sequence[str], shares: np.ndarray) -> dict[str, Estimate]:
    """Mean and interval of each column; shares (inputs, names)."""
    columns = zip(names, *share_interval(shares), strict=True)
    return {name: interval_estimate(mean, (low, high)) for name, mean, low, high in columns}  # type: ignore[arg-type]


def mean_corruption_error(wrong: np.ndarray, kinds: Sequence[str], baseline: Mapping[str, float]) -> Estimate:
    """mCE = mean over kinds of Σ_s E(kind, s) / Σ_s E_baseline(kind, s); 1 is as many errors as the baseline's."""
    weights = np.array([1 / _above_zero(baseline[kind], kind) for kind in kinds])
    return _mean_of(wrong.mean(2) @ weights / len(kinds))


def relative_error(
    wrong: np.ndarray, wrong_plain: np.ndarray, kinds: Sequence[str], baseline: Mapping[str, float]
) -> Estimate:
    """Relative mCE = mean over kinds of Σ_s (E(kind, s) − E) / Σ_s (E_baseline(kind, s) − E_baseline)."""
    rises = [_above_zero(baseline[kind] - baseline[CLEAN], f"{kind} less {CLEAN}") for kind in kinds]
    return _mean_of((wrong.mean(2) - wrong_plain[:, None]) @ (1 / np.array(rises)) / len(kinds))


def error_rise(wrong: np.ndarray, wrong_plain: np.ndarray) -> Estimate:
    """The mean of E(kind, s) − E over kinds and severities: how many more errors corruptions cause."""
    return _mean_of(wrong.mean((1, 2)) - wrong_plain)


def class_errors(wrong: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The classes that occur, their number of inputs, and the error of each under each kind, (classes, kinds)."""
    classes, members = np.unique(targets, return_inverse=True)
    inputs = np.bincount(members)
    totals = np.zeros((len(classes), wrong.shape[1]))
    np.add.at(totals, members, wrong.mean(2))
    return classes, inputs, totals / inputs[:, None]


def check_baseline(baseline: Mapping[str, float], kinds: Sequence[str]) -> None:
    """Refuse a baseline that lacks a corruption, or whose numbers are no shares."""
    missing = [kind for kind in (CLEAN, *kinds) if kind not in baseline]
    if missing:
        raise ConfigError(
            f"the baseline has no error for {', '.join(missing)}: give the mean error over the severities of every "
            f"corruption, and {CLEAN!r} for the error without any, such as {{{CLEAN}: 0.08, fog: 0.25}}"
        )
    for name, value in baseline.items():
        if not 0 <= value <= 1:
            raise ConfigError(f"the baseline's error {name} is {value}: expected a share from 0 to 1, not per cent")


def baseline_errors(finding: Finding) -> dict[str, float]:
    """The errors of one net, from its Finding of `CommonCorruptions`, as the baseline of another."""
    errors = {name.removeprefix("error_"): entry for name, entry in finding.summary.items() if name[:6] == "error_"}
    errors.pop("rise", None)
    if not errors or "clean_error" not in finding.summary:
        raise ConfigError(
            f"{finding.name} is no Finding of CommonCorruptions: examine the baseline net with that probe"
        )
    return {CLEAN: float(finding.summary["clean_error"].value or 0)} | {
        kind: float(entry.value or 0) for kind, entry in errors.items()
    }


def _above_zero(value: float, name: str) -> float:
    if not value > 0:
        raise ConfigError(f"the baseline's error {name} is {value:g}: nothing can be divided by it; choose another net")
    return value


def _mean_of(values: np.ndarray) -> Estimate:
    mean, spread = float(values.mean()), normal_quantile(_CONFIDENCE) * float(values.std()) / len(values) ** 0.5
    return Estimate(mean, mean - spread, mean + spread, _CONFIDENCE)
