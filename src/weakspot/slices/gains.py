"""How much likelier errors are with a rate of their own inside and outside a slice: the scan statistic."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from weakspot.slices.conditions import Flags

Floats = NDArray[np.float64]


def likelihood_gain(size: Floats, errors: Floats, expected: Floats, total: int, total_errors: float) -> Floats:
    """How much likelier the errors are with a rate of their own inside and outside a slice, in nats; 0 without excess.

    e·log(e/E) + (n−e)·log((n−e)/(n−E)) for the inside, and the same for the outside, with n inputs, e errors and E
    errors expected at the rates of the strata. Of one stratum it is the scan statistic of Kulldorff (1997).

    >>> likelihood_gain(np.array([10.0, 10.0]), np.array([9.0, 1.0]), np.array([2.0, 2.0]), 50, 10.0).round(2).tolist()
    [17.09, 0.0]
    """
    inside = _part(size, errors, expected)
    outside = _part(total - size, total_errors - errors, total_errors - expected)
    return np.where(errors > expected, np.maximum(inside + outside, 0.0), 0.0)


def _part(size: Floats, errors: Floats, expected: Floats) -> Floats:
    right, usual = size - errors, size - expected
    tiny = 1e-12
    first = xlogy(errors, np.maximum(errors, tiny) / np.maximum(expected, tiny))
    return np.asarray(first + xlogy(right, np.maximum(right, tiny) / np.maximum(usual, tiny)))


def expected_errors(wrong: Flags, strata: NDArray[np.int64] | None) -> Floats:
    """For each input the error rate of its stratum.

    >>> expected_errors(np.array([True, False, True]), np.array([0, 0, 1])).tolist()
    [0.5, 0.5, 1.0]
    """
    if strata is None:
        return np.full(len(wrong), wrong.mean() if len(wrong) else 0.0)
    numbers = np.unique(strata, return_inverse=True)[1]
    counts = np.bincount(numbers)
    return np.asarray((np.bincount(numbers, wrong) / counts)[numbers])
