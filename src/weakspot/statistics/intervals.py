"""Intervals: how far a measured share, difference or statistic can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from weakspot.core.errors import ConfigError, DataError

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """Lower and upper ends, each a number or an array of the shape of what was measured."""

    low: Floats
    high: Floats


def wilson_interval(successes: ArrayLike, trials: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a share (Wilson 1927, `wilson1927`).

    (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n) with p = successes/trials, n = trials. Close to the promised
    confidence also for few trials and for shares near 0 or 1; no trials at all leave everything open: 0 to 1.

    >>> low, high = wilson_interval(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    successes, trials, z = *_checked_share(successes, trials), normal_quantile(confidence)
    # multiplied through by n, so that no trials need no case of their own
    scale, centre = trials + z**2, successes + z**2 / 2
    spread = z * np.sqrt(_variance(successes, trials) + z**2 / 4)
    return Interval(np.maximum((centre - spread) / scale, 0), np.minimum((centre + spread) / scale, 1))


def clopper_pearson_interval(successes: ArrayLike, trials: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Exact interval of a share: never less sure than it says (Clopper and Pearson 1934, `clopper1934`).

    Quantiles of Beta(s, n−s+1) and Beta(s+1, n−s). Wider than Wilson's; for safety claims where "at least" counts.

    >>> round(float(clopper_pearson_interval(0, 300).high), 4)  # no failure in 300 trials
    0.0122
    """
    successes, trials = _checked_share(successes, trials)
    tail, failures = _tail(confidence), trials - successes
    low = betaincinv(np.maximum(successes, 1), failures + 1, tail)
    high = betaincinv(successes + 1, np.maximum(failures, 1), 1 - tail)
    return Interval(np.where(successes > 0, low, 0.0), np.where(failures > 0, high, 1.0))


def difference_interval(
    successes: ArrayLike,
    trials: ArrayLike,
    other_successes: ArrayLike,
    other_trials: ArrayLike,
    *,
    confidence: float = 0.95,
) -> Interval:
    """Interval of the difference p₁ − p₂ of two independent shares (Newcombe 1998, `newcombe1998`, method 10).

    With [l, u] Wilson's intervals: from d − √((p₁−l₁)² + (u₂−p₂)²) to d + √((u₁−p₁)² + (p₂−l₂)²).

    >>> low, high = difference_interval(56, 70, 48, 80)  # 0.80 against 0.60
    >>> round(float(low), 4), round(float(high), 4)
    (0.0524, 0.3339)
    """
    low, high = wilson_interval(successes, trials, confidence=confidence)
    other_low, other_high = wilson_interval(other_successes, other_trials, confidence=confidence)
    first, second = _share(successes, trials), _share(other_successes, other_trials)
    below, above = np.hypot(first - low, other_high - second), np.hypot(high - first, second - other_low)
    return Interval(first - second - below, first - second + above)


