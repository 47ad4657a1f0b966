"""Numbers with their intervals, as the summaries of Findings hold them: torch-free."""

import numpy as np

from weakspot.core.finding import Estimate
from weakspot.statistics import Interval, auroc, auroc_interval, mean_interval, wilson_interval
from weakspot.statistics.clustered import auroc_deviations, effective_size, grouped_share_interval


def interval_estimate(value: float, interval: Interval, about: str = "", *, confidence: float = 0.95) -> Estimate:
    """A number with an interval that was computed for it."""
    low, high = (float(end) for end in interval)
    return Estimate(float(value), low, high, confidence, about)


def mean_of(values: np.ndarray, about: str = "", *, confidence: float = 0.95) -> Estimate:
    """The mean of a number per input with Student's interval; of fewer than two inputs it has none.

    >>> print(mean_of(np.array([1.0, 2.0, 3.0])))
    2 (-0.4841 to 4.484)
    """
    mean = Estimate(float(values.mean()), about=about) if len(values) else Estimate(None, about=about)
    if len(values) < 2:
        return mean
    interval = mean_interval(values, confidence=confidence)
    return interval_estimate(float(values.mean()), interval, about, confidence=confidence)


def share_estimate(count: int, total: int, about: str = "", *, confidence: float = 0.95) -> Estimate:
    """A share with Wilson's interval (Wilson 1927, `wilson1927`); without a value where there is nothing to count.

    >>> print(share_estimate(8, 10))
    0.8 (0.4902 to 0.9433)
    """
    if not total:
        return Estimate(None, about=about)
    return interval_estimate(
        count / total, wilson_interval(count, total, confidence=confidence), about, confidence=confidence
    )


def share_of(
    flags: np.ndarray, about: str = "", *, groups: np.ndarray | None = None, confidence: float = 0.95
) -> Estimate:
    """The share of the flags that are true, as `share_estimate`.

    groups: what each belongs to, where some belong together; the interval then goes by group.
    """
    if groups is not None and len(flags):
        interval = grouped_share_interval(flags, groups, confidence=confidence)
        return interval_estimate(flags.mean(), interval, about, confidence=confidence)
    return share_estimate(int(flags.sum()), len(flags), about, confidence=confidence)


def auroc_estimate(
    scores: np.ndarray, positive: np.ndarray, about: str = "", *, groups: np.ndarray | None = None
) -> Estimate:
    """The area under the ROC curve with its interval; there must be some of both kinds.

    groups: what each entry belongs to, where some belong together; the interval then goes by group.
    """
    area, count = auroc(scores, positive), int(positive.sum())
    part = 1.0 if groups is None else effective_size(auroc_deviations(scores, positive), groups) / len(positive)
    interval = auroc_interval(area, count * part, (len(positive) - count) * part)
    return interval_estimate(area, interval, about)
