"""What to add next: inputs in the order of the new coverage they bring, beside orders by how unsure the model is."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.rows import id_rank
from weakspot.coverage import outputs as declared
from weakspot.coverage.confidence import UNCERTAINTY
from weakspot.coverage.counting import saturation_sizes
from weakspot.coverage.footprints import Footprints
from weakspot.coverage.reach import Places, Reach
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
    """Inputs in the order of greedy additional coverage: next comes who reaches most targets not covered yet.

    Of equals the one with the lower rank comes first. When nobody brings anything new, the rest follow by how many
    targets they reach in all, then by rank (coverage-additional and coverage-total method, Yoo and Harman 2012,
    `yoo2012`). What an input brings can only shrink, so it is counted again only when it might be next (lazy greedy,
    Minoux 1978, `minoux1978`): the order is that of plain greedy, in near-linear time, and only the gains and the
    covered targets are in memory.

    Args:
        reach: which targets each input reaches.
        covered: targets covered before, boolean; by default none.
        rank: a number per input that settles ties, such as its place in the order of the ids; by default its place.

    >>> from weakspot.coverage.reach import Bits
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
    heap = [(-most, rank, place) for place, (most, rank) in enumerate(zip(bound, ranks, strict=True))]
    heapify(heap)
    counted_at = [-1] * len(heap)
    order: list[int] = []
    brings: list[int] = []
    while heap and heap[0][0] < 0:
        less, _, place = heap[0]
        if counted_at[place] == len(order):  # nobody's bound is higher, and of equals it is the first
            heappop(heap)
            order.append(place)
            brings.append(-less)
            covered[reach.entries(np.array([place]))[1]] = True
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

    Args:
        order: places of the inputs, the first to inspect first.
        wrong: whether each input is answered wrongly.
        confidence: of the interval.

    >>> errors_found([2, 0, 1, 3], [False, False, True, False]).apfd
    0.875
    """
    inspected, errors = np.asarray(order), np.asarray(wrong, dtype=np.bool_)
    if not np.array_equal(np.sort(inspected), np.arange(errors.size)):
        raise DataError(f"expected every one of {errors.size} inputs once in the order, got {inspected.shape}")
    place = np.empty(errors.size, dtype=np.int64)
    place[inspected] = np.arange(errors.size)
    curve = cost_effectiveness(-place, errors)
    at = np.sort(place[errors]) / errors.size  # sorted: a sum must not depend on the order of the data
    reach = normal_quantile(confidence) * float(at.std(ddof=1)) / np.sqrt(at.size) if at.size > 1 else 0.5
    return ErrorsFound(curve, max(curve.area - reach, 0.0), min(curve.area + reach, 1.0), confidence)


def random_spread(inputs: int, errors: int, *, confidence: float = 0.95) -> float:
    """How far from ½ the APFD of random orders lies, half the width of its interval.

    The mean place of m errors among n in random order has the variance (n+1)(n−m)/12m.
    """
    return normal_quantile(confidence) * float(np.sqrt((inputs + 1) * (inputs - errors) / (12 * errors))) / inputs


class NextInputs(Footprints):
    """Which inputs to add next: ranked by the new coverage each brings, and by how unsure the model is of it.

    Greedy by neuron, k-multisection, boundary, strong and top-k coverage, each beyond what is covered already, beside
    max-softmax, margin, entropy and DeepGini (Feng et al. 2020). Where the inputs have labels, how early each order
    meets the model's errors: by then the rankings can be told apart.

    threshold: of neuron coverage.
    sections: k of k-multisection coverage.
    top: k of top-k neuron coverage.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    ranges: the Finding of `ActivationRanges` over the training data.
    covered_neurons: the Finding of `NeuronCoverage` over the inputs there are already; none to begin with nothing.
    covered_sections: the Finding of `KMultisection` over them.
    covered_leaders: the Finding of `TopNeurons` over them.
    budget: list the inputs among the first so many of any ranking; by default all.
    """

    outputs = declared.NEXT_INPUTS

    covered_neurons: Finding | None = None
    covered_sections: Finding | None = None
    covered_leaders: Finding | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is not None and self.budget < 1:
            raise ConfigError(f"budget is {self.budget}: expected 1 or more")

    def finish(self) -> Finding:
        """Each input's place in every order; with labels, which order finds the errors first."""
        rows = self.footprints.read()
        rank = id_rank(rows.ids)
        reaches, covered = self.reaches(rows), self._covered()
        greedy = {name: greedy_order(reaches[name], covered=covered.get(name), rank=rank) for name in COVERAGE}
        orders = {name: ranking.order for name, ranking in greedy.items()}
        orders |= {name: score_order(rows[name], rank=rank) for name in UNCERTAINTY if name in rows}
        ranks = {name: _places(order) for name, order in orders.items()}
        shown = orders.get("deep_gini", orders["kmnc"])
        if self.budget is not None:
            shown = shown[np.min([places[shown] for places in ranks.values()], axis=0) < self.budget]
        columns = {f"place_{name}": places[shown] + 1 for name, places in ranks.items()}
        brings = {f"new_{name}": ranking.brings[ranks[name]][shown] for name, ranking in greedy.items()}
        unsure = {name: np.asarray(rows[name])[shown] for name in UNCERTAINTY if name in rows}
        correct = {"correct": ~np.asarray(rows["wrong"])[shown]} if "wrong" in rows else {}
        summary, arrays = _against_errors(orders, np.asarray(rows["wrong"])) if "wrong" in rows else ({}, {})
        adding = {
            f"adding_{name}": Estimate(
                int((ranking.brings > 0).sum()),
                about=f"inputs chosen: together they bring all the {COVERAGE[name]} there is to gain",
            )
            for name, ranking in greedy.items()
        }
        return self.finding(
            summary={**adding, **summary, "inputs": Estimate(rows.count, about="samples ranked")},
            table={"id": np.asarray(rows.ids)[shown], **columns, **brings, **unsure, **correct},
            arrays={**arrays, "brings_size": saturation_sizes(rows.count), **_gains(greedy, rows.count)},
        )

    def _covered(self) -> dict[str, np.ndarray]:
        """What is covered already, by criterion."""
        known: dict[str, np.ndarray] = {}
        if self.covered_neurons is not None:
            known["nc"] = self.covered_neurons.arrays["counts"] > 0
        if self.covered_sections is not None:
            beyond = self.covered_sections.arrays["beyond"] > 0
            known |= {"kmnc": self.covered_sections.arrays["counts"] > 0, "nbc": beyond, "snac": beyond[:, 1]}
        if self.covered_leaders is not None:
            known["tknc"] = self.covered_leaders.arrays["counts"] > 0
        return known


