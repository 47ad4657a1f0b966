"""Inputs in an order that is unsure and diverse: no two of a kind before there is something else to see."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import DataError
from weakspot.coverage.metrics_ranking import score_order
from weakspot.coverage.reached_targets import Places

CANDIDATES = 5
"""Of the most unsure inputs, how many times the budget are looked at."""
USUAL_BUDGET = 500
"""How many inputs are put into a diverse order where no budget is given."""


def diverse_order(
    uncertainty: ArrayLike, features: NDArray[np.floating], *, budget: int | None = None, rank: ArrayLike | None = None
) -> Places:
    """All inputs: first as many as the budget, greedily by uncertainty × distance to those before; then by uncertainty.

    The next input is argmax u(x)·min over the chosen s of ‖φ(x) − φ(s)‖, φ the features divided by their length, among
    the five times as many most unsure (uncertainty times diversity: the aim of DATIS, Li et al. 2024, `li2024`, by the
    greedy rule of core-sets, Sener and Savarese 2018, `sener2018`).

    uncertainty: (inputs,), from 0 on.
    features: (inputs, neurons).
    rank: settles ties, by default the place.

    >>> diverse_order([0.9, 0.9, 0.5], np.array([[1, 0], [1, 0], [0, 1]]), budget=2).tolist()
    [0, 2, 1]
    """
    unsure = np.asarray(uncertainty, dtype=np.float64)
    if features.ndim != 2 or unsure.shape != features.shape[:1]:
        raise DataError(f"expected features of {len(unsure)} inputs, got an array of shape {features.shape}")
    order = score_order(unsure, rank=np.arange(unsure.size) if rank is None else rank)
    wanted = min(USUAL_BUDGET if budget is None else budget, unsure.size)
    candidates = order[: CANDIDATES * wanted]
    chosen = candidates[_greedy(unsure[candidates], _unit(features[candidates]), wanted)]
    return np.concatenate([chosen, order[~np.isin(order, chosen)]])


def _greedy(unsure: NDArray[np.float64], unit: NDArray[np.float64], wanted: int) -> Places:
    """Places of the chosen among candidates, which come most unsure first; of equals the first."""
    nearest = np.full(unsure.size, 2.0)  # the largest squared distance is 4; before the first all are alike
    left, chosen = np.ones(unsure.size, dtype=np.bool_), np.empty(wanted, dtype=np.int64)
    for turn in range(wanted):
        chosen[turn] = np.argmax(np.where(left, unsure * nearest, -1.0))
        left[chosen[turn]] = False
        distance = np.sqrt(np.maximum(2 - 2 * unit @ unit[chosen[turn]], 0.0))
        nearest = np.minimum(nearest, distance)
    return chosen


def _unit(features: NDArray[np.floating]) -> NDArray[np.float64]:
    values = np.asarray(features, dtype=np.float64)
    length = np.sqrt(np.square(values).sum(1, keepdims=True))
    return values / np.where(length > 0, length, 1)
