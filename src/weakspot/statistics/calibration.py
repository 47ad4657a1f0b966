"""Calibration: does a probability mean what it says?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import DataError

Floats = NDArray[np.float64]


def platt_scaling(scores: ArrayLike, truth: ArrayLike, *, steps: int = 50) -> Floats:
    """Slope a and offset b of P(true) = 1/(1 + exp(−(a·score + b))) by maximum likelihood (Platt 1999, `platt1999`).

    Newton's method on targets that are smoothed as Platt does, (n₁+1)/(n₁+2) and 1/(n₀+2), so that scores which part
    the true from the false perfectly still give a finite slope.

    >>> platt_scaling([-2, -1, 0, 1, 2, 3], [0, 0, 1, 0, 1, 1]).round(2).tolist()
    [0.54, -0.27]
    """
    values, right = np.asarray(scores, dtype=np.float64), np.asarray(truth, dtype=np.bool_)
    if values.shape != right.shape or values.ndim != 1 or not values.size:
        raise DataError(f"expected one score per input, got shapes {values.shape} and {right.shape}.")
    true, false = int(right.sum()), int((~right).sum())
    target = np.where(right, (true + 1) / (true + 2), 1 / (false + 2))
    spread = float(values.std()) or 1.0
    design = np.stack([(values - values.mean()) / spread, np.ones(values.size)], 1)
    weights = np.zeros(2)
    for _ in range(steps):
        p = logistic(design @ weights)
        curvature = (design * (p * (1 - p))[:, None]).T @ design + 1e-9 * np.eye(2)
        move = np.linalg.solve(curvature, design.T @ (target - p))
        weights = weights + np.clip(move, -4, 4)
        if np.abs(move).max() < 1e-10:
            break
    slope = weights[0] / spread
    return np.array([slope, weights[1] - slope * values.mean()])


def logistic(odds: ArrayLike) -> Floats:
    """1/(1 + exp(−odds)), without overflow.

    >>> logistic([-1000.0, 0.0, 1000.0]).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(0.5 * (1 + np.tanh(0.5 * np.asarray(odds, dtype=np.float64))))


def brier_score(probability: ArrayLike, truth: ArrayLike) -> float:
    """Mean squared difference between probability and truth; 0 is perfect (Brier 1950, `brier1950`).

    >>> round(brier_score([0.8, 0.3], [True, False]), 3)
    0.065
    """
    return float(np.mean((np.asarray(probability, dtype=np.float64) - np.asarray(truth, dtype=np.float64)) ** 2))


class Reliability(NamedTuple):
    """Predicted probabilities and how often they came true, in bins of equal width."""

    probability: Floats
    """Mean probability of each bin, NaN where it is empty."""
    frequency: Floats
    """Share of true ones in each bin."""
    inputs: NDArray[np.int64]

    @property
    def error(self) -> float:
        """Expected calibration error: mean over the inputs of |probability − frequency| of their bin."""
        filled = self.inputs > 0
        gaps = np.abs(self.probability[filled] - self.frequency[filled])
        return float(gaps @ self.inputs[filled] / self.inputs.sum())


def reliability(probability: ArrayLike, truth: ArrayLike, *, bins: int = 10) -> Reliability:
    """The reliability diagram of some probabilities, in `bins` bins of equal width.

    >>> curve = reliability([0.1, 0.1, 0.9, 0.9], [False, False, True, False], bins=2)
    >>> curve.probability.round(2).tolist(), curve.frequency.tolist(), round(curve.error, 2)
    ([0.1, 0.9], [0.0, 0.5], 0.25)
    """
    p, true = np.asarray(probability, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    bin_of = np.minimum((p * bins).astype(np.int64), bins - 1)
    count = np.bincount(bin_of, minlength=bins)
    with np.errstate(invalid="ignore"):
        mean, frequency = (np.bincount(bin_of, values, bins) / count for values in (p, true))
    return Reliability(mean, frequency, count)