COVERAGE = {
    "nc": "neuron coverage",
    "kmnc": "k-multisection coverage",
    "nbc": "boundary coverage",
    "snac": "strong activation coverage",
    "tknc": "top-k neuron coverage",
}
"""The criteria that inputs are chosen by, in words."""


def _places(order: Places) -> Places:
    """Each input's place in an order."""
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return place


def _gains(greedy: dict[str, Greedy], inputs: int) -> dict[str, np.ndarray]:
    """New targets after so many inputs were added, by criterion."""
    return {f"gained_{name}": np.cumsum(found.brings)[saturation_sizes(inputs) - 1] for name, found in greedy.items()}


def _against_errors(
    orders: dict[str, Places], wrong: NDArray[np.bool_]
) -> tuple[dict[str, Estimate], dict[str, np.ndarray]]:
    """How early each order meets the errors: APFD with its interval, and the curve, beside a random order's."""
    count, inputs = int(wrong.sum()), wrong.size
    summary = {"errors": Estimate(count, about="inputs answered wrongly")}
    if not count:
        return summary, {}
    sizes = saturation_sizes(inputs)
    spread, found = random_spread(inputs, count), {name: errors_found(order, wrong) for name, order in orders.items()}
    about = "how early the errors come in this order (APFD): 1 if first, ½ if at random"
    for name, own in found.items():
        summary[f"apfd_{name}"] = Estimate(own.apfd, own.low, own.high, own.confidence, about)
    summary["apfd_random"] = Estimate(0.5, 0.5 - spread, 0.5 + spread, 0.95, "where 95 % of random orders lie")
    curves = {f"found_{name}": own.curve.found[sizes] for name, own in found.items()}
    return summary, {"inspected": sizes, **curves, "found_random": sizes / inputs}
