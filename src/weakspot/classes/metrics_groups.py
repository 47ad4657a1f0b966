"""Groups of images: how accuracy differs between them, how surely, and how differently the network treats them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.classes.metrics_bias import Near, limit_of, triplet_scores
from weakspot.core.errors import DataError
from weakspot.statistics import Interval, difference_interval, wilson_interval
from weakspot.statistics.clustered import effective_size

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class GroupAccuracy:
    """Accuracy of each group of images; one entry per group."""

    groups: tuple[str, ...]
    correct: Whole
    images: Whole
    weight: Floats | float = 1.0
    """How many independent images one image counts for, where images belong together."""

    @property
    def accuracy(self) -> Floats:
        """Share of the group's images that are predicted correctly."""
        return self.correct / self.images

    def interval(self, *, confidence: float = 0.95) -> Interval:
        """Wilson's interval of each accuracy."""
        return wilson_interval(self.correct * self.weight, self.images * self.weight, confidence=confidence)


@dataclass(frozen=True)
class AccuracyGaps:
    """Differences in accuracy between every two groups, the largest first; one entry per pair of groups."""

    pairs: Whole
    """Numbers of both groups, the one with the higher accuracy first; pairs × 2."""
    difference: Floats
    low: Floats
    high: Floats

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Whether the interval leaves out zero."""
        return self.low > 0


def group_accuracy(correct: ArrayLike, groups: ArrayLike, belongs: ArrayLike | None = None) -> GroupAccuracy:
    """Accuracy per group of a metadata column.

    correct: whether each image is predicted correctly.
    groups: name of each image's group.
    belongs: what each image belongs to, such as a film, where some belong together; intervals then go by it.

    >>> group_accuracy([True, False, True], ["man", "woman", "man"]).accuracy
    array([1., 0.])
    """
    right, names = np.asarray(correct, dtype=np.bool_), np.asarray(groups).astype(np.str_)
    if right.shape != names.shape or right.ndim != 1 or not right.size:
        raise DataError(f"expected one group per image, got {right.shape} images and {names.shape} groups.")
    labels, number, images = np.unique(names, return_inverse=True, return_counts=True)
    correct_images = np.bincount(number, right).astype(np.int64)
    if belongs is None:
        return GroupAccuracy(tuple(labels.tolist()), correct_images, images)
    films, weights = np.asarray(belongs), []
    for group in range(len(labels)):
        rows = number == group
        weights.append(effective_size(right[rows] - right[rows].mean(), films[rows]) / rows.sum())
    return GroupAccuracy(tuple(labels.tolist()), correct_images, images, np.array(weights))


def accuracy_gaps(accuracy: GroupAccuracy, *, confidence: float = 0.95) -> AccuracyGaps:
    """Differences in accuracy between every two groups, with Newcombe's interval, the largest first.

    All intervals hold together with the given confidence: each is taken at 1 − (1 − confidence)/pairs (Bonferroni),
    so that many groups do not make a difference out of chance.
    """
    order = np.argsort(-accuracy.accuracy, kind="stable")
    pairs = np.array(list(combinations(order, 2)), dtype=np.int64).reshape(-1, 2)
    if not len(pairs):
        raise DataError(f"expected two or more groups to compare, got {len(accuracy.groups)}.")
    weight = np.broadcast_to(accuracy.weight, len(accuracy.groups))
    correct, images = ((counts * weight)[pairs].T for counts in (accuracy.correct, accuracy.images))
    each = 1 - (1 - confidence) / len(pairs)
    low, high = difference_interval(correct[0], images[0], correct[1], images[1], confidence=each)
    difference = accuracy.accuracy[pairs[:, 0]] - accuracy.accuracy[pairs[:, 1]]
    largest = np.argsort(-difference, kind="stable")
    return AccuracyGaps(pairs[largest], difference[largest], low[largest], high[largest])


def group_bias(distance: Floats, pairs: Whole, groups: int, *, near: Near) -> tuple[Floats, Whole]:
    """Average bias of pairs of groups over all classes, and the class with the highest bias, −1 where none counts.

    distance: between groups and classes, the groups first.
    pairs: pairs × 2, numbers of groups.
    """
    limit = limit_of(distance, near)
    average, worst = np.zeros(len(pairs)), np.full(len(pairs), -1)
    for row, pair in enumerate(pairs):
        scores = triplet_scores(distance, pair[None], limit)[0, groups:]
        if not np.isnan(scores).all():
            average[row], worst[row] = np.nansum(scores) / scores.size, np.nanargmax(scores)
    return average, worst
