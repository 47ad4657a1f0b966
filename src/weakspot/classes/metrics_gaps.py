"""Gaps between groups of inputs and the rest: of accuracy, and of hits and false alarms class by class."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from weakspot.slices import SliceCondition, SliceRule, Trait
from weakspot.slices.candidates import FEW
from weakspot.statistics import difference_interval
from weakspot.statistics.clustered import effective_size

Flags = NDArray[np.bool_]
Whole = NDArray[np.int64]
MEASURES = ("accuracy", "true positive rate", "false positive rate")


@dataclass(frozen=True)
class Intersections:
    """Groups of inputs.

    rules: what makes them.
    members: which inputs are in them, boolean (groups, inputs).
    """

    rules: tuple[SliceRule, ...]
    members: Flags


def intersections(traits: Sequence[Trait], *, depth: int, least: int) -> Intersections:
    """Every group by one column and by up to `depth` columns together, of at least so many inputs.

    As many inputs must be outside. Text is compared with each value, numbers with each of few values, else with thirds.

    >>> sex, age = Trait("sex", np.array(["f", "m"] * 4)), Trait("age", np.array(["old"] * 4 + ["young"] * 4))
    >>> [rule.text for rule in intersections([sex, age], depth=2, least=2).rules][-2:]
    ['sex = m and age = old', 'sex = m and age = young']
    """
    found: list[tuple[SliceRule, Flags]] = []
    held = [[(condition, condition.holds(trait.column)) for condition in _parts(trait)] for trait in traits]
    for number in range(1, depth + 1):
        for chosen in combinations(held, number):
            for parts in product(*chosen):
                members = np.logical_and.reduce([holds for _, holds in parts])
                if least <= members.sum() <= len(members) - least:
                    found.append((SliceRule(tuple(condition for condition, _ in parts)), members))
    inputs = len(traits[0].column) if traits else 0
    return Intersections(
        tuple(rule for rule, _ in found), np.array([flags for _, flags in found]).reshape(len(found), inputs)
    )


def _parts(trait: Trait) -> Iterator[SliceCondition]:
    """Conditions of which an input meets one at most."""
    if not trait.numeric:
        yield from (SliceCondition(trait.name, value=str(value)) for value in np.unique(trait.column) if value != "")
        return
    finite = trait.column[np.isfinite(trait.column)]
    values = np.unique(finite)
    if len(values) <= FEW:
        yield from (SliceCondition(trait.name, value=float(value)) for value in values)
        return
    first, second = (float(f"{edge:.3g}") for edge in np.quantile(finite, [1 / 3, 2 / 3]))
    yield SliceCondition(trait.name, high=first)
    yield SliceCondition(trait.name, low=first, high=second)
    yield SliceCondition(trait.name, low=second)


@dataclass(frozen=True)
class Gaps:
    """One entry per group and measure: how much worse the group fares than the other inputs.

    group: its number.
    measure: the number of one of `MEASURES`.
    label: the class, −1 for all.
    hits, trials: of the group.
    other_hits, other_trials: of all other inputs.
    difference: positive where the group fares worse.
    low, high: an interval; all of them hold together.
    """

    group: Whole
    measure: Whole
    label: Whole
    hits: Whole
    trials: Whole
    other_hits: Whole
    other_trials: Whole
    difference: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def group_gaps(
    members: Flags,
    predicted: Whole,
    target: Whole,
    classes: int,
    *,
    least: int,
    confidence: float = 0.95,
    belongs: NDArray[np.generic] | None = None,
) -> Gaps:
    """Gaps of accuracy, of the true positive rate and of the false positive rate of every class (Hardt et al. 2016).

    A gap is looked at where both sides have `least` inputs that it is about. The intervals are Newcombe's at
    1 − (1 − confidence)/looks (Bonferroni), so all hold together, whichever of them are read.

    belongs: what each input belongs to, such as a film, where some belong together; intervals then go by it.
    """
    counts = _looks(members, predicted, target, classes)
    counts = counts[np.minimum(counts[:, 4], counts[:, 6]) >= least]
    group, measure, label, hits, trials, other_hits, other_trials = counts.T
    each = 1 - (1 - confidence) / max(len(counts), 1)
    weights = np.ones((2, len(counts)))
    if belongs is not None:
        for row, (number, kind, own) in enumerate(counts[:, :3].tolist()):
            hit, about = _look(kind, own, predicted, target)
            sides = (about & members[number], about & ~members[number])
            weights[:, row] = [_weight(hit[side], belongs[side], each) for side in sides]
    inner, outer = (counts[:, first : first + 2].T * weight for first, weight in zip((3, 5), weights, strict=True))
    low, high = difference_interval(*inner, *outer, confidence=each)
    sign = np.where(measure == MEASURES.index("false positive rate"), 1, -1)
    difference = sign * (hits / np.maximum(trials, 1) - other_hits / np.maximum(other_trials, 1))
    ends = np.sort(np.stack([sign * low, sign * high]), axis=0)
    return Gaps(group, measure, label, hits, trials, other_hits, other_trials, difference, ends[0], ends[1])


def _looks(members: Flags, predicted: Whole, target: Whole, classes: int) -> Whole:
    """Group, measure, class, and hits of trials inside and outside, a row for each; counted class by class."""
    everybody = _hits_and_trials(predicted, target, classes)
    inside = [_hits_and_trials(predicted[own], target[own], classes) for own in members]
    kinds = np.array([(0, -1), *product((1, 2), range(classes))])
    rows = [np.column_stack([np.full(len(kinds), number), kinds, own, everybody - own]) for number, own in
            enumerate(inside)]  # fmt: skip
    return np.concatenate([np.empty((0, 7), dtype=np.int64), *rows])


def _hits_and_trials(predicted: Whole, target: Whole, classes: int) -> Whole:
    """Of accuracy, of the true positive rate of every class, and of their false positive rates; (measures, 2)."""
    shown, said, right = (
        np.bincount(labels, minlength=classes) for labels in (target, predicted, target[predicted == target])
    )
    accuracy = [[right.sum(), len(target)]]
    return np.concatenate([accuracy, np.stack([right, shown], 1), np.stack([said - right, len(target) - shown], 1)])


def _look(measure: int, label: int, predicted: Whole, target: Whole) -> tuple[Flags, Flags]:
    """What counts as a hit, and which inputs the measure is about."""
    if measure == 0:
        return predicted == target, np.ones(len(target), dtype=np.bool_)
    return predicted == label, (target == label) if measure == 1 else (target != label)


def _weight(hits: Flags, belongs: NDArray[np.generic], confidence: float) -> float:
    """How many independent inputs one of them counts for."""
    return float(effective_size(hits - hits.mean(), belongs, confidence=confidence) / len(hits))
