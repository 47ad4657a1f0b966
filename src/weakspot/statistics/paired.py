"""Paired comparisons: the same inputs, predicted before and after."""

import numpy as np
from numpy.typing import ArrayLike

from weakspot.core.errors import DataError
from weakspot.statistics.intervals import Interval, normal_quantile


def paired_difference_interval(
    before: ArrayLike, after: ArrayLike, *, effective: float | None = None, confidence: float = 0.95
) -> Interval:
    """Interval of the difference of two shares over the same inputs (Bonett and Price 2012, `bonett2012`).

    With b inputs right only after and c right only before, n in all: p = (b+1)/(n+2), q = (c+1)/(n+2), and the interval
    p − q ± z·√((p + q − (p − q)²)/(n + 2)). Close to the promised confidence also for few inputs.

    before: whether each input was predicted correctly before, boolean, shape (inputs,).
    after: whether it is after.
    effective: how many independent inputs these count for, where inputs belong together; by default all.
    confidence: of the interval.

    >>> low, high = paired_difference_interval([False] * 6 + [True] * 4, [True] * 8 + [False] * 2)
    >>> round(float(low), 3), round(float(high), 3)
    (-0.147, 0.814)
    """
    first, second = np.asarray(before), np.asarray(after)
    if first.dtype != bool or second.dtype != bool or first.shape != second.shape or first.ndim != 1 or not first.size:
        raise DataError(
            f"expected two boolean columns of equal length, got {first.dtype}{first.shape} and "
            f"{second.dtype}{second.shape}; pair them by the inputs' ids"
        )
    weight = 1.0 if effective is None else effective / first.size
    gained, lost = int((~first & second).sum()) * weight, int((first & ~second).sum()) * weight
    total = first.size * weight + 2
    p, q = (gained + 1) / total, (lost + 1) / total
    spread = normal_quantile(confidence) * np.sqrt((p + q - (p - q) ** 2) / total)
    return Interval(np.asarray(max(p - q - spread, -1.0)), np.asarray(min(p - q + spread, 1.0)))
