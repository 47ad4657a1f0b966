"""Confirms rules on inputs they were not found on: halves, an exact test, and a correction for several rules."""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr
from scipy.stats import hypergeom

from weakspot.slices.conditions import Flags
from weakspot.slices.gains import expected_errors

Floats = NDArray[np.float64]


def first_half(names: Sequence[str], *, seed: int = 0) -> Flags:
    """Which inputs rules are found on; the others confirm them. It depends on the seed and each name alone.

    names: the inputs' ids; or what they belong to, such as a track or a patient, so that all of it is in one half.

    >>> first_half(["a", "b", "a", "c"], seed=1).tolist()
    [True, True, True, False]
    """
    bits = [blake2b(f"{seed}/{name}".encode(), digest_size=1).digest()[0] & 1 for name in names]
    return np.array(bits, dtype=bool)


def excess_p_value(members: Flags, wrong: Flags, strata: NDArray[np.int64] | None = None) -> float:
    """How probable so many errors among the members are if, within each stratum, errors fall on anyone: exact.

    P(X ≥ Σ errors among members), X the sum of one hypergeometric count per stratum: Fisher's exact test for one
    stratum (`fisher1922`), Birch's for several (`birch1964`).

    >>> round(excess_p_value(np.array([1, 1, 1, 0, 0, 0], bool), np.array([1, 1, 1, 0, 0, 0], bool)), 6)
    0.05
    """
    groups = np.zeros(len(wrong), dtype=np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
    if not len(groups):
        return 1.0
    size, errors = np.bincount(groups), np.bincount(groups, wrong).astype(np.int64)
    drawn = np.bincount(groups, members).astype(np.int64)
    open_strata = (drawn > 0) & (drawn < size) & (errors > 0) & (errors < size)
    counts = np.array([1.0])
    for number in np.flatnonzero(open_strata).tolist():
        possible = np.arange(min(drawn[number], errors[number]) + 1)
        counts = np.convolve(counts, hypergeom.pmf(possible, size[number], errors[number], drawn[number]))
    observed = int((members & wrong & open_strata[groups]).sum())
    return float(min(counts[observed:].sum(), 1.0))


def grouped_p_value(
    members: Flags, wrong: Flags, groups: NDArray[np.int64], strata: NDArray[np.int64] | None = None
) -> float:
    """The same where inputs of a group are alike, such as frames of one film: a t-test over the groups.

    Each group counts once, by Σ (member − share of members in the stratum) · (error − error rate of the stratum) over
    its inputs; degrees of freedom are those of the groups that hold members.
    """
    if not members.any() or members.all():
        return 1.0
    scores = (members - expected_errors(members, strata)) * (wrong - expected_errors(wrong, strata))
    numbers = np.unique(groups, return_inverse=True)[1]
    sums, holding = np.bincount(numbers, scores), len(np.unique(numbers[members]))
    spread = float(np.sqrt((sums**2).sum()))
    if holding < 2 or spread == 0:
        return 1.0
    return float(stdtr(holding - 1, -sums.sum() / spread))


def holm(p_values: ArrayLike) -> Floats:
    """P-values corrected so that any false rejection among them is as rare as it says (Holm 1979, `holm1979`).

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected


def chance_corrected_agreement(targets: NDArray[np.generic], predictions: NDArray[np.generic]) -> float:
    """Cohen's kappa (1960, `cohen1960`): 0 if labels and predictions agree as by chance, 1 if always.

    >>> chance_corrected_agreement(np.array(["a", "b", "a", "b"]), np.array(["a", "b", "a", "a"]))
    0.5
    """
    names, numbers = np.unique(np.concatenate([targets, predictions]), return_inverse=True)
    true, said = np.split(numbers, 2)
    counts = [np.bincount(part, minlength=len(names)) for part in (true, said)]
    by_chance = float(counts[0] @ counts[1] / len(true) ** 2)
    agreed = float((true == said).mean())
    return 1.0 if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)
