"""What sets weak inputs apart, as plain functions: place among the classes, classes, variations, number of queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from weakspot.core.errors import DataError
from weakspot.looks import GRAIN, Combined, Variation
from weakspot.robustness.measures import simpson_diversity
from weakspot.statistics.effects import cohens_d
from weakspot.statistics.ranking import spearman

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


_VALUES_AT_ONCE = 1 << 22
"""So many values of the features are in memory at a time, however many inputs there are."""


class Features(Protocol):
    """Numbers of shape (inputs, neurons), in memory or on disk, of which some are read at a time."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Inputs and neurons."""

    def __getitem__(self, key: Any, /) -> np.ndarray:
        """Some rows, or some columns of some rows."""


def _rows_at_a_time(features: Features) -> Iterator[slice]:
    some = max(1, _VALUES_AT_ONCE // max(1, features.shape[1]))
    return (slice(start, start + some) for start in range(0, features.shape[0], some))


def class_centres(features: Features, classes: np.ndarray) -> tuple[np.ndarray, Floats]:
    """The classes that occur, and their centres: the median of every feature over the inputs of the class."""
    present = np.unique(classes)
    return present, np.stack([_median(features, np.flatnonzero(classes == each)) for each in present])


def _median(features: Features, rows: np.ndarray) -> Floats:
    some = max(1, _VALUES_AT_ONCE // len(rows))
    parts = (slice(start, start + some) for start in range(0, features.shape[1], some))
    return np.concatenate([np.median(features[rows, part].astype(np.float64), axis=0) for part in parts])


def centre_distance_ratio(features: Features, classes: np.ndarray) -> Floats:
    """r = (distance to the centre of the own class)/(distance to the nearest other centre), Zhong et al. 2021.

    Small well inside a class, about 1 at the border between two. features (inputs, neurons), classes (inputs,).

    >>> features, classes = np.array([[0.0], [0.0], [1.0], [4.0], [4.0]]), np.array([0, 0, 0, 1, 1])
    >>> centre_distance_ratio(features, classes).round(3).tolist()
    [0.0, 0.0, 0.333, 0.0, 0.0]
    """
    present, centres = class_centres(features, classes)
    if len(present) < 2:
        raise DataError("distances between classes need inputs of two classes or more, got one")
    own = np.searchsorted(present, classes)
    return np.concatenate([_distance_ratio(features[some], own[some], centres) for some in _rows_at_a_time(features)])


def _distance_ratio(features: np.ndarray, own: np.ndarray, centres: Floats) -> Floats:
    distances = np.stack([np.linalg.norm(features - centre, axis=1) for centre in centres], 1)
    mine = distances[np.arange(len(own)), own]
    distances[np.arange(len(own)), own] = np.inf
    nearest = distances.min(1)
    return np.asarray(mine / np.where(nearest > 0, nearest, np.finfo(np.float64).tiny))


@dataclass(frozen=True)
class Apart:
    """How far a number differs between weak and strong inputs."""

    weak: float
    """Mean over the weak inputs."""
    strong: float
    effect: float
    """Cohen's d."""
    p_value: float
    """Mann–Whitney, two-sided."""


def apart(values: np.ndarray, weak: Bools) -> Apart | None:
    """Compares weak with strong inputs; none where there are fewer than two of a kind.

    >>> found = apart(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, True, True]))
    >>> found.weak, found.strong, round(found.effect, 2), round(found.p_value, 2)
    (3.5, 1.5, 2.83, 0.33)
    """
    first, second = values[weak], values[~weak]
    if min(len(first), len(second)) < 2:
        return None
    tested = mannwhitneyu(first, second)
    return Apart(float(first.mean()), float(second.mean()), cohens_d(first, second), float(tested.pvalue))


def diversity_correlation(predictions: np.ndarray, accuracy: np.ndarray, queries: Sequence[int]) -> Floats:
    """Spearman's ρ of neighbour accuracy with λ over the original and the first m neighbours, for each m.

    predictions (inputs, looks + 1), the original first; NaN where one side is constant.
    """
    return np.array([spearman(simpson_diversity(predictions[:, : m + 1]), accuracy) for m in queries])


def principal_map(features: Features) -> Floats:
    """The two directions in which the features vary most: principal components, (inputs, 2).

    Signs are fixed by the largest weight, so that equal features give the same map.

    >>> principal_map(np.array([[0.0, 0.0], [2.0, 0.1], [4.0, 0.0]]))[:, 0].round(1).tolist()
    [-2.0, 0.0, 2.0]
    """
    parts = list(_rows_at_a_time(features))
    mean = sum(features[some].sum(0, dtype=np.float64) for some in parts) / features.shape[0]
    scatter = np.zeros((features.shape[1], features.shape[1]))
    for some in parts:
        centred = features[some] - mean
        scatter += centred.T @ centred
    values, vectors = np.linalg.eigh(scatter)
    axes = vectors[:, np.argsort(-values, kind="stable")[:2]]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    places = np.concatenate([(features[some] - mean) @ axes for some in parts])
    return np.pad(places, ((0, 0), (0, 2 - axes.shape[1])))


@dataclass(frozen=True)
class Span:
    """One quantity that a variation draws: in which column of its parameters, and from where to where."""

    name: str
    unit: str
    column: int
    low: float
    high: float

    def bins(self, parameters: np.ndarray, count: int) -> NDArray[np.int64]:
        """The bin of each parameter, of `count` of equal width."""
        width = (self.high - self.low) or 1.0
        place = ((parameters[:, self.column] - self.low) / width * count).astype(np.int64)
        return np.clip(place, 0, count - 1)

    def edges(self, count: int) -> Floats:
        """The borders of the bins."""
        return np.linspace(self.low, self.high, count + 1)


def spans(variation: Variation) -> list[Span]:
    """The quantities of a variation whose turn it is, in the order of its parameters; seeds of noise are left out.

    >>> from weakspot.looks import Rotate, Shift
    >>> [(span.name, span.column, span.low) for span in spans(Rotate(30) & Shift(3))][:2]
    [('rotation', 0, -30.0), ('shift to the right', 1, -3.0)]
    """
    parts = variation.parts if isinstance(variation, Combined) else (variation,)
    found, column = [], 0
    for part in parts:
        for quantity in part.quantities:
            if quantity is not GRAIN and part.range[0] < part.range[1]:
                found.append(Span(quantity.name, quantity.unit, column, *part.range))
            column += 1
    return found
