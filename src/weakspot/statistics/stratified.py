"""A share of a finite population, estimated from a few labels per stratum."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import DataError
from weakspot.statistics.intervals import Interval, normal_quantile

Floats = NDArray[np.float64]
_STEPS = 100


def stratified_share(
    population: ArrayLike, trials: ArrayLike, successes: ArrayLike, *, confidence: float = 0.95
) -> tuple[Floats, Interval]:
    """Σ W_h·k_h/n_h, unbiased where n_h of N_h were drawn at random in each stratum, with its score interval.

    The interval holds every share θ with |θ̂ − θ| ≤ z·√(Σ W_h²·p̃_h(1 − p̃_h)/n_h·(1 − n_h/N_h)), where p̃ are the most
    likely shares of the strata among those with Σ W_h·p̃_h = θ. So a stratum in which nothing was found still counts;
    for a single stratum of a large population it is Wilson's interval (`wilson1927`; stratified sampling:
    `neyman1934`, score intervals under a constraint: `miettinen1985`).

    population, trials: (strata,).
    successes: (strata,) or (repetitions, strata).

    >>> value, (low, high) = stratified_share([10**9], [10], [8])
    >>> float(value), round(float(low), 4), round(float(high), 4)
    (0.8, 0.4902, 0.9433)
    """
    sizes, n, k = (np.asarray(values, dtype=np.float64) for values in (population, trials, successes))
    if not ((n >= 1) & (n <= sizes)).all() or not ((k >= 0) & (k <= n)).all():
        raise DataError("expected 0 ≤ successes ≤ trials ≤ population and at least one trial in every stratum")
    weights = sizes / sizes.sum()
    value = (weights * k / n).sum(-1)
    spread = normal_quantile(confidence) ** 2 * weights**2 / n * (1 - n / sizes)
    low, high = (_end(value, weights, n, k, spread, side) for side in (1, -1))
    return value, Interval(low, high)


def _end(value: Floats, weights: Floats, n: Floats, k: Floats, spread: Floats, side: int) -> Floats:
    """One end: the multiplier λ of the constraint is sought at which the distance equals the spread."""
    small, large = np.full(value.shape, -14.0), np.full(value.shape, 14.0)  # powers of ten
    for _ in range(_STEPS):
        middle = (small + large) / 2
        shares = _constrained(side * n.sum() * 10 ** middle[..., None], weights, n, k)
        outside = (value - (weights * shares).sum(-1)) ** 2 > (spread * shares * (1 - shares)).sum(-1)
        small, large = np.where(outside, small, middle), np.where(outside, middle, large)
    return np.asarray((weights * _constrained(side * n.sum() * 10 ** small[..., None], weights, n, k)).sum(-1))


def _constrained(multiplier: Floats, weights: Floats, n: Floats, k: Floats) -> Floats:
    """The most likely shares given the multiplier: k/p − (n − k)/(1 − p) = λ·W, solved without cancellation."""
    pull = multiplier * weights
    total = pull + n
    root = np.sqrt(np.maximum(total**2 - 4 * pull * k, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(total + root > 0, 2 * k / (total + root), (total - root) / (2 * pull))
        shares = np.where(total < 0, (total - root) / (2 * pull), shares)
    return np.asarray(np.clip(np.nan_to_num(shares), 0, 1))
