"""Which rules hold for unusually many errors: a beam search with greedy covering, on the inputs it may look at.

Slices are conjunctions of few conditions, as in SliceFinder (Chung et al. 2019, `chung2019`) and SliceLine (Sagadeeva
and Boehm 2021, `sagadeeva2021`). The score is the likelihood ratio of the scan statistic (Kulldorff 1997,
`kulldorff1997`), against the error rate of each stratum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError
from weakspot.slices.candidates import candidate_conditions, naming_costs
from weakspot.slices.conditions import Flags, SliceCondition, SliceRule, Trait
from weakspot.slices.gains import expected_errors, likelihood_gain

Floats = NDArray[np.float64]
FURTHER = 1.5
"""How much dearer each condition after the first is than its name."""
REGION = 0.5
"""How much a nat of a region of the model's features is worth: a rule that can be read is preferred."""
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

    depth: int = 2
    beam: int = 30
    smallest: int = 10
    most: int = 10

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= 4 or min(self.beam, self.smallest, self.most) < 1:
            raise ConfigError(
                f"expected depth from 1 to 4 and beam, smallest and most ≥ 1, got depth {self.depth}, beam "
                f"{self.beam}, smallest {self.smallest}, most {self.most}"
            )


def find_rules(
    traits: Sequence[Trait],
    wrong: Flags,
    *,
    strata: NDArray[np.int64] | None = None,
    search: SliceSearch | None = None,
    regions: Sequence[SliceCondition] = (),
) -> list[SliceRule]:
    """Rules that hold for more errors than elsewhere, the clearest first, each beyond those before it.

    traits: what is known of each input.
    wrong: whether it is an error.
    strata: a number per input, such as its class: a rule without a trait of source "class" or "prediction" is compared
        with inputs of the same stratum, so that a trait that only goes with a hard class is not taken for its reason.

    A rule is taken while its gain in nats exceeds what it costs to name its conditions among all candidates. The inputs
    that it holds for are then set aside, and the next rule is found among the others.

    regions: conditions on traits of source "features", each a candidate by itself, of which a nat is worth `REGION`.
    """
    settings = search or SliceSearch()
    left = np.ones(len(wrong), dtype=bool)
    rules: list[SliceRule] = []
    plain = [trait for trait in traits if trait.source != "features"]
    conditions = candidate_conditions(plain, left, settings.smallest) if len(wrong) else []
    columns = {trait.name: trait.column for trait in traits}
    masks, areas = _masks(conditions, columns, len(wrong)), _masks(regions, columns, len(wrong))
    measured = {trait.name for trait in traits if trait.source == "image"}
    apart = {trait.name for trait in traits if trait.source in ("class", "prediction")}
    while (conditions or regions) and len(rules) < settings.most and wrong[left].any():
        own = None if strata is None else strata[left]
        stage = _Stage(conditions, masks[:, left], wrong[left], own, apart, measured)
        rule, worth = stage.best(settings) if conditions else (None, 0.0)
        new = 2 * areas[:, left].sum(1) >= areas.sum(
            1
        )  # a region that rules before it hold for mostly is none of its own
        region, region_worth = _best_region(areas[:, left], wrong[left], own, settings.smallest, new)
        if region_worth > worth:
            rule = SliceRule((regions[region],))
        if rule is None:
            break
        rules.append(rule)
        left &= ~rule.holds(columns)
    return rules


def _masks(conditions: Sequence[SliceCondition], columns: Mapping[str, NDArray[Any]], count: int) -> Flags:
    """Which inputs each condition holds for, (conditions, inputs)."""
    masks = [each.holds(columns[each.trait]) for each in conditions]
    return np.array(masks, dtype=bool).reshape(len(conditions), count)


def _best_region(
    masks: Flags, wrong: Flags, strata: NDArray[np.int64] | None, smallest: int, new: Flags
) -> tuple[int, float]:
    """The new region that is worth most, and its worth; 0 where no gain exceeds the cost of naming one of them."""
    if not len(masks):
        return 0, 0.0
    flags = masks.astype(np.float64)
    size, errors, expected = (flags.sum(1), flags @ wrong, flags @ expected_errors(wrong, strata))
    gain = np.round(likelihood_gain(size, errors, expected, len(wrong), float(wrong.sum())), 9)
    gain = np.where(new & (size >= smallest) & (len(wrong) - size >= smallest), gain, 0.0)
    best = int(gain.argmax())
    return best, max(REGION * (float(gain[best]) - float(np.log(4 * len(masks)))), 0.0)


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

    def best(self, search: SliceSearch) -> tuple[SliceRule | None, float]:
        """The rule that is worth most, and its worth; none where no gain exceeds its cost."""
        winner: tuple[int, ...] = ()
        worth, level = 0.0, self._first(search)
        for depth in range(1, search.depth + 1):
            if level.members and level.worth.max() > worth:
                winner, worth = level.members[int(level.worth.argmax())], float(level.worth.max())
            if depth < search.depth and level.members:
                level = self._extended(level, search)
        return (SliceRule(tuple(self.conditions[each] for each in winner)) if winner else None), worth

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
