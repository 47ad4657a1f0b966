"""Sequential tests: stop looking as soon as a share is known to lie above or below a threshold.

A rule is two boundaries: after u trials with r successes, stop and say "above" if r ≥ above[u], "at most" if
r ≤ at_most[u]. After all trials one of the two holds. What a rule does is worked out exactly, not simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import betabinom, binom

from weakspot.core.errors import ConfigError

Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class StoppingRule:
    """When to stop and what to say, after 0 … total trials."""

    above: Integers
    """Successes from which on the share is said to be above the threshold; shape (total + 1,)."""
    at_most: Integers
    """Successes up to which the share is said to be at most the threshold."""

    @property
    def total(self) -> int:
        """The most trials."""
        return len(self.above) - 1

    def verdicts(self, successes: ArrayLike, trials: ArrayLike) -> tuple[Bools, Bools]:
        """Whether to stop, and whether the share is then said to be at most the threshold."""
        some, used = np.asarray(successes), np.asarray(trials)
        below = some <= self.at_most[used]
        return np.asarray(below | (some >= self.above[used])), np.asarray(below)


def certain_rule(total: int, threshold: float) -> StoppingRule:
    """Stop when the remaining trials cannot change the verdict over all trials: no error.

    >>> rule = certain_rule(4, 0.5)
    >>> rule.above.tolist(), rule.at_most.tolist()
    ([3, 3, 3, 3, 3], [-2, -1, 0, 1, 2])
    """
    most = _most(total, threshold)
    return StoppingRule(np.full(total + 1, most + 1), np.arange(total + 1) + most - total)


def predictive_rule(total: int, threshold: float, error: float) -> StoppingRule:
    """Stop when all trials would say otherwise with a chance of at most `error` (Herson 1979, `herson1979`).

    Given r of u, the successes still to come are beta-binomial with a uniform prior of the share, BB(total − u, 1 + r,
    1 + u − r). Over shares drawn from that prior the verdict differs from that over all trials with at most `error`.

    >>> rule = predictive_rule(51, 0.75, error=0.02)
    >>> int(rule.above[12]), int(rule.at_most[12])
    (12, 6)
    """
    _check_error(error)
    certain, most = certain_rule(total, threshold), _most(total, threshold)
    above, at_most = certain.above.copy(), certain.at_most.copy()
    for used in range(1, total):
        right = np.arange(used + 1)
        low = betabinom.cdf(most - right, total - used, 1 + right, 1 + used - right)
        high = betabinom.sf(most - right, total - used, 1 + right, 1 + used - right)
        above[used] = min(above[used], right[low <= error].min(initial=total + 1))
        at_most[used] = max(at_most[used], right[high <= error].max(initial=-1))
    return StoppingRule(above, at_most)


def wald_rule(total: int, threshold: float, error: float, *, zone: float = 0.1) -> StoppingRule:
    """Wald's sequential probability ratio test of threshold + zone against threshold − zone (Wald 1945, `wald1945`).

    Stop when r·ln(p₁/p₀) + (u − r)·ln((1 − p₁)/(1 − p₀)) leaves ± ln((1 − error)/error), or when the verdict over all
    trials is certain. Shares inside the zone are left to chance.

    >>> rule = wald_rule(51, 0.75, error=0.05)
    >>> int(rule.above[20]), int(rule.at_most[20])
    (18, 12)
    """
    _check_error(error)
    low, high = threshold - zone, threshold + zone
    if not 0 < low < high < 1:
        raise ConfigError(
            f"expected 0 < threshold − zone and threshold + zone < 1, got {low:g} and {high:g}: narrow the zone"
        )
    certain, used = certain_rule(total, threshold), np.arange(total + 1)
    gain, loss = np.log(high / low), np.log((1 - high) / (1 - low))
    limit = np.log((1 - error) / error)
    above = np.ceil((limit - used * loss) / (gain - loss)).astype(np.int64)
    at_most = np.floor((-limit - used * loss) / (gain - loss)).astype(np.int64)
    return StoppingRule(np.minimum(above, certain.above), np.maximum(at_most, certain.at_most))


class Operation(NamedTuple):
    """What a rule does for inputs of one share."""

    at_most: float
    """Chance that the rule says "at most the threshold"."""
    trials: float
    """Expected number of trials."""


def operation(rule: StoppingRule, share: float) -> Operation:
    """What a rule does where each trial succeeds with chance `share`, exactly: every path is followed.

    >>> outcome = operation(certain_rule(3, 0.5), 1.0)
    >>> outcome.at_most, outcome.trials
    (0.0, 2.0)
    """
    alive, at_most, trials = np.zeros(rule.total + 2), 0.0, 0.0
    alive[0] = 1.0
    for used in range(1, rule.total + 1):
        trials += float(alive.sum())
        alive = alive * (1 - share) + np.append(0, alive[:-1]) * share
        stop, below = rule.verdicts(np.arange(len(alive)), used)
        at_most += float(alive[below].sum())
        alive = np.where(stop, 0.0, alive)
    return Operation(at_most, trials)


def all_trials(total: int, threshold: float, share: float) -> float:
    """Chance that all trials together say "at most the threshold": what a rule is measured against."""
    return float(binom.cdf(_most(total, threshold), total, share))


def _most(total: int, threshold: float) -> int:
    """The most successes of `total` whose share is still at most the threshold."""
    if total < 1 or not 0 <= threshold < 1:
        raise ConfigError(f"expected at least one trial and 0 ≤ threshold < 1, got {total} and {threshold}")
    shares = np.arange(total + 1) / total
    return int(np.flatnonzero(shares <= threshold)[-1])


def _check_error(error: float) -> None:
    if not 0 < error < 0.5:
        raise ConfigError(f"expected an error rate between 0 and 0.5, got {error}")
