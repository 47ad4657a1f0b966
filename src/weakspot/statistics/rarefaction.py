"""How coverage grows with the number of inputs, and how much of it is still unseen.

Both start from *counts*: for every target (a neuron, a section of its range, a pattern), how many inputs reached it.
Counts do not depend on the order of the inputs, and neither do the curve and the estimate derived from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from weakspot.core.errors import DataError

_LOG_OF_NOTHING = 746.0
"""exp(−746) is 0 in float64: beyond it a target is covered for certain."""
_BLOCK = 1 << 20
"""Counts that are looked at together; they may be in a narrow type, and are widened block by block."""


def expected_coverage(
    counts: ArrayLike, inputs: int, sizes: ArrayLike, *, targets: int | None = None
) -> NDArray[np.float64]:
    """Expected share of the targets that a random subset of the inputs covers.

    E[coverage(n)] = mean over targets of 1 − C(N−c, n) / C(N, n), the exact average over all subsets of size n
    (Hurlbert 1971, `hurlbert1971`; sample-based form: Gotelli and Colwell 2001, `gotelli2001`).
    The ratio is the product of 1 − n/(N−i) over i < c. Its logarithm is a sum of terms of one sign, so that, unlike a
    difference of log-gammas, nothing cancels: the relative error stays near 1e-13 for millions of inputs.

    counts: inputs that reached each target, any shape; zeros belong to targets never reached.
    inputs: N, the number of inputs behind the counts.
    sizes: n, the subset sizes, each between 0 and N; any shape.
    targets: how many there are, where `counts` leaves out those never reached; by default as many as counts.
    returns: the expected coverage of each size, in the shape of `sizes`.

    >>> expected_coverage([1, 0], inputs=2, sizes=[0, 1, 2])  # one of two targets, reached by one of two inputs
    array([0.  , 0.25, 0.5 ])
    """
    subset_sizes = np.asarray(sizes)
    if subset_sizes.dtype.kind not in "iu" or subset_sizes.min() < 0 or subset_sizes.max() > inputs:
        raise DataError(
            f"expected subset sizes that are whole numbers between 0 and {inputs} (the number of inputs), "
            f"got {subset_sizes.min()} to {subset_sizes.max()} ({subset_sizes.dtype}); leave out the others."
        )
    targets_with = _targets_with(counts, inputs)
    curve = [_covered(targets_with, inputs, int(size)) for size in subset_sizes.flat]
    return np.array(curve, dtype=np.float64).reshape(subset_sizes.shape) / _all_targets(targets_with, targets)


def _covered(targets_with: NDArray[np.int64], inputs: int, size: int) -> float:
    """Expected number of covered targets, given how many targets have each count 0, 1, 2, …"""
    if size == 0:
        return 0.0
    certain_from = min(inputs - size, int(_LOG_OF_NOTHING * inputs / size)) + 1
    uncertain = targets_with[1:certain_from]
    log_missed = np.cumsum(np.log1p(-size / (inputs - np.arange(uncertain.size))))
    return float(uncertain @ -np.expm1(log_missed)) + float(targets_with[certain_from:].sum())


@dataclass(frozen=True)
class UnseenTargets:
    """How many targets were seen, and how many more of the same kind of input would still reach."""

    seen: int
    """Targets reached by at least one input."""
    unseen: float
    """Estimate of the targets not reached yet that further such inputs would reach; a lower bound in expectation.

    NaN, as are its interval and variance, where fewer than two inputs leave some: nothing could be reached twice.
    """
    low: float
    """Lower end of the interval of `unseen`."""
    high: float
    """Upper end of the interval of `unseen`."""
    variance: float
    """Estimated variance of `unseen`, before it is capped at the number of targets left."""
    confidence: float

    @property
    def completeness(self) -> float:
        """Share of the reachable targets that was seen: seen / (seen + unseen); 1 where nothing can be reached."""
        reachable = self.seen + self.unseen
        return self.seen / reachable if reachable else 1.0


def unseen_targets(
    counts: ArrayLike, inputs: int, *, confidence: float = 0.95, targets: int | None = None
) -> UnseenTargets:
    """Chao2 estimate of the targets that more inputs of the same kind would reach (Chao 1987, `chao1987`).

    With Q1 and Q2 the targets reached by exactly one and exactly two of N inputs and A = (N−1)/N,
    unseen = A·Q1²/(2·Q2), or A·Q1(Q1−1)/2 where Q2 = 0. Estimate and interval (log-normal, so never below what was
    seen) are capped at the number of targets left to reach: a network has only so many. Where fewer
    than two inputs leave some, nothing is known of them: NaN.

    counts: inputs that reached each target, any shape; zeros belong to targets never reached.
    inputs: N, the number of inputs behind the counts.
    confidence: of the interval.
    targets: how many there are, where `counts` leaves out those never reached; by default as many as counts.

    >>> estimate = unseen_targets([1, 1, 1, 1, 2, 2, 5] + [0] * 20, inputs=10)
    >>> estimate.seen, round(estimate.unseen, 2)  # 0.9 · 4² / (2·2)
    (7, 3.6)
    """
    targets_with = _targets_with(counts, inputs)
    _, once, twice = (int(number) for number in np.pad(targets_with, (0, 3))[:3])
    seen = int(targets_with[1:].sum())
    left = _all_targets(targets_with, targets) - seen
    if inputs < 2 and left:
        return UnseenTargets(seen, np.nan, np.nan, np.nan, np.nan, confidence)
    unseen, variance = _chao2(once, twice, seen, (inputs - 1) / inputs)
    low, high = _log_normal_interval(unseen, variance, confidence)
    return UnseenTargets(seen, min(unseen, left), min(low, left), min(high, left), variance, confidence)


def _chao2(once: int, twice: int, seen: int, scale: float) -> tuple[float, float]:
    """Chao2's number of unseen targets and its variance; the second case avoids a division by Q2 = 0."""
    if twice:
        ratio = once / twice
        variance = twice * (scale * ratio**2 / 2 + scale**2 * ratio**3 + scale**2 * ratio**4 / 4)
        return scale * once**2 / (2 * twice), variance
    unseen = scale * once * (once - 1) / 2
    if unseen == 0:
        return 0.0, 0.0
    variance = unseen + scale**2 * once * (2 * once - 1) ** 2 / 4 - scale**2 * once**4 / (4 * (seen + unseen))
    return unseen, variance


