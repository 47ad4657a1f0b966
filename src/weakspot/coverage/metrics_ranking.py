"""Inputs in the order of the new coverage that they bring, or of how unsure the model is; and how early errors come."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import DataError
from weakspot.coverage.reached_targets import Places, Reach
from weakspot.statistics import CostEffectiveness, cost_effectiveness
from weakspot.statistics.intervals import normal_quantile

_AT_ONCE = 32
"""Inputs looked at together: a few more than needed cost less than asking for each alone."""


@dataclass(frozen=True)
class Greedy:
    """Inputs in the order of the new coverage they bring."""

    order: Places
    """Places of the inputs, the first to add first."""
    brings: NDArray[np.int64]
    """How many new targets each of them brings, in that order."""


def greedy_order(reach: Reach, *, covered: ArrayLike | None = None, rank: ArrayLike | None = None) -> Greedy:
    """Inputs in the order of greedy additional coverage: the next one reaches most targets that are not covered yet.

    Of equals the one with the lower rank comes first. When no input adds anything, the rest follow by how many
    targets they reach in all, then by rank (coverage-additional and coverage-total method, Yoo and Harman 2012,
    `yoo2012`). What an input brings can only shrink, so it is counted again only when it might be next (lazy greedy,
    Minoux 1978, `minoux1978`): the order is that of plain greedy, in near-linear time, and only the gains and the
    covered targets are in memory.

    reach: which targets each input reaches.
    covered: targets covered before, boolean; by default none.
    rank: a number per input that settles ties, such as its place in the order of the ids; by default its place.

    >>> from weakspot.coverage.reached_targets import Bits
    >>> bits = Bits.of(np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1], [0, 1, 1, 0]], dtype=bool))
    >>> found = greedy_order(bits)
    >>> found.order.tolist(), found.brings.tolist()
    ([1, 2, 0, 3], [3, 1, 0, 0])
    """
    nothing = np.zeros(reach.targets, dtype=np.bool_)
    done = nothing.copy() if covered is None else np.array(covered, dtype=np.bool_).ravel()
    ranks = np.arange(reach.inputs) if rank is None else np.asarray(rank)
    if done.size != reach.targets or ranks.shape != (reach.inputs,):
        raise DataError(
            f"expected {reach.targets} covered targets and {reach.inputs} ranks, got {done.size} and {ranks.size}"
        )
    total = np.concatenate([np.empty(0, np.int64), *(reach.new(places, nothing) for places in reach.blocks())])
    first, brings = _additional(reach, total.tolist(), ranks.tolist(), done)
    rest = np.setdiff1d(np.arange(reach.inputs), first)
    order = np.concatenate([first, rest[np.lexsort((ranks[rest], -total[rest]))]])
    return Greedy(order, np.concatenate([brings, np.zeros(rest.size, dtype=np.int64)]))


def _additional(
    reach: Reach, bound: list[int], ranks: list[int], covered: NDArray[np.bool_]
) -> tuple[Places, NDArray[np.int64]]:
    """The inputs that bring something new, in greedy order, and how much; `covered` is filled on the way."""
    heap = [(-most, rank, candidate) for candidate, (most, rank) in enumerate(zip(bound, ranks, strict=True))]
    heapify(heap)
    counted_at = [-1] * len(heap)
    order: list[int] = []
    brings: list[int] = []
    while heap and heap[0][0] < 0:
        less, _, candidate = heap[0]
        if counted_at[candidate] == len(order):  # nobody's bound is higher, and of equals it is the first
            heappop(heap)
            order.append(candidate)
            brings.append(-less)
            covered[reach.entries(np.array([candidate]))[1]] = True
            continue
        some = [heappop(heap)[2] for _ in range(min(_AT_ONCE, len(heap)))]
        for one, new in zip(some, reach.new(np.array(some), covered).tolist(), strict=True):
            counted_at[one] = len(order)
            heappush(heap, (-new, ranks[one], one))
    return np.array(order, dtype=np.int64), np.array(brings, dtype=np.int64)


def score_order(score: ArrayLike, *, rank: ArrayLike | None = None) -> Places:
    """Inputs by falling score, ties by rank."""
    values = np.asarray(score, dtype=np.float64)
    return np.lexsort((np.arange(values.size) if rank is None else np.asarray(rank), -values))


@dataclass(frozen=True)
class ErrorsFound:
    """How early an order meets the model's errors."""

    curve: CostEffectiveness
    """Share of the errors found against the share inspected."""
    low: float
    high: float
    confidence: float

    @property
    def apfd(self) -> float:
        """Average percentage of faults detected: 1 for errors first, ½ for a random order."""
        return self.curve.area


def errors_found(order: ArrayLike, wrong: ArrayLike, *, confidence: float = 0.95) -> ErrorsFound:
    """Average percentage of faults detected, APFD = 1 − Σ place of each error/(n·m) + 1/2n (Rothermel et al. 2001).

    For n inputs with m errors; it equals the area under the curve of errors found against inputs inspected
    (`rothermel2001`). The interval is that of a mean over m places, the errors taken as a sample of those the model
    makes, the order as given.

    order: places of the inputs, the first to inspect first.
    wrong: whether each input is predicted incorrectly.
    confidence: of the interval.

    >>> errors_found([2, 0, 1, 3], [False, False, True, False]).apfd
    0.875
    """
    inspected, errors = np.asarray(order), np.asarray(wrong, dtype=np.bool_)
    if not np.array_equal(np.sort(inspected), np.arange(errors.size)):
        raise DataError(f"expected every one of {errors.size} inputs once in the order, got {inspected.shape}")
    rank = np.empty(errors.size, dtype=np.int64)
    rank[inspected] = np.arange(errors.size)
    curve = cost_effectiveness(-rank, errors)
    at = np.sort(rank[errors]) / errors.size  # sorted: a sum must not depend on the order of the data
    reach = normal_quantile(confidence) * float(at.std(ddof=1)) / np.sqrt(at.size) if at.size > 1 else 0.5
    return ErrorsFound(curve, max(curve.area - reach, 0.0), min(curve.area + reach, 1.0), confidence)


def random_spread(inputs: int, errors: int, *, confidence: float = 0.95) -> float:
    """How far from ½ the APFD of random orders lies, half the width of its interval.

    The mean place of m errors among n in random order has the variance (n+1)(n−m)/12m.
    """
    return normal_quantile(confidence) * float(np.sqrt((inputs + 1) * (inputs - errors) / (12 * errors))) / inputs
