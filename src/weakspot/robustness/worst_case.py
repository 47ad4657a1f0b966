"""The worst case beside the mean: which inputs are predicted correctly in every one of several looks."""

import numpy as np
from numpy.typing import NDArray

from weakspot.core.finding import Estimate
from weakspot.estimates import share_of
from weakspot.statistics import wilson_interval
from weakspot.statistics.clustered import grouped_share_interval
from weakspot.statistics.sequential import StoppingRule


def correct_in_a_row(correct: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many looks are correct before the first incorrect one; (inputs, looks), a look not taken is False.

    >>> correct_in_a_row(np.array([[True, True, False, True], [False, True, True, True]])).tolist()
    [2, 0]
    """
    return np.asarray(correct.cumprod(1).sum(1), dtype=np.int64)


def known_looks(rule: StoppingRule | None, total: int) -> int:
    """So many looks are taken at every input that has no incorrect one among them.

    >>> from weakspot.statistics.sequential import certain_rule
    >>> known_looks(certain_rule(51, 0.75), 51), known_looks(None, 51)
    (39, 51)
    """
    if rule is None:
        return total
    looks = np.arange(1, total + 1)
    return int(looks[np.argmax(rule.verdicts(looks, looks)[0])])


def worst_case_summary(in_all: NDArray[np.bool_], looks: int) -> dict[str, Estimate]:
    """The share of the inputs that are predicted correctly in all of so many looks."""
    return {"worst_case_accuracy": share_of(in_all), "worst_of": Estimate(looks)}


def worst_case_curve(
    in_a_row: NDArray[np.int64], known: int, groups: NDArray[np.str_] | None = None
) -> dict[str, np.ndarray]:
    """The share of the inputs that are predicted correctly in all of the first k looks, for every k that is known.

    groups: what each input belongs to, where some belong together; intervals then go by group.
    """
    looks = np.arange(1, known + 1)
    correct = (in_a_row[:, None] >= looks).sum(0)
    if groups is None:
        low, high = wilson_interval(correct, len(in_a_row))
    else:
        low, high = np.transpose([grouped_share_interval(in_a_row >= k, groups) for k in looks])
    return {
        "worst_case_looks": looks,
        "worst_case": correct / len(in_a_row),
        "worst_case_low": np.asarray(low),
        "worst_case_high": np.asarray(high),
    }
