"""Regions of a view of the model, such as its features, that hold unusually many errors: directions with a threshold.

Errors are clustered in the view twice: as its principal components are, and with all of them of the same spread, so
that small differences count as well. Every cluster of both trees is taken for a candidate. Its region holds the inputs,
wrong or correct, that lie in the direction from the correct inputs to the errors of the cluster (`fisher1936`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.linalg import eigh

from weakspot.slices.conditions import Flags, SliceCondition, Trait
from weakspot.slices.gains import expected_errors, likelihood_gain

Floats = NDArray[np.float64]
DIMENSIONS = 40
"""Principal components of a view that are used."""
SHRINKAGE = 0.05
"""How much of their mean variance is added to each component's, so that small ones do not decide."""
SMALLEST, LARGEST = 8, 0.25
"""Errors of a cluster: at least so many, and at most this share of all errors that are searched."""
MOST = 2500
"""Of more errors or inputs so many are used, for the tree and for the components."""
NEAREST = 0.3
"""The least likeness from which on inputs belong to a region: 0 is like correct inputs, 1 like the errors."""
LEAST_GAIN = 5.0
"""Regions of a smaller gain in nats are no candidates."""


@dataclass(frozen=True)
class View:
    """What a model shows of each input in one place, (inputs, values), such as its features."""

    name: str
    values: NDArray[np.floating]


@dataclass(frozen=True)
class ErrorRegion:
    """Inputs like the errors of a group: likeness = values · weights − offset ≥ least.

    The likeness is 0 on average for the correct inputs and 1 for the errors of the group.
    """

    view: str
    weights: Floats
    offset: float
    least: float

    def likeness(self, values: NDArray[np.floating]) -> Floats:
        """How much each input, (inputs, values), is like the group.

        >>> region = ErrorRegion("features", np.array([2.0, 0.0]), 1.0, 0.5)
        >>> region.likeness(np.array([[1.0, 9.0], [0.5, 0.0]])).tolist()
        [1.0, 0.0]
        """
        return np.asarray((values @ self.weights - self.offset).round(6), dtype=np.float64)

    def condition(self, number: int) -> SliceCondition:
        """What its inputs meet: a likeness to the group of this number."""
        return SliceCondition(f"{self.view} {number}", low=self.least, word=f"alike in {self.view}")


def likeness_traits(regions: Sequence[ErrorRegion], values: NDArray[np.floating]) -> list[Trait]:
    """The likeness of each input to each region of one view, as traits that are numbered from 1 on."""
    if not regions:
        return []
    weights = np.stack([each.weights for each in regions], axis=1)
    likeness = (values @ weights - np.array([each.offset for each in regions])).round(6)
    return [
        Trait(f"{each.view} {number}", column, "features")
        for number, (each, column) in enumerate(zip(regions, likeness.T, strict=True), start=1)
    ]


def error_regions(
    view: View, wrong: Flags, among: Flags, strata: NDArray[np.int64] | None = None, *, smallest: int = 10
) -> list[ErrorRegion]:
    """The candidates of a view, from the inputs `among`: one for each cluster of their errors with a gain.

    strata: a number per input, such as its class, within which error rates are compared.
    smallest: how many of the inputs a region holds at least.
    """
    chosen, errors = np.flatnonzero(among), np.flatnonzero(among & wrong)
    if min(len(errors), len(chosen) - len(errors)) < 2 * SMALLEST or not view.values.shape[1]:
        return []
    basis, places = _components(view.values[chosen].astype(np.float64))
    if not basis.shape[1]:
        return []
    expected = expected_errors(wrong[chosen], None if strata is None else strata[chosen])
    own = wrong[chosen]
    spread = np.sqrt(places.var(0) * (1 - SHRINKAGE) + SHRINKAGE * places.var(0).mean())
    middle, usual = places[~own].mean(0), view.values[among & ~wrong].mean(0, dtype=np.float64)
    regions = []
    for members in chain(_clusters(places[own]), _clusters(places[own] / spread)):
        towards = places[own][members].mean(0) - middle
        if not towards.any():
            continue
        weights = towards / spread**2 / (towards @ (towards / spread**2))
        least = _threshold((places - middle) @ weights, own, expected, smallest)
        if least is not None:
            back = basis @ weights
            regions.append(ErrorRegion(view.name, back, float(usual @ back), least))
    return regions


def _components(values: Floats) -> tuple[Floats, Floats]:
    """The first principal components of the standardised values, as a matrix for the values as they are; the places."""
    spread = values.std(0)
    usable = spread > 1e-6 * max(float(spread.max(initial=0.0)), 1e-30)
    scaled = np.where(usable, values / np.where(usable, spread, 1.0), 0.0)
    some = scaled[_evenly(len(scaled), MOST)]
    covariance = np.cov(some.T).reshape(values.shape[1], -1)
    size = values.shape[1]
    count = min(DIMENSIONS, size, int(usable.sum()))
    if not count:
        return np.zeros((size, 0)), np.zeros((len(values), 0))
    vectors = eigh(covariance, subset_by_index=[size - count, size - 1])[1]
    basis = np.where(usable[:, None], vectors / np.where(usable, spread, 1.0)[:, None], 0.0)
    return basis, values @ basis


def _clusters(places: Floats) -> Iterator[NDArray[np.int64]]:
    """The members of each cluster of Ward's tree that is neither too small nor too large: places among the errors."""
    some = _evenly(len(places), MOST)
    count = len(some)
    smallest, largest = max(SMALLEST, count // 100), int(count * LARGEST)
    members: list[NDArray[np.int64]] = [np.array([place]) for place in some.tolist()]
    for first, second in linkage(places[some], "ward")[:, :2].astype(np.int64).tolist():
        joined = np.concatenate([members[first], members[second]])
        members.append(joined)
        if smallest <= len(joined) <= largest:
            yield joined


def _threshold(likeness: Floats, wrong: Flags, expected: Floats, smallest: int) -> float | None:
    """From which likeness on the gain is largest; None where it is small everywhere."""
    rounded = likeness.round(6)
    order = np.argsort(-rounded, kind="stable")
    size = np.arange(1, len(order) + 1, dtype=np.float64)
    errors, usual = np.cumsum(wrong[order].astype(np.float64)), np.cumsum(expected[order])
    gain = likelihood_gain(size, errors, usual, len(order), float(wrong.sum()))
    last = np.append(rounded[order][1:] < rounded[order][:-1], True)  # equal values are on one side
    possible = last & (rounded[order] >= NEAREST) & (size >= smallest) & (len(order) - size >= smallest)
    gain = np.where(possible, gain, 0.0)
    best = int(gain.argmax())
    return float(rounded[order[best]]) if gain[best] > LEAST_GAIN else None


def _evenly(count: int, most: int) -> NDArray[np.int64]:
    """All places, or as many as there may be at even distances."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))
