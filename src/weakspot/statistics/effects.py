"""Effect sizes: with enough data every difference is significant; these say whether it is large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc
from scipy.stats import rankdata, tiecorrect

from weakspot.core.errors import DataError

Floats = NDArray[np.float64]

EFFECT_SIZES = ("negligible", "small", "medium", "large")
"""Verbal classes of |d|, parted at 0.2, 0.5 and 0.8 (Cohen 1992, `cohen1992`)."""


def cohens_d(first: ArrayLike, second: ArrayLike) -> float:
    """Difference of two means in units of the pooled standard deviation (Cohen 1988, `cohen1988`).

    d = (mean₁ − mean₂)/s, s² = ((n₁−1)·var₁ + (n₂−1)·var₂)/(n₁+n₂−2). Equal means give 0 also without any spread.

    >>> cohens_d([2, 4, 6], [1, 3, 5])
    0.5
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    values, groups = np.concatenate([first, second]), np.repeat([0, 1], [first.size, second.size])
    return float(pairwise_cohens_d(values, groups)[0, 1])


def pairwise_cohens_d(values: ArrayLike, groups: ArrayLike) -> Floats:
    """Cohen's d between every two groups, from their moments alone.

    values: one value per input.
    groups: number of the group of each input, 0 … k−1.
    returns: k × k, d[a, b] = (mean_a − mean_b)/s_ab; NaN where a pair has fewer than three values or a group has none.
    """
    values, groups = _checked_groups(values, groups)
    sizes = np.bincount(groups).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(groups, values) / sizes
        squares = np.bincount(groups, (values - means[groups]) ** 2)
        pooled = (squares[:, None] + squares) / (sizes[:, None] + sizes - 2)
        difference = means[:, None] - means
        return np.where((difference == 0) & (pooled >= 0), 0.0, difference / np.sqrt(pooled))


def effect_size_class(d: ArrayLike) -> NDArray[np.str_]:
    """Verbal class of each effect size; see `EFFECT_SIZES`.

    >>> effect_size_class([0.1, -0.3, 0.5, -2.0]).tolist()
    ['negligible', 'small', 'medium', 'large']
    """
    size = np.abs(np.asarray(d, dtype=np.float64))
    if np.isnan(size).any():
        raise DataError("expected effect sizes that are numbers, got NaN; leave out pairs with too few values.")
    return np.array(EFFECT_SIZES)[np.digitize(size, [0.2, 0.5, 0.8])]


@dataclass(frozen=True)
class KruskalWallis:
    """Result of `kruskal_wallis`."""

    statistic: float
    p_value: float
    epsilon_squared: float
    """Effect size: 0, no difference between groups, to 1, groups that do not overlap (Tomczak 2014, `tomczak2014`)."""


def kruskal_wallis(values: ArrayLike, groups: ArrayLike) -> KruskalWallis:
    """Do the groups differ in level? Kruskal and Wallis 1952 (`kruskal1952`), with its effect size.

    H = 12/(N(N+1)) · Σ n_g·(mean rank_g − (N+1)/2)², corrected for ties; ε² = H/(N−1). Unlike scipy's, it takes one
    group number per value, and values that are all equal are no difference (H = 0, p = 1), not an error.

    >>> round(kruskal_wallis([1, 2, 3, 4], [0, 0, 1, 1]).statistic, 9)
    2.4
    """
    values, groups = _checked_groups(values, groups)
    _, groups, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if sizes.size < 2:
        raise DataError("expected values of at least two groups, got one; there is nothing to compare.")
    ranks, number = rankdata(values), values.size
    between = sizes @ (np.bincount(groups, ranks) / sizes - (number + 1) / 2) ** 2
    correction = tiecorrect(ranks)
    statistic = float(12 / (number * (number + 1)) * between / correction) if correction else 0.0
    return KruskalWallis(statistic, float(chdtrc(sizes.size - 1, statistic)), statistic / (number - 1))


def _checked_groups(values: ArrayLike, groups: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    flat, numbers = np.asarray(values, dtype=np.float64), np.asarray(groups)
    if flat.ndim != 1 or flat.shape != numbers.shape or not flat.size:
        raise DataError(f"expected one group number per value, got shapes {flat.shape} and {numbers.shape}.")
    if numbers.dtype.kind not in "iu" or numbers.min() < 0:
        raise DataError(f"expected group numbers 0, 1, 2, …, got {numbers.dtype}; number the groups first.")
    return flat, numbers.astype(np.int64, copy=False)
