"""Sequential tests: stop looking as soon as it is known whether a share is low: below a threshold, or at or below it.

A rule is two boundaries: after u trials with r successes, stop and say "high" if r ≥ high[u], "low" if r ≤ low[u].
After all trials one of the two holds. What a rule does is worked out exactly, not simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import betabinom, binom

from weakspot.core.errors import ConfigError
from weakspot.statistics.thresholds import LowIf, check_threshold, low_shares

Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class StoppingRule:
    """When to stop and what to say, after 0 … total trials."""

    high: Integers
    """Successes from which on the share is said to be high; shape (total + 1,)."""
    low: Integers
    """Successes up to which the share is said to be low."""

    @property
    def total(self) -> int:
        """The most trials."""
        return len(self.high) - 1

    def verdicts(self, successes: ArrayLike, trials: ArrayLike) -> tuple[Bools, Bools]:
        """Whether to stop, and whether the share is then said to be low."""
        some, used = np.asarray(successes), np.asarray(trials)
        low = some <= self.low[used]
        return np.asarray(low | (some >= self.high[used])), np.asarray(low)


def certain_rule(total: int, threshold: float, low_if: LowIf = "below") -> StoppingRule:
    """Stop when the remaining trials cannot change the verdict over all trials: no error.

    >>> rule = certain_rule(4, 0.5)
    >>> rule.high.tolist(), rule.low.tolist()
    ([2, 2, 2, 2, 2], [-3, -2, -1, 0, 1])
    """
    most = _most(total, threshold, low_if)
    return StoppingRule(np.full(total + 1, most + 1), np.arange(total + 1) + most - total)


def predictive_rule(total: int, threshold: float, error: float, low_if: LowIf = "below") -> StoppingRule:
    """Stop when all trials would say otherwise with a chance of at most `error` (Herson 1979, `herson1979`).

    Given r of u, the successes still to come are beta-binomial with a uniform prior of the share, BB(total − u, 1 + r,
    1 + u − r). Over shares drawn from that prior the verdict differs from that over all trials with at most `error`.

    >>> rule = predictive_rule(51, 0.75, error=0.02)
    >>> int(rule.high[12]), int(rule.low[12])
    (12, 6)
    """
    _check_error(error)
    certain, most = certain_rule(total, threshold, low_if), _most(total, threshold, low_if)
    high, low = certain.high.copy(), certain.low.copy()
    for used in range(1, total):
        right = np.arange(used + 1)
        low_in_the_end = betabinom.cdf(most - right, total - used, 1 + right, 1 + used - right)
        high_in_the_end = betabinom.sf(most - right, total - used, 1 + right, 1 + used - right)
        high[used] = min(high[used], right[low_in_the_end <= error].min(initial=total + 1))
        low[used] = max(low[used], right[high_in_the_end <= error].max(initial=-1))
    return StoppingRule(high, low)


def wald_rule(
    total: int, threshold: float, error: float, low_if: LowIf = "below", *, zone: float = 0.1
) -> StoppingRule:
    """Wald's sequential probability ratio test of threshold + zone against threshold − zone (Wald 1945, `wald1945`).

    Stop when r·ln(p₁/p₀) + (u − r)·ln((1 − p₁)/(1 − p₀)) leaves ± ln((1 − error)/error), or when the verdict over all
    trials is certain. Shares inside the zone are left to chance.

    >>> rule = wald_rule(51, 0.75, error=0.05)
    >>> int(rule.high[20]), int(rule.low[20])
    (18, 12)
    """
    _check_error(error)
    lower, upper = threshold - zone, threshold + zone
    if not 0 < lower < upper < 1:
        raise ConfigError(
            f"expected 0 < threshold − zone and threshold + zone < 1, got {lower:g} and {upper:g}: narrow the zone"
        )
    certain, used = certain_rule(total, threshold, low_if), np.arange(total + 1)
    gain, loss = np.log(upper / lower), np.log((1 - upper) / (1 - lower))
    limit = np.log((1 - error) / error)
    high = np.ceil((limit - used * loss) / (gain - loss)).astype(np.int64)
    low = np.floor((-limit - used * loss) / (gain - loss)).astype(np.int64)
    return StoppingRule(np.minimum(high, certain.high), np.maximum(low, certain.low))


class Operation(NamedTuple):
    """What a rule does for inputs of one share."""

    low: float
    """Chance that the rule says "low"."""
    trials: float
    """Expected number of trials."""


def operation(rule: StoppingRule, share: float) -> Operation:
    """What a rule does where each trial succeeds with chance `share`, exactly: every path is followed.

    >>> outcome = operation(certain_rule(3, 0.5), 1.0)
    >>> outcome.low, outcome.trials
    (0.0, 2.0)
    """
    alive, low, trials = np.zeros(rule.total + 2), 0.0, 0.0
    alive[0] = 1.0
    for used in range(1, rule.total + 1):
        trials += float(alive.sum())
        alive = alive * (1 - share) + np.append(0, alive[:-1]) * share
        stop, said_low = rule.verdicts(np.arange(len(alive)), used)
        low += float(alive[said_low].sum())
        alive = np.where(stop, 0.0, alive)
    return Operation(low, trials)


def all_trials(total: int, threshold: float, share: float, low_if: LowIf = "below") -> float:
    """Chance that all trials together say "low": what a rule is measured against."""
    return float(binom.cdf(_most(total, threshold, low_if), total, share))


def _most(total: int, threshold: float, low_if: LowIf) -> int:
    """The most successes of `total` whose share is still low."""
    if total < 1:
        raise ConfigError(f"expected at least one trial, got {total}")
    check_threshold(threshold, low_if)
    return int(np.flatnonzero(low_shares(np.arange(total + 1) / total, threshold, low_if))[-1])


def _check_error(error: float) -> None:
    if not 0 < error < 0.5:
        raise ConfigError(f"expected an error rate between 0 and 0.5, got {error}")
