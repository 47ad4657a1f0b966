"""How well a score ranks the true entries, and how well a report finds them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import DataError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's rank correlation, ties at their mean rank; NaN where one side is constant.

    >>> spearman([1, 2, 3], [10, 20, 15])
    0.5
    """
    ranks, others = (_mean_ranks(_numbers(values)) for values in _checked_pair(first, second))
    ranks -= ranks.mean()
    others -= others.mean()
    spread = float(np.sqrt((ranks @ ranks) * (others @ others)))
    return float(ranks @ others) / spread if spread else float("nan")


def auroc(score: ArrayLike, truth: ArrayLike) -> float:
    """Chance that a true one scores higher than a false one, ties counting half; NaN where all or none is true.

    U/(n₁·n₀), U = R₁ − n₁(n₁+1)/2 from the mean ranks of the score.

    >>> auroc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    score, truth = _checked_scores(score, truth)
    positives = float(np.count_nonzero(truth))
    negatives = truth.size - positives
    if not positives or not negatives:
        return float("nan")
    return float(_mean_ranks(score)[truth].sum() - positives * (positives + 1) / 2) / (positives * negatives)


def average_precision(score: ArrayLike, truth: ArrayLike) -> float:
    """Σ (recall_k − recall_{k−1})·precision_k over the distinct scores, highest first; NaN where none is true.

    >>> round(average_precision([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]), 4)
    0.8333
    """
    score, truth = _checked_scores(score, truth)
    if not truth.any():
        return float("nan")
    order, ends = _ties(-score)
    hits = np.append(0, np.cumsum(truth[order]))[ends]
    return float(np.diff(hits) @ (hits[1:] / ends[1:])) / float(hits[-1])


@dataclass(frozen=True)
class Detection:
    """What a report finds of the truth: counts, and the shares that follow from them."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> float:
        """Share of the reported that is true; NaN where nothing was reported."""
        return _ratio(self.true_positives, self.reported)

    @property
    def recall(self) -> float:
        """Share of the true that was reported; NaN where nothing is true."""
        return _ratio(self.true_positives, self.true)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN where nothing is true or reported."""
        return _ratio(2 * self.true_positives, self.reported + self.true)

    @property
    def reported(self) -> int:
        """How many were reported."""
        return self.true_positives + self.false_positives

    @property
    def true(self) -> int:
        """How many are true."""
        return self.true_positives + self.false_negatives

    @property
    def by_chance(self) -> float:
        """True positives to expect of a random report of the same length."""
        total = self.reported + self.false_negatives + self.true_negatives
        return _ratio(self.reported * self.true, total)


def detection(reported: ArrayLike, truth: ArrayLike) -> Detection:
    """Compares a report with the truth, entry by entry.

    >>> scores = detection([True, True, False, False], [True, False, True, False])
    >>> scores.precision, scores.recall, scores.f1, scores.by_chance
    (0.5, 0.5, 0.5, 1.0)
    """
    reported, truth = (np.asarray(values, dtype=np.bool_) for values in _checked_pair(reported, truth))
    hits, reports, true = (int(np.count_nonzero(values)) for values in (reported & truth, reported, truth))
    return Detection(hits, reports - hits, true - hits, truth.size - reports - true + hits)


@dataclass(frozen=True)
class CostEffectiveness:
    """Share of the true ones found against the share inspected, best-ranked first."""

    found_share: Floats
    """Share of the true ones found after inspecting k of n, k = 0 … n."""
    true: int
    """How many of the n are true."""

    @property
    def cost(self) -> Floats:
        """Share inspected, k/n."""
        return np.linspace(0, 1, self.found_share.size)

    @property
    def random(self) -> Floats:
        """What a random order finds on average: as much as it inspects."""
        return self.cost

    @property
    def optimal(self) -> Floats:
        """What the best possible order finds: every true one first."""
        return np.minimum(np.arange(self.found_share.size) / self.true, 1)

    @cached_property
    def area(self) -> float:
        """AUCEC, the area under `found_share`; ½ for a random order."""
        return float(np.trapezoid(self.found_share, dx=1 / (self.found_share.size - 1)))

    @property
    def optimal_area(self) -> float:
        """AUCEC of the best possible order, 1 − true/2n."""
        return 1 - self.true / (2 * (self.found_share.size - 1))

    @property
    def gain(self) -> float:
        """Gain over a random order, (area − ½)/½."""
        return self.area / 0.5 - 1

    @property
    def shortfall(self) -> float:
        """Share of the best possible area that is missing, 1 − area/optimal."""
        step = 1 / (self.found_share.size - 1)
        missing = np.trapezoid(self.optimal - self.found_share, dx=step)  # exactly 0 where nothing is
        return float(missing) / self.optimal_area


def cost_effectiveness(score: ArrayLike, truth: ArrayLike) -> CostEffectiveness:
    """Cost-effectiveness curve of a ranking, highest score first (Arisholm et al. 2010, `arisholm2010`).

    Among equal scores the order says nothing, so the curve is straight there: its mean over all their orders.

    >>> curve = cost_effectiveness([0.9, 0.8, 0.1, 0.1], [True, False, True, False])
    >>> curve.found_share.tolist(), curve.area, curve.optimal_area
    ([0.0, 0.5, 0.5, 0.75, 1.0], 0.5625, 0.75)
    """
    score, truth = _checked_scores(score, truth)
    if not truth.any():
        raise DataError("expected at least one true entry to find, got none; there is no curve without errors.")
    order, ends = _ties(-score)
    hits = np.append(0, np.cumsum(truth[order])).astype(np.float64)
    if ends.size < hits.size:
        hits = np.interp(np.arange(hits.size), ends, hits[ends])
    true = int(hits[-1])
    return CostEffectiveness(np.divide(hits, true, out=hits), true)


def _ties(values: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order that sorts the values, and where each run of equal ones ends in it, 0 before the first."""
    order = np.argsort(values, kind="stable")
    last = np.append(np.diff(values[order]) != 0, True)
    return order, np.append(0, np.flatnonzero(last) + 1)


def _mean_ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values at the mean of theirs; in half the memory that scipy's needs."""
    order, ends = _ties(values)
    mean = ends[:-1] + 1.0
    mean += ends[1:]
    mean /= 2
    ranks = np.empty(values.size)
    ranks[order] = np.repeat(mean, np.diff(ends)) if mean.size < values.size else mean
    return ranks


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _checked_pair(first: ArrayLike, second: ArrayLike) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    left, right = np.asarray(first), np.asarray(second)
    if left.ndim != 1 or left.shape != right.shape or not left.size:
        raise DataError(f"expected two lists of the same length, got shapes {left.shape} and {right.shape}.")
    return left, right


def _checked_scores(score: ArrayLike, truth: ArrayLike) -> tuple[Floats, Bools]:
    left, right = _checked_pair(score, truth)
    return _numbers(left), right.astype(np.bool_)


def _numbers(values: NDArray[np.generic]) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if np.isnan(numbers).any():
        raise DataError("expected scores that are numbers, got NaN; leave out what has no score.")
    return numbers