def mean_interval(values: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Interval of a mean: x̄ ± t(n−1)·s/√n (Student 1908, `student1908`).

    values: independent measurements, shape (n,), two at least.
    confidence: of the interval.
    """
    numbers = np.asarray(values, dtype=np.float64)
    width = stdtrit(len(numbers) - 1, (1 + confidence) / 2) * numbers.std(ddof=1) / np.sqrt(len(numbers))
    return Interval(np.asarray(numbers.mean() - width), np.asarray(numbers.mean() + width))


def bootstrap_interval(
    statistic: Callable[[NDArray[np.intp]], ArrayLike],
    size: int,
    *,
    seed: int,
    replicates: int = 1000,
    confidence: float = 0.95,
) -> Interval:
    """Percentile interval of a statistic over resampled inputs (Efron 1979, `efron1979`).

    statistic: value (a number or an array) of the inputs with the given positions, drawn with replacement.
    size: number of inputs; positions run from 0 to size − 1.
    seed: of the draws; the same seed gives the same interval.
    replicates: how often to draw.
    confidence: share of the replicates inside the interval.

    >>> heights = np.array([1.6, 1.7, 1.8, 1.9])
    >>> low, high = bootstrap_interval(lambda drawn: heights[drawn].mean(), 4, seed=0)
    >>> bool(1.6 <= low < 1.75 < high <= 1.9)
    True
    """
    if size < 1 or replicates < 1:
        raise ConfigError(f"expected at least one input and one replicate, got {size} and {replicates}; raise them.")
    generator = np.random.default_rng(seed)
    drawn = [np.asarray(statistic(generator.integers(size, size=size)), dtype=np.float64) for _ in range(replicates)]
    return percentile_interval(np.stack(drawn), confidence=confidence)


def percentile_interval(values: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Middle part of the values along the first axis; replicates that are NaN are left out."""
    tail = _tail(confidence)
    low, high = np.nanquantile(np.asarray(values, dtype=np.float64), [tail, 1 - tail], axis=0)
    return Interval(low, high)


def resampled_counts(size: int, *, seed: int | Sequence[int], replicates: int = 1000) -> NDArray[np.int64]:
    """How often each of `size` inputs is drawn when as many are drawn with replacement; shape (replicates, size).

    For statistics of weighted inputs, which a product with this matrix gives for all replicates at once (Efron 1979,
    `efron1979`).

    >>> counts = resampled_counts(3, seed=0, replicates=100)
    >>> counts.shape, set(counts.sum(1).tolist())
    ((100, 3), {3})
    """
    counts = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=replicates)
    return np.asarray(counts)


def correlation_interval(correlation: ArrayLike, number: int, *, confidence: float = 0.95) -> Interval:
    """Interval of Spearman's rank correlation of so many pairs (Bonett and Wright 2000, `bonett2000`).

    tanh(artanh(r) ± z·√((1 + r²/2)/(n − 3))); three pairs or fewer leave everything open: −1 to 1.

    >>> low, high = correlation_interval(0.5, 103)
    >>> round(float(low), 3), round(float(high), 3)
    (0.329, 0.639)
    """
    r = np.asarray(correlation, dtype=np.float64)
    if number <= 3:
        return Interval(np.full_like(r, -1.0), np.full_like(r, 1.0))
    spread = normal_quantile(confidence) * np.sqrt((1 + r**2 / 2) / (number - 3))
    with np.errstate(divide="ignore"):
        centre = np.arctanh(r)
    return Interval(np.tanh(centre - spread), np.tanh(centre + spread))


LEAST_RESAMPLED = 5
"""Below so many, resampling gives no useful interval: of one it has no width at all."""


def too_few_to_resample(count: int, what: str) -> str:
    """Why resampling so many of something gives no interval, or nothing.

    >>> too_few_to_resample(1, "samples"), too_few_to_resample(5, "samples")
    ('no interval: it takes 5 samples, here are 1', '')
    """
    return "" if count >= LEAST_RESAMPLED else f"no interval: it takes {LEAST_RESAMPLED} {what}, here are {count}"


def auroc_interval(area: float, positives: float, negatives: float, *, confidence: float = 0.95) -> Interval:
    """Interval of the area under a ROC curve (Hanley and McNeil 1982, `hanley1982`).

    se² = (A(1−A) + (n₁−1)(Q₁−A²) + (n₀−1)(Q₂−A²))/(n₁·n₀) with Q₁ = A/(2−A), Q₂ = 2A²/(1+A). At 0 and 1 that would be
    none at all, of however few: there it is taken half an entry of the rarer kind inside.

    >>> low, high = auroc_interval(0.893, 51, 58)  # the paper's own example: standard error 0.032
    >>> round(float(low), 2), round(float(high), 2)
    (0.83, 0.96)
    >>> low, high = auroc_interval(1.0, 1, 50)
    >>> round(float(low), 2), float(high)
    (0.44, 1.0)
    """
    if positives <= 0 or negatives <= 0:
        raise DataError(f"expected some of both kinds, got {positives} and {negatives}; there is no area.")
    inside = _off_the_ends(area, min(positives, negatives))
    square, above, below = inside**2, inside / (2 - inside), 2 * inside**2 / (1 + inside)
    variance = (
        inside * (1 - inside) + max(positives - 1, 0) * (above - square) + max(negatives - 1, 0) * (below - square)
    )
    spread = normal_quantile(confidence) * np.sqrt(max(variance, 0.0) / (positives * negatives))
    return Interval(np.asarray(max(area - spread, 0.0)), np.asarray(min(area + spread, 1.0)))


