"""How well a lesion's uncertainty tells false positives from true ones (Lambert et al. 2022, section 3.3).

Lesions are removed one after another, the most uncertain first, and the remaining ones are counted: the
accuracy–confidence curve. Its area depends on the order alone. Lesions of one patient are alike, so intervals come from
resampling patients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.statistics.intervals import (
    LEAST_RESAMPLED,
    Interval,
    bootstrap_interval,
    percentile_interval,
    resampled_counts,
)
from weakspot.statistics.ranking import spearman

Floats = NDArray[np.float64]

UNKNOWN = Interval(np.array(np.nan), np.array(np.nan))
"""Where there is no interval."""


@dataclass(frozen=True)
class AccuracyConfidence:
    """What is left when the τ % most uncertain lesions are removed; τ at every lesion, from all removed to none."""

    false_positives: Floats
    true_positives: Floats
    """Each as a share of those without removing any, from 0 to 1."""

    @property
    def area(self) -> float:
        """The area under true over false positives: 1 if every false positive is more uncertain than every true one."""
        return float(np.trapezoid(self.true_positives, self.false_positives))


def accuracy_confidence(uncertainty: np.ndarray, false_positive: np.ndarray) -> AccuracyConfidence:
    """The accuracy–confidence curve (Lakshminarayanan et al. 2017); lesions that are equally uncertain go together.

    >>> curve = accuracy_confidence(np.array([0.1, 0.2, 0.9]), np.array([False, False, True]))
    >>> curve.true_positives.tolist(), curve.false_positives.tolist(), curve.area
    ([0.0, 0.5, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], 1.0)
    """
    wrong = np.asarray(false_positive, dtype=np.bool_)
    _check_both(wrong)
    order = np.argsort(uncertainty, kind="stable")
    last = np.flatnonzero(np.append(np.diff(uncertainty[order]) > 0, True))
    kept_false, kept_true = np.cumsum(wrong[order])[last], np.cumsum(~wrong[order])[last]
    return AccuracyConfidence(np.append(0.0, kept_false / wrong.sum()), np.append(0.0, kept_true / (~wrong).sum()))


def _check_both(wrong: np.ndarray) -> None:
    if not 0 < wrong.sum() < len(wrong):
        raise DataError(
            f"there are {int((~wrong).sum())} true and {int(wrong.sum())} false positives: an accuracy–confidence "
            "curve needs some of both; add cases"
        )


def weighted_areas(uncertainty: np.ndarray, false_positive: np.ndarray, weights: np.ndarray) -> Floats:
    """The area of the curve with every lesion counted as often as each row of `weights` says; shape (rows,).

    P(a true positive is more certain than a false one) + ½ P(equal), over pairs; NaN where a row has none of a kind.

    weights: shape (rows, lesions).
    """
    order = np.argsort(uncertainty, kind="stable")
    values, wrong, counts = uncertainty[order], np.asarray(false_positive)[order], weights[:, order].astype(np.float64)
    tie = np.append(0, np.cumsum(np.diff(values) > 0))
    ends = np.flatnonzero(np.append(np.diff(tie) > 0, True))
    true, false = (_per_tie(counts * kind, ends) for kind in (~wrong, wrong))
    surer = np.cumsum(true, axis=1) - true / 2
    pairs = true.sum(1) * false.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((surer * false).sum(1) / pairs)


def _per_tie(counts: Floats, ends: np.ndarray) -> Floats:
    return np.diff(np.cumsum(counts, axis=1)[:, ends], axis=1, prepend=0.0)


@dataclass(frozen=True)
class ScoredFold:
    """The scored lesions of one fold's test cases.

    uncertainty: by method, (lesions,).
    false_positive: which lesions are none, (lesions,).
    patient: of each lesion.
    voxels: the size of each lesion.
    patients: all of the fold, also those without a lesion.
    dice: mean over each patient's cases, NaN where nothing could be compared.
    structural: mean over each patient's cases of their structural uncertainty, where it is known.
    found: of each lesion which true one it finds, numbered over all cases, negative for none; where that is known.
    scans, true_lesions: how many there are.
    """

    uncertainty: Mapping[str, Floats]
    false_positive: NDArray[np.bool_]
    patient: NDArray[np.str_]
    voxels: NDArray[np.int64]
    patients: NDArray[np.str_]
    dice: Floats
    structural: Floats | None = None
    found: NDArray[np.int64] | None = None
    scans: int = 0
    true_lesions: int = 0


@dataclass(frozen=True)
class Evaluation:
    """Of each method the mean area over the folds with its interval, its area per fold, and Spearman's ρ with size.

    An interval that is not known is NaN to NaN.

    replicates: the mean areas of resampled patients, the same patients for every method.
    few: why there are no intervals, empty where there are.
    """

    area: Mapping[str, float]
    interval: Mapping[str, Interval]
    per_fold: Mapping[str, Floats]
    spearman: Mapping[str, float]
    replicates: Mapping[str, Floats]
    few: str = ""

    def difference(self, one: str, other: str, *, confidence: float = 0.95) -> tuple[float, Interval]:
        """The area of one method less that of another, with an interval from the same resampled patients."""
        apart = self.replicates[one] - self.replicates[other]
        return self.area[one] - self.area[other], _interval(apart, self.few, confidence)


def evaluate(
    folds: Sequence[ScoredFold], *, replicates: int = 1000, seed: int = 0, confidence: float = 0.95
) -> Evaluation:
    """Evaluate every method over the folds: area per fold, mean of the folds, patient-wise bootstrap (Efron 1979)."""
    if not folds or replicates < 1:
        raise ConfigError(f"expected at least one fold and one replicate, got {len(folds)} and {replicates}")
    methods = list(folds[0].uncertainty)
    drawn = [resampled_patients(fold, replicates, [seed, number]) for number, fold in enumerate(folds)]
    areas: dict[str, Floats] = {}
    replicated: dict[str, Floats] = {}
    for method in methods:
        per_fold = [accuracy_confidence(fold.uncertainty[method], fold.false_positive).area for fold in folds]
        areas[method] = np.array(per_fold)
        again = [weighted_areas(f.uncertainty[method], f.false_positive, w) for f, w in zip(folds, drawn, strict=True)]
        replicated[method] = np.mean(again, axis=0)
    few = too_few(folds)
    return Evaluation(
        {name: float(per_fold.mean()) for name, per_fold in areas.items()},
        {name: _interval(values, few, confidence) for name, values in replicated.items()},
        areas,
        {name: _mean_spearman(folds, name) for name in methods},
        replicated,
        few,
    )


def _interval(replicates: Floats, few: str, confidence: float) -> Interval:
    """Unknown also where it has no width, as for an area of 1: that says nothing of how far it could fall."""
    interval = UNKNOWN if few else percentile_interval(replicates, confidence=confidence)
    return interval if interval.low < interval.high else UNKNOWN


def too_few(folds: Sequence[ScoredFold]) -> str:
    """Why resampled patients give no interval, or nothing: of each kind of lesion five must have some, two per fold.

    With a single patient who has false positives every replicate has the same ones: no chance is seen at work.
    """
    for kind, wrong in (("false", True), ("true", False)):
        owners = [len(np.unique(fold.patient[fold.false_positive == wrong])) for fold in folds]
        if sum(owners) < LEAST_RESAMPLED or min(owners) < 2:
            each = ", two in each fold" if len(folds) > 1 else ""
            counts = ", ".join(map(str, owners))
            return f"no interval: it takes {LEAST_RESAMPLED} patients with {kind} positives{each}, here are {counts}"
    return ""


def resampled_patients(fold: ScoredFold, replicates: int, seed: Sequence[int]) -> NDArray[np.int64]:
    """How often each lesion counts when its fold's patients are drawn anew; shape (replicates, lesions)."""
    patients = np.unique(fold.patients)
    counts = resampled_counts(len(patients), seed=seed, replicates=replicates)
    return np.asarray(counts[:, np.searchsorted(patients, fold.patient)])


def _mean_spearman(folds: Sequence[ScoredFold], method: str) -> float:
    return float(np.mean([spearman(fold.uncertainty[method], fold.voxels) for fold in folds]))


def mean_dice(dice: np.ndarray, *, replicates: int = 1000, seed: int = 0) -> tuple[float, Interval]:
    """Mean Dice over patients, with an interval from resampling them; patients whose Dice is NaN are left out."""
    compared = dice[np.isfinite(dice)]
    if not len(compared):
        return float("nan"), UNKNOWN
    interval = bootstrap_interval(lambda drawn: compared[drawn].mean(), len(compared), seed=seed, replicates=replicates)
    return float(compared.mean()), interval
