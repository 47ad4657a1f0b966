"""Intervals where samples belong together, such as frames of one film: by how much their number counts for less."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from weakspot.core.errors import DataError
from weakspot.statistics.intervals import Interval, normal_quantile, wilson_interval
from weakspot.statistics.paired import paired_difference_interval

Floats = NDArray[np.float64]


def design_effect(deviations: ArrayLike, groups: ArrayLike) -> float:
    """By how much the variance of a mean is larger than if its samples were independent (Kish 1965, `kish1965`).

    G/(G − 1)·Σ_g (Σ_{i∈g} d_i)² / Σ_i d_i², with d_i how far sample i moves the mean, summing to 0, and G groups. At
    least 1. Where no d_i differs from 0, and for one group, samples of a group are taken to be wholly alike: Σ m_g²/n.

    >>> design_effect([1, 1, -1, -1], ["a", "a", "b", "b"])
    4.0
    """
    values, numbers = _checked(deviations, groups)
    sizes, sums = np.bincount(numbers).astype(np.float64), np.bincount(numbers, values)
    total, squares = len(sizes), float((values**2).sum())
    alike = float((sizes**2).sum() / sizes.sum())
    if total < 2 or squares <= 1e-12 * len(values):
        return alike
    return max(total / (total - 1) * float((sums**2).sum()) / squares, 1.0)


def effective_size(deviations: ArrayLike, groups: ArrayLike, *, confidence: float = 0.95) -> float:
    """How many independent samples would give an interval as wide: n / design effect · (z / t(f))².

    The second factor, of Korn and Graubard (1998, `korn1998`), allows for a variance that is known from G groups only.
    The degrees of freedom are f = min(G − 1, 2G/(κ − 1)), κ the kurtosis of the groups' sums (Satterthwaite 1946,
    `satterthwaite1946`): where few groups hold all errors, little is known of how groups vary.
    """
    values, numbers = _checked(deviations, groups)
    narrower = normal_quantile(confidence) / float(student.ppf((1 + confidence) / 2, _degrees(values, numbers)))
    return len(values) / design_effect(values, numbers) * narrower**2


def _degrees(values: Floats, numbers: NDArray[np.int64]) -> float:
    """Degrees of freedom of the variance between groups, at least 1."""
    sums = np.bincount(numbers, values)
    total, squares = len(sums), float((sums**2).sum())
    kurtosis = total * float((sums**4).sum()) / squares**2 if squares > 1e-12 * len(values) else 1.0
    shape = 2 * total / (kurtosis - 1) if kurtosis > 1 else np.inf
    return float(max(min(total - 1, shape), 1))


def grouped_share_interval(flags: ArrayLike, groups: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a share on the effective number of samples (Wilson 1927; Korn and Graubard 1998).

    flags: what is counted, boolean, shape (samples,).
    groups: what each sample belongs to.
    confidence: of the interval.

    >>> low, high = grouped_share_interval([True, True, False, False] * 5, np.repeat(np.arange(10), 2))
    >>> round(float(low), 3), round(float(high), 3)
    (0.199, 0.801)
    """
    values = np.asarray(flags, dtype=np.float64)
    share = values.mean()
    effective = effective_size(values - share, groups, confidence=confidence)
    return wilson_interval(share * effective, effective, confidence=confidence)


def grouped_mean_interval(values: ArrayLike, groups: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Interval of a mean over samples that belong together: x̄ ± t·√(G/(G − 1)·Σ_g (Σ (x − x̄))²)/n.

    One group leaves everything open: −∞ to ∞.
    """
    numbers = np.asarray(values, dtype=np.float64)
    mean, of_group = numbers.mean(), np.unique(np.asarray(groups), return_inverse=True)[1]
    total = int(of_group.max()) + 1
    if total < 2:
        return Interval(np.asarray(-np.inf), np.asarray(np.inf))
    sums = np.bincount(of_group, numbers - mean)
    error = np.sqrt(total / (total - 1) * (sums**2).sum()) / len(numbers)
    width = float(student.ppf((1 + confidence) / 2, _degrees(numbers - mean, of_group))) * error
    return Interval(np.asarray(mean - width), np.asarray(mean + width))


def grouped_paired_interval(
    before: ArrayLike, after: ArrayLike, groups: ArrayLike, *, confidence: float = 0.95
) -> Interval:
    """Interval of the difference of two shares, or of two means, over the same samples, which belong together.

    Of truth values as `paired_difference_interval` on the effective number of samples; of numbers as
    `grouped_mean_interval` of the changes.
    """
    first, second = np.asarray(before), np.asarray(after)
    change = second.astype(np.float64) - first.astype(np.float64)
    if first.dtype != bool:
        return grouped_mean_interval(change, groups, confidence=confidence)
    effective = effective_size(change - change.mean(), groups, confidence=confidence)
    return paired_difference_interval(first, second, effective=effective, confidence=confidence)


def auroc_deviations(scores: ArrayLike, positive: ArrayLike) -> Floats:
    """How far each sample moves the area under the curve: DeLong's placements about the area (1988, `delong1988`).

    n/n₁·(share of negatives below it − A) of a positive, n/n₀·(share of positives above it − A) of a negative; ties
    count a half. Obuchowski (1997, `obuchowski1997`) sums these by group.
    """
    values, true = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    high, low = np.sort(values[true]), np.sort(values[~true])
    below = (np.searchsorted(low, values) + np.searchsorted(low, values, "right")) / (2 * len(low))
    above = 1 - (np.searchsorted(high, values) + np.searchsorted(high, values, "right")) / (2 * len(high))
    area = below[true].mean()
    moved = np.where(true, (below - area) / len(high), (above - area) / len(low))
    return np.asarray(moved * len(values))


def group_numbers(groups: ArrayLike) -> NDArray[np.int64]:
    """A number from 0 for each sample's group."""
    return np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.int64)


def group_positions(groups: ArrayLike) -> list[NDArray[np.intp]]:
    """The places of the samples of each group."""
    numbers = group_numbers(groups)
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def _checked(deviations: ArrayLike, groups: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    values, names = np.asarray(deviations, dtype=np.float64), np.asarray(groups)
    if values.ndim != 1 or names.shape != values.shape or not len(values):
        raise DataError(f"expected one group per sample, got {values.shape} samples and {names.shape} groups")
    return values, group_numbers(names)
