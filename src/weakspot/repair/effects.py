"""The effect of repeated trainings with intervals: both the training and the test set vary by chance."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, t

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate
from weakspot.statistics.clustered import effective_size


@dataclass(frozen=True)
class Effect:
    """A mean difference with its interval, and whether a higher value is the better one."""

    difference: float
    low: float
    high: float
    confidence: float
    higher_is_better: bool = True

    @property
    def verdict(self) -> str:
        """What the interval allows to say."""
        if self.low <= 0 <= self.high:
            return "no difference shown"
        return "better" if (self.low > 0) == self.higher_is_better else "worse"

    def estimate(self, about: str) -> Estimate:
        """As a number of a summary."""
        return Estimate(self.difference, self.low, self.high, self.confidence, about)


def repeated_effect(
    before: np.ndarray, after: np.ndarray, *, groups: np.ndarray | None = None, confidence: float = 0.95
) -> Effect:
    """The mean of after − before over repeats and inputs, shape (repeats, inputs) each, paired in both.

    The variance of the mean is taken as the sum of two parts, which rather overstates it: s²/R between the means of R
    repeats, and what n inputs leave open. For predictions that are correct or not (boolean) the latter is that of
    Bonett and Price 2012 (`bonett2012`), with the mean counts of the repeats. For errors (floats) it is the variance
    over the inputs of the mean over the repeats, over n. The quantile is Student's, with degrees of freedom after
    Satterthwaite 1946. Where inputs belong together (groups), n is the effective number of inputs.

    >>> right_before, right_after = np.zeros((1, 10), bool), np.arange(10)[None] < 6
    >>> effect = repeated_effect(right_before, right_after)
    >>> round(effect.difference, 3), round(effect.low, 3), round(effect.high, 3), effect.verdict
    (0.6, 0.135, 0.865, 'better')
    """
    if before.shape != after.shape or before.ndim != 2 or not before.size or before.dtype != after.dtype:
        raise DataError(
            f"expected two arrays (repeats, inputs) of one kind, got {before.dtype}{before.shape} and "
            f"{after.dtype}{after.shape}"
        )
    classes = before.dtype == bool
    differences = after.astype(np.float64) - before
    part = _part(differences, groups, confidence)
    centre, of_inputs = _shares(before, after, part) if classes else _numbers(differences, part)
    repeats = len(differences)
    of_repeats = float(differences.mean(1).var(ddof=1)) / repeats if repeats > 1 else 0.0
    variance = of_inputs + of_repeats
    freedom = np.inf if not of_repeats else variance**2 * (repeats - 1) / of_repeats**2
    spread = float(t.ppf(0.5 + confidence / 2, freedom)) * variance**0.5
    ends = (centre - spread, centre + spread)
    low, high = (max(ends[0], -1.0), min(ends[1], 1.0)) if classes else ends
    return Effect(float(differences.mean()), low, high, confidence, higher_is_better=bool(classes))


def _part(differences: np.ndarray, groups: np.ndarray | None, confidence: float) -> float:
    """How many independent inputs one counts for."""
    if groups is None:
        return 1.0
    over_repeats = differences.mean(0)
    return effective_size(over_repeats - over_repeats.mean(), groups, confidence=confidence) / len(over_repeats)


def _shares(before: np.ndarray, after: np.ndarray, part: float) -> tuple[float, float]:
    """Centre and variance of the difference of two shares, by how many inputs are gained and lost per repeat."""
    total = before.shape[1] * part + 2
    gained, lost = ((one & ~other).sum(1).mean() * part for one, other in ((after, before), (before, after)))
    p, q = (gained + 1) / total, (lost + 1) / total
    return float(p - q), float((p + q - (p - q) ** 2) / total)


def _numbers(differences: np.ndarray, part: float) -> tuple[float, float]:
    over_inputs, count = differences.mean(0), differences.shape[1] * part
    return float(over_inputs.mean()), float(over_inputs.var(ddof=1)) / count if count > 1 else np.inf


def mcnemar(fixed: int, broken: int) -> float:
    """Exact p-value of so uneven a split if both were equally likely (McNemar 1947).

    >>> mcnemar(8, 0)
    0.0078125
    """
    return float(binomtest(fixed, fixed + broken).pvalue) if fixed + broken else 1.0