def _log_normal_interval(estimate: float, variance: float, confidence: float) -> tuple[float, float]:
    """Interval of a positive estimate whose logarithm is taken as normal: estimate/K to estimate·K."""
    if estimate == 0:
        return 0.0, 0.0
    factor = np.exp(ndtri((1 + confidence) / 2) * np.sqrt(np.log1p(variance / estimate**2)))
    return float(estimate / factor), float(estimate * factor)


def _all_targets(targets_with: NDArray[np.int64], targets: int | None) -> int:
    counted = int(targets_with.sum())
    if targets is None:
        return counted
    if targets < counted:
        raise DataError(f"expected {counted} targets or more, as many as there are counts, got {targets}")
    return targets


def _targets_with(counts: ArrayLike, inputs: int) -> NDArray[np.int64]:
    """How many targets have each count 0, 1, 2, …; counts are refused if they cannot come from that many inputs."""
    flat = np.asarray(counts).ravel()
    if not flat.size:
        raise DataError("expected the count of at least one target, got none; choose layers that have neurons.")
    if flat.dtype.kind not in "iub":
        raise DataError(f"expected whole numbers of inputs per target, got {flat.dtype}; pass counts, not shares.")
    low, high = int(flat.min()), int(flat.max())
    if low < 0 or high > inputs:
        raise DataError(
            f"expected counts between 0 and {inputs} (the number of inputs), got {low} to {high}; "
            "count every input at most once per target."
        )
    blocks = (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    return np.asarray(sum(np.bincount(block.astype(np.int64), minlength=high + 1) for block in blocks))
