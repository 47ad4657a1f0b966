"""Which rules hold for unusually many errors: a beam search with greedy covering, on the inputs it may look at.

Slices are conjunctions of few conditions, as in SliceFinder (Chung et al. 2019, `chung2019`) and SliceLine (Sagadeeva
and Boehm 2021, `sagadeeva2021`). The score is the likelihood ratio of the scan statistic (Kulldorff 1997,
`kulldorff1997`), against the error rate of each stratum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from weakspot.core.errors import ConfigError
from weakspot.slices.candidates import candidate_conditions, naming_costs
from weakspot.slices.conditions import Flags, SliceCondition, SliceRule, Trait

Floats = NDArray[np.float64]
FURTHER = 1.5
"""How much dearer each condition after the first is than its name."""
_BLOCK = 256
"""So many conditions are compared with the beam at once."""


@dataclass(frozen=True)
class SliceSearch:
    """How rules are searched for.

    depth: conditions in a rule at most.
    beam: rules that are extended at each depth.
    smallest: inputs that a rule must hold for, and that must be left.
    most: rules at most.
    """

    depth: int = 3
    beam: int = 30
    smallest: int = 10
    most: int = 10

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= 4 or min(self.beam, self.smallest, self.most) < 1:
            raise ConfigError(
                f"expected depth from 1 to 4 and beam, smallest and most ≥ 1, got depth {self.depth}, beam "
                f"{self.beam}, smallest {self.smallest}, most {self.most}"
            )


def likelihood_gain(size: Floats, errors: Floats, expected: Floats, total: int, total_errors: float) -> Floats:
    """How much likelier the errors are with a rate of their own inside and outside a slice, in nats; 0 without excess.

    e·log(e/E) + (n−e)·log((n−e)/(n−E)) for the inside, and the same for the outside, with n inputs, e errors and E
    errors expected at the rates of the strata. Of one stratum it is the scan statistic of Kulldorff (1997).

    >>> likelihood_gain(np.array([10.0, 10.0]), np.array([9.0, 1.0]), np.array([2.0, 2.0]), 50, 10.0).round(2).tolist()
    [17.09, 0.0]
    """
    inside = _part(size, errors, expected)
    outside = _part(total - size, total_errors - errors, total_errors - expected)
    return np.where(errors > expected, np.maximum(inside + outside, 0.0), 0.0)


def _part(size: Floats, errors: Floats, expected: Floats) -> Floats:
    right, usual = size - errors, size - expected
    tiny = 1e-12
    first = xlogy(errors, np.maximum(errors, tiny) / np.maximum(expected, tiny))
    return np.asarray(first + xlogy(right, np.maximum(right, tiny) / np.maximum(usual, tiny)))


def find_rules(
    traits: Sequence[Trait], wrong: Flags, *, strata: NDArray[np.int64] | None = None, search: SliceSearch | None = None
) -> list[SliceRule]:
    """Rules that hold for more errors than elsewhere, the clearest first, each beyond those before it.

    traits: what is known of each input.
    wrong: whether it is an error.
    strata: a number per input, such as its class: a rule without a trait of source "class" or "prediction" is compared
        with inputs of the same stratum, so that a trait that only goes with a hard class is not taken for its reason.

    A rule is taken while its gain in nats exceeds what it costs to name its conditions among all candidates. The inputs
    that it holds for are then set aside, and the next rule is found among the others.
    """
    settings = search or SliceSearch()
    left = np.ones(len(wrong), dtype=bool)
    rules: list[SliceRule] = []
    conditions = candidate_conditions(traits, left, settings.smallest) if len(wrong) else []
    columns = {trait.name: trait.column for trait in traits}
    masks = np.array([each.holds(columns[each.trait]) for each in conditions], dtype=bool)
    measured = {trait.name for trait in traits if trait.source == "image"}
    apart = {trait.name for trait in traits if trait.source in ("class", "prediction")}
    while conditions and len(rules) < settings.most:
        stage = _Stage(
            conditions, masks[:, left], wrong[left], None if strata is None else strata[left], apart, measured
        )
        rule = stage.best(settings)
        if rule is None:
            break
        rules.append(rule)
        left &= ~rule.holds(columns)
    return rules


@dataclass(frozen=True)
class _Level:
    """Rules of as many conditions: the numbers of their conditions, which inputs they hold for, and their worth."""

    members: list[tuple[int, ...]]
    masks: Flags
    worth: Floats


class _Stage:
    """The search for one rule among the inputs that are left.

    The worth of a rule is its gain less the costs of its conditions; each condition after the first costs `FURTHER` as
    much, since the best of many combinations fits by chance as well.
    """

    def __init__(
        self,
        conditions: Sequence[SliceCondition],
        masks: Flags,
        wrong: Flags,
        strata: NDArray[np.int64] | None,
        apart: set[str],
        measured: set[str],
    ):
        self.conditions, self.masks, self.wrong = conditions, masks, wrong.astype(np.float64)
        self.expected = expected_errors(wrong, strata)
        self.apart = np.array([each.trait in apart for each in conditions], dtype=bool)
        self.costs = naming_costs(conditions, measured)
        names = sorted({each.trait for each in conditions})
        self.trait = np.array([names.index(each.trait) for each in conditions], dtype=np.int64)

    def best(self, search: SliceSearch) -> SliceRule | None:
        """The rule that is worth most; none where no gain exceeds its cost."""
        if not self.wrong.sum():
            return None
        winner: tuple[int, ...] = ()
        worth, level = 0.0, self._first(search)
        for depth in range(1, search.depth + 1):
            if level.members and level.worth.max() > worth:
                winner, worth = level.members[int(level.worth.argmax())], float(level.worth.max())
            if depth < search.depth and level.members:
                level = self._extended(level, search)
        return SliceRule(tuple(self.conditions[each] for each in winner)) if winner else None

    def _first(self, search: SliceSearch) -> _Level:
        every = np.ones((1, len(self.wrong)), dtype=bool)
        gains = self._gains(every, search.smallest, alone=True)[0]
        worth = np.where(gains > 0, gains - self.costs, -np.inf)
        chosen = _top(worth, search.beam)
        return _Level([(each,) for each in chosen.tolist()], self.masks[chosen], worth[chosen])

    def _extended(self, level: _Level, search: SliceSearch) -> _Level:
        """The best rules with one more condition, on another trait."""
        gains = self._gains(level.masks, search.smallest, alone=False)
        members: dict[tuple[int, ...], float] = {}
        worth = np.full_like(gains, -np.inf)
        for row, parent in enumerate(level.members):
            usable = (gains[row] > 0) & ~np.isin(self.trait, self.trait[list(parent)])
            costs = self.costs[list(parent)].sum() + self.costs
            cheapest = np.minimum(self.costs[list(parent)].min(), self.costs)
            worth[row, usable] = (gains[row] - FURTHER * costs + (FURTHER - 1) * cheapest)[usable]
        for cell in _top(worth.ravel(), search.beam * search.depth).tolist():
            row, condition = divmod(cell, len(self.conditions))
            members.setdefault(tuple(sorted((*level.members[row], condition))), float(worth[row, condition]))
        kept = list(members)[: search.beam]
        masks = np.array([self.masks[list(each)].all(0) for each in kept], dtype=bool)
        return _Level(kept, masks.reshape(len(kept), len(self.wrong)), np.array([members[each] for each in kept]))

    def _gains(self, parents: Flags, smallest: int, *, alone: bool) -> Floats:
        """The gain of each parent with each condition, (parents, conditions); of a condition alone, a class apart."""
        weights = parents.astype(np.float64)
        stacked = np.concatenate([weights, weights * self.wrong, weights * self.expected])
        total, errors = len(self.wrong), float(self.wrong.sum())
        gains = np.zeros((len(parents), len(self.conditions)))
        for start in range(0, len(self.conditions), _BLOCK):
            block = slice(start, start + _BLOCK)
            size, inside, expected = np.split(stacked @ self.masks[block].astype(np.float64).T, 3)
            if alone:  # a class by itself is compared with all others
                expected = np.where(self.apart[block], size * errors / total, expected)
            gain = likelihood_gain(size, inside, expected, total, errors)
            gains[:, block] = np.where((size >= smallest) & (total - size >= smallest), gain, 0.0)
        return np.round(gains, 9)  # rounding errors of sums must not decide between equal rules


def _top(worth: Floats, count: int) -> NDArray[np.int64]:
    """The places of the largest values, the largest first, the first of equal ones; without those that can't be."""
    order = np.argsort(-worth, kind="stable")[:count]
    return np.asarray(order[np.isfinite(worth[order])])


def expected_errors(wrong: Flags, strata: NDArray[np.int64] | None) -> Floats:
    """For each input the error rate of its stratum.

    >>> expected_errors(np.array([True, False, True]), np.array([0, 0, 1])).tolist()
    [0.5, 0.5, 1.0]
    """
    if strata is None:
        return np.full(len(wrong), wrong.mean() if len(wrong) else 0.0)
    numbers = np.unique(strata, return_inverse=True)[1]
    counts = np.bincount(numbers)
    return np.asarray((np.bincount(numbers, wrong) / counts)[numbers])
