"""What sets weak inputs apart: pure functions on features and predictions (Zhong et al. 2021, `zhong2021`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from weakspot.core.errors import DataError
from weakspot.robustness.metrics import simpson_diversity
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


def _row_blocks(features: Features) -> Iterator[slice]:
    rows = max(1, _VALUES_AT_ONCE // max(1, features.shape[1]))
    return (slice(start, start + rows) for start in range(0, features.shape[0], rows))


def class_centres(features: Features, classes: np.ndarray) -> tuple[np.ndarray, Floats]:
    """The classes that occur, and their centres: the median of every feature over the inputs of the class."""
    present = np.unique(classes)
    return present, np.stack([_median(features, np.flatnonzero(classes == number)) for number in present])


def _median(features: Features, rows: np.ndarray) -> Floats:
    columns = max(1, _VALUES_AT_ONCE // len(rows))
    parts = (slice(start, start + columns) for start in range(0, features.shape[1], columns))
    return np.concatenate([np.median(features[rows, part].astype(np.float64), axis=0) for part in parts])


def centre_distance_ratio(features: Features, classes: np.ndarray) -> Floats:
    """r = (distance to the centre of the input's class)/(distance to the nearest other centre), Zhong et al. 2021.

    Small well inside a class, about 1 at the border between two. features (inputs, neurons), classes (inputs,).

    >>> features, classes = np.array([[0.0], [0.0], [1.0], [4.0], [4.0]]), np.array([0, 0, 0, 1, 1])
    >>> centre_distance_ratio(features, classes).round(3).tolist()
    [0.0, 0.0, 0.333, 0.0, 0.0]
    """
    present, centres = class_centres(features, classes)
    if len(present) < 2:
        raise DataError("distances between classes need inputs of two classes or more, got one")
    index = np.searchsorted(present, classes)
    return np.concatenate([_distance_ratio(features[rows], index[rows], centres) for rows in _row_blocks(features)])


def _distance_ratio(features: np.ndarray, classes: np.ndarray, centres: Floats) -> Floats:
    distances = np.stack([np.linalg.norm(features - centre, axis=1) for centre in centres], 1)
    rows = np.arange(len(classes))
    to_class = distances[rows, classes]
    distances[rows, classes] = np.inf
    nearest_other = distances.min(1)
    return np.asarray(to_class / np.where(nearest_other > 0, nearest_other, np.finfo(np.float64).tiny))


@dataclass(frozen=True)
class WeakStrongDifference:
    """How much a number differs between weak and strong inputs.

    weak, strong: its means over the weak and over the strong inputs.
    effect: Cohen's d.
    p_value: of the Mann–Whitney test, two-sided.
    """

    weak: float
    strong: float
    effect: float
    p_value: float


def weak_strong_difference(values: np.ndarray, weak: Bools) -> WeakStrongDifference | None:
    """Compares weak with strong inputs; None where there are fewer than two of a kind.

    >>> compared = weak_strong_difference(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, True, True]))
    >>> compared.weak, compared.strong, round(compared.effect, 2), round(compared.p_value, 2)
    (3.5, 1.5, 2.83, 0.33)
    """
    of_weak, of_strong = values[weak], values[~weak]
    if min(len(of_weak), len(of_strong)) < 2:
        return None
    test = mannwhitneyu(of_weak, of_strong)
    effect = cohens_d(of_weak, of_strong)
    return WeakStrongDifference(float(of_weak.mean()), float(of_strong.mean()), effect, float(test.pvalue))


def concentration_correlation(predictions: np.ndarray, accuracy: np.ndarray, queries: Sequence[int]) -> Floats:
    """Spearman's ρ of neighbour accuracy with λ over the original and the first m neighbours, for each m in queries.

    NaN where one side is constant.

    predictions: shape (inputs, looks + 1), the original first.
    """
    return np.array([spearman(simpson_diversity(predictions[:, : m + 1]), accuracy) for m in queries])


def principal_components(features: Features) -> Floats:
    """The features projected onto their first two principal components, (inputs, 2) (Pearson 1901).

    Signs are fixed by the largest weight, so that equal features give equal coordinates.

    >>> principal_components(np.array([[0.0, 0.0], [2.0, 0.1], [4.0, 0.0]]))[:, 0].round(1).tolist()
    [-2.0, 0.0, 2.0]
    """
    blocks = list(_row_blocks(features))
    mean = sum(features[rows].sum(0, dtype=np.float64) for rows in blocks) / features.shape[0]
    scatter = np.zeros((features.shape[1], features.shape[1]))
    for rows in blocks:
        centred = features[rows] - mean
        scatter += centred.T @ centred
    values, vectors = np.linalg.eigh(scatter)
    axes = vectors[:, np.argsort(-values, kind="stable")[:2]]
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    coordinates = np.concatenate([(features[rows] - mean) @ axes for rows in blocks])
    return np.pad(coordinates, ((0, 0), (0, 2 - axes.shape[1])))


def quartiles_of_counts(counts: np.ndarray, values: np.ndarray) -> Floats:
    """The quartiles of values that occur so often.

    >>> quartiles_of_counts(np.array([1, 2, 1]), np.array([0.0, 0.5, 1.0])).tolist()
    [0.0, 0.5, 0.5]
    """
    reached = np.cumsum(counts) / counts.sum()
    return np.asarray(values[[int(np.argmax(reached >= q - 1e-12)) for q in (0.25, 0.5, 0.75)]])
