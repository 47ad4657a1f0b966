"""The conditions that a search tries: every value of a category, and ranges of numbers between quantiles."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weakspot.slices.conditions import SliceCondition, Trait

Floats = NDArray[np.float64]
QUANTILES = (0.01, *(step / 40 for step in range(1, 40)), 0.99)
"""Where ranges of numbers may begin and end."""
TENTHS = tuple(step / 10 for step in range(1, 10))
"""Where ranges with two ends may begin and end."""
BEYOND = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Quantiles of the distance from the median, for what is far from it on either side."""
FEW = 10
"""A number with no more different values is compared with each of them."""
ARCS = 12
"""Into how many parts numbers that go round are cut."""


def candidate_conditions(traits: Sequence[Trait], chosen: NDArray[np.bool_], smallest: int) -> list[SliceCondition]:
    """The conditions on each trait that at least `smallest` of the chosen inputs meet, and as many do not.

    >>> weather = Trait("weather", np.array(["fog"] * 3 + ["sun"] * 4 + ["hail"]))
    >>> [one.text for one in candidate_conditions([weather], np.ones(8, dtype=bool), smallest=3)]
    ['weather = fog', 'weather = sun']
    """
    conditions = []
    for trait in traits:
        column = trait.column[chosen]
        for condition in _conditions(trait, column):
            members = int(condition.holds(column).sum())
            if smallest <= members <= len(column) - smallest:
                conditions.append(condition)
    return conditions


def _conditions(trait: Trait, column: NDArray[np.generic]) -> Iterator[SliceCondition]:
    if not trait.numeric:
        values, counts = np.unique(column[column != ""], return_counts=True)
        yield from (SliceCondition(trait.name, value=str(value)) for value in values[counts > 1])
        return
    numbers = np.asarray(column, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return
    if trait.period is not None:
        yield from _arcs(trait, trait.period)
        return
    values = np.unique(finite)
    if len(values) <= FEW:
        yield from (SliceCondition(trait.name, value=float(value)) for value in values)
        yield from _one_ended(trait, np.array([(a + b) / 2 for a, b in pairwise(values)][1:-1]))
        return
    yield from _one_ended(trait, _edges(finite, QUANTILES))
    yield from _two_ended(trait, _edges(finite, TENTHS))
    if trait.source != "image":  # both ends of a measure are two things: blurred and noisy, dark and bright
        yield from _far(trait, finite)


def _edges(finite: Floats, quantiles: Sequence[float]) -> Floats:
    """The quantiles, rounded as far as the spread of the values allows, so that they are the ones that are printed."""
    return np.unique(_rounded(np.quantile(finite, quantiles), finite))


def _rounded(edges: Floats, finite: Floats) -> Floats:
    spread = float(np.subtract(*np.quantile(finite, [0.95, 0.05]))) or float(np.ptp(finite))
    decimals = int(np.clip(np.ceil(2.5 - np.log10(spread)), -12, 12)) if spread > 0 else 6
    return np.asarray(np.round(edges, decimals))


def _one_ended(trait: Trait, edges: Floats) -> Iterator[SliceCondition]:
    for edge in edges.tolist():
        yield SliceCondition(trait.name, high=edge, word=trait.low)
        yield SliceCondition(trait.name, low=edge, word=trait.high)


def _two_ended(trait: Trait, edges: Floats) -> Iterator[SliceCondition]:
    """Ranges of up to half of the inputs."""
    for first in range(len(edges)):
        for last in range(first + 1, min(first + 6, len(edges))):
            yield SliceCondition(trait.name, low=float(edges[first]), high=float(edges[last]))


def _far(trait: Trait, finite: Floats) -> Iterator[SliceCondition]:
    """What is far from the median on either side."""
    middle = float(np.median(finite))
    for distance in np.quantile(np.abs(finite - middle), BEYOND).tolist():
        low, high = _rounded(np.array([middle - distance, middle + distance]), finite).tolist()
        if low > finite.min() and high < finite.max():
            yield SliceCondition(trait.name, low=low, high=high, outside=True)


def _arcs(trait: Trait, period: float) -> Iterator[SliceCondition]:
    """Ranges of one to four twelfths of the period, each beginning at a twelfth."""
    step = period / ARCS
    for start in range(ARCS):
        for length in (1, 2, 3, 4):
            high = (start + length) % ARCS * step
            yield SliceCondition(trait.name, low=start * step, high=high, period=period)


FORMS = {"plain": 0.6, "range": 0.25, "outside": 0.15}
"""How probable each form of condition is before anything is known: a value or one end, two ends, outside of them."""
NOTED = 4
"""How much more probable a trait of the metadata is than a measure of the image that goes with it."""


def naming_costs(conditions: Sequence[SliceCondition], measured: Collection[str] = ()) -> Floats:
    """What it costs in nats to name each condition: every trait costs the same, then its form, then its numbers.

    measured: traits that were measured of the images. What a user has noted is taken for `NOTED` times as probable.

    >>> naming_costs([SliceCondition("x", low=1.0), SliceCondition("x", low=2.0), SliceCondition("y", value=1.0)])
    array([1.89711998, 1.89711998, 1.2039728 ])
    """
    forms = [(each.trait, _form(each)) for each in conditions]
    counts = Counter(forms)
    traits = len({each.trait for each in conditions})
    weights = [FORMS[form] / (NOTED if trait in measured else 1) for trait, form in forms]
    return np.array([np.log(traits * counts[each] / weight) for each, weight in zip(forms, weights, strict=True)])


def _form(condition: SliceCondition) -> str:
    if condition.outside:
        return "outside"
    return "plain" if condition.low is None or condition.high is None else "range"
