"""The ranked list: rules found on one half of the inputs, confirmed on the other, each with its rates and examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weakspot.slices.conditions import Flags, SliceCondition, SliceRule, Trait, columns_of
from weakspot.slices.confirmation import excess_p_value, grouped_p_value, holm
from weakspot.slices.regions import ErrorRegion, View, error_regions, likeness_traits
from weakspot.slices.search import SliceSearch, find_rules
from weakspot.statistics.clustered import grouped_share_interval
from weakspot.statistics.intervals import wilson_interval

LEVEL = 0.05
"""How probable it may be that any rule is confirmed by chance."""
SliceKind = Literal["trait", "confusion", "features"]
"""What a rule is about: traits and labels of the inputs, the model's prediction, or what its layers show."""


@dataclass(frozen=True)
class ErrorRate:
    """Errors among some inputs of the confirming half, with Wilson's interval, by group where there are groups."""

    inputs: int
    errors: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share of errors; not a number without inputs."""
        return self.errors / self.inputs if self.inputs else float("nan")


@dataclass(frozen=True)
class ErrorSlice:
    """One rule with what is known of it.

    members: which inputs it holds for, of all.
    inside, outside: the error rates where it holds and where not, both in the half that it was not found on, without
        the inputs that an earlier rule holds for.
    p_value: corrected for the number of rules.
    explained: errors among all members that no earlier rule holds for, beyond what the rate outside would give.
    region: for rules on what the layers show, how to find its inputs.
    likeness: of each input.
    """

    rule: SliceRule
    kind: SliceKind
    members: Flags
    inside: ErrorRate
    outside: ErrorRate
    p_value: float
    explained: float
    region: ErrorRegion | None = None
    likeness: NDArray[np.float64] | None = None

    @property
    def confirmed(self) -> bool:
        """Whether its excess of errors came back in the half that it was not found on."""
        return self.p_value <= LEVEL and self.inside.share > self.outside.share


@dataclass(frozen=True)
class SliceData:
    """The inputs that are searched; all arrays have one entry per input.

    wrong: whether it is an error.
    found_on: the half that rules are found on.
    labels: a number per label, where a trait is to be compared within the same label.
    groups: a number per group of inputs that belong together.
    aside: inputs that rules are not sought on, such as errors whose label may be wrong.
    views: what the model's layers show.
    """

    wrong: Flags
    found_on: Flags
    labels: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None
    aside: Flags | None = None
    views: Sequence[View] = ()


def ranked_slices(
    traits: Sequence[Trait], data: SliceData, search: SliceSearch | None = None, *, most_searched: int = 20_000
) -> list[ErrorSlice]:
    """At most `search.most` rules, confirmed ones first, then by the errors they explain.

    Rules of traits and labels and regions of the views come first; rules of the prediction are sought among what these
    leave. Every rule is tested among the inputs that no rule before it holds for, so that none is confirmed for what
    another one explains.

    most_searched: of more inputs in the first half, so many are searched; all are used to confirm.
    """
    settings = search or SliceSearch()
    searched = _sample(data.found_on if data.aside is None else data.found_on & ~data.aside, most_searched)
    found = _found([trait for trait in traits if trait.source != "prediction"], data, searched, settings)
    every = [*traits, *(each.trait for each in found if each.trait is not None)]
    if len(found) < settings.most:
        left = searched & ~_covered([each.rule for each in found], columns_of(every), len(data.wrong))
        of_model = [trait for trait in traits if trait.source == "prediction"]
        alone = replace(settings, depth=1, most=settings.most - len(found))
        labels = None if data.labels is None else data.labels[left]
        rules = find_rules(_among(of_model, left), data.wrong[left], strata=labels, search=alone)
        found += [_Found("confusion", rule) for rule in rules]
    return _ranked(_tested(found, every, data))


@dataclass(frozen=True)
class _Found:
    """A rule that was found; of one on what the layers show also its region, and the likeness of all inputs to it."""

    kind: SliceKind
    rule: SliceRule
    region: ErrorRegion | None = None
    trait: Trait | None = None


def _found(traits: Sequence[Trait], data: SliceData, among: Flags, search: SliceSearch) -> list[_Found]:
    """Rules on traits and labels and regions of the views, found together."""
    labels = None if data.labels is None else data.labels[among]
    candidates: dict[str, tuple[ErrorRegion, View]] = {}
    regional: list[Trait] = []
    conditions: list[SliceCondition] = []
    for view in data.views:
        regions = error_regions(view, data.wrong, among, data.labels, smallest=search.smallest)
        named = likeness_traits(regions, view.values[among])
        regional += named
        conditions += [region.condition(number) for number, region in enumerate(regions, start=1)]
        candidates |= {trait.name: (region, view) for trait, region in zip(named, regions, strict=True)}
    every = [*_among(traits, among), *regional]
    rules = find_rules(every, data.wrong[among], strata=labels, search=search, regions=conditions)
    found: list[_Found] = []
    counts = {view.name: 0 for view in data.views}
    for rule in rules:
        name = rule.conditions[0].trait
        if name not in candidates:
            found.append(_Found("trait", rule))
            continue
        region, view = candidates[name]
        counts[view.name] += 1
        condition = region.condition(counts[view.name])
        trait = Trait(condition.trait, region.likeness(view.values), "features")
        found.append(_Found("features", SliceRule((condition,)), region, trait))
    return found


def _among(traits: Sequence[Trait], inputs: Flags) -> list[Trait]:
    return [replace(trait, column=trait.column[inputs]) for trait in traits]


def _sample(half: Flags, most: int) -> Flags:
    """The half, or an even sample of it."""
    places = np.flatnonzero(half)
    if len(places) <= most:
        return half
    chosen = np.zeros(len(half), dtype=bool)
    chosen[places[np.linspace(0, len(places) - 1, most).round().astype(np.int64)]] = True
    return chosen


def _covered(rules: Sequence[SliceRule], columns: dict[str, NDArray[np.generic]], count: int) -> Flags:
    return np.asarray(np.any([np.zeros(count, dtype=bool), *(rule.holds(columns) for rule in rules)], axis=0))


def _tested(found: Sequence[_Found], traits: Sequence[Trait], data: SliceData) -> list[ErrorSlice]:
    columns, sources = columns_of(traits), {trait.name: trait.source for trait in traits}
    left, slices = np.ones(len(data.wrong), dtype=bool), []
    for each in found:
        members = each.rule.holds(columns)
        other = left & ~data.found_on
        plain = any(sources[one.trait] in ("metadata", "image", "features") for one in each.rule.conditions)
        labels = data.labels if plain else None  # a label by itself is compared with all others
        p_value = _p_value(members[other], data, other, None if labels is None else labels[other])
        inside, outside = (_rate(data, other & part) for part in (members, ~members))
        usual = 0.0 if np.isnan(outside.share) else outside.share
        explained = max(float(data.wrong[left & members].sum() - (left & members).sum() * usual), 0.0)
        left = left & ~members
        likeness = None if each.trait is None else each.trait.column
        one = ErrorSlice(each.rule, each.kind, members, inside, outside, p_value, explained, each.region, likeness)
        slices.append(one)
    corrected = holm([one.p_value for one in slices])
    return [replace(one, p_value=float(p)) for one, p in zip(slices, corrected, strict=True)]


def _p_value(members: Flags, data: SliceData, left: Flags, labels: NDArray[np.int64] | None) -> float:
    if data.groups is None:
        return excess_p_value(members, data.wrong[left], labels)
    return grouped_p_value(members, data.wrong[left], data.groups[left], labels)


def _rate(data: SliceData, among: Flags) -> ErrorRate:
    wrong = data.wrong[among]
    if data.groups is not None and len(wrong):
        low, high = grouped_share_interval(wrong, data.groups[among])
    else:
        low, high = wilson_interval(int(wrong.sum()), len(wrong))
    return ErrorRate(len(wrong), int(wrong.sum()), float(low), float(high))


def _ranked(slices: Sequence[ErrorSlice]) -> list[ErrorSlice]:
    """Without those whose members are wrong no more often than others on the half that may confirm them."""
    kept = [each for each in slices if each.confirmed or not each.inside.share <= each.outside.share]
    return sorted(kept, key=lambda each: (not each.confirmed, -each.explained))