def f1_interval(
    true_positives: int, false_positives: int, false_negatives: int, *, confidence: float = 0.95
) -> Interval:
    """Interval of F1 = 2J/(1 + J), J = TP/(TP + FP + FN), from Wilson's interval of the share J.

    F1 rises with J, and given how many are reported or true, J is a share like any other.

    >>> low, high = f1_interval(60, 20, 20)
    >>> round(float(low), 3), round(float(high), 3)
    (0.668, 0.817)
    """
    low, high = wilson_interval(
        true_positives, true_positives + false_positives + false_negatives, confidence=confidence
    )
    return Interval(2 * low / (1 + low), 2 * high / (1 + high))


def average_precision_interval(area: float, positives: int, *, confidence: float = 0.95) -> Interval:
    """Interval of average precision, on the scale of log-odds (Boyd et al. 2013, `boyd2013`).

    logit(A) ± z/√(n₁·A(1 − A)), n₁ the number of true ones; near 0 and 1 the interval reaches to the area itself.

    >>> low, high = average_precision_interval(0.8, 100)
    >>> round(float(low), 3), round(float(high), 3)
    (0.71, 0.867)
    """
    if positives < 1:
        raise DataError("expected at least one true entry, got none; there is no average precision.")
    inside = _off_the_ends(area, positives)
    centre, spread = (
        np.log(inside / (1 - inside)),
        normal_quantile(confidence) / np.sqrt(positives * inside * (1 - inside)),
    )
    low, high = (1 / (1 + np.exp(-(centre + side * spread))) for side in (-1, 1))
    return Interval(np.asarray(min(low, area)), np.asarray(max(high, area)))


def _off_the_ends(area: float, number: float) -> float:
    """The area, half an entry of so many away from 0 and 1, where formulas see no chance at work."""
    edge = 0.5 / (number + 1)
    return min(max(area, edge), 1 - edge)


def _checked_share(successes: ArrayLike, trials: ArrayLike) -> tuple[Floats, Floats]:
    """Both as floats, refused unless 0 ≤ successes ≤ trials."""
    some, all_ = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    if not ((some >= 0) & (some <= all_)).all():
        raise DataError(
            f"expected 0 ≤ successes ≤ trials, got {np.min(some):g} to {np.max(some):g} successes "
            f"of {np.min(all_):g} to {np.max(all_):g} trials; pass counts, not shares."
        )
    return some, all_


def _share(successes: ArrayLike, trials: ArrayLike) -> Floats:
    """successes/trials; one half where there were no trials."""
    some, all_ = _checked_share(successes, trials)
    return np.where(all_ > 0, some / np.maximum(all_, 1), 0.5)


def _variance(successes: Floats, trials: Floats) -> Floats:
    """n·p·(1−p), zero for no trials."""
    return successes * (trials - successes) / np.maximum(trials, 1)


def _tail(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ConfigError(f"expected a confidence between 0 and 1, got {confidence}; for 95 % write 0.95.")
    return (1 - confidence) / 2


def normal_quantile(confidence: float) -> float:
    """How many standard deviations of a normal distribution lie on either side: 1.96 for 95 %."""
    return float(-ndtri(_tail(confidence)))
