"""Images that are alike to the network: near each other among the values of one of its layers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_ROWS = 512
"""Images that are compared with all others at a time."""
_USUAL = 1000
"""Images between which the usual distance is measured."""


class FeatureCopies(NamedTuple):
    """The image nearest to each: its place, −1 where none is near enough; and how near it is, 1 for the usual."""

    place: Places
    distance: Floats


def feature_copies(features: Floats, others: Floats | None = None, *, limit: float) -> FeatureCopies:
    """The nearest of the others to each image, where its distance is at most `limit` of the usual one.

    Euclidean, of features divided by their spread; the usual distance is the median between two of the others, evenly
    drawn. Of equally near ones the first is taken. Without others each image is compared with the rest.

    features: (images, neurons).
    limit: a share of the usual distance.

    >>> [part.tolist() for part in feature_copies(np.array([[0.0], [4.0], [4.1], [9.0]]), limit=0.1)]
    [[-1, 2, 1, -1], [0.888889, 0.022222, 0.022222, 1.088889]]
    """
    against = features if others is None else others
    spread = against.std(0)
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    first, second = ((part - against.mean(0)) * scale for part in (features, against))
    some = second[np.unique(np.linspace(0, len(second) - 1, min(len(second), _USUAL)).astype(np.int64))]
    apart = _distances(some, some)[np.triu_indices(len(some), 1)]
    usual = float(np.median(apart)) if len(apart) else 0.0
    place, distance = np.full(len(first), -1, dtype=np.int64), np.full(len(first), np.inf)
    for start in range(0, len(first), _ROWS):
        between = _distances(first[start : start + _ROWS], second)
        if others is None:
            between[np.arange(len(between)), np.arange(start, start + len(between))] = np.inf
        if between.shape[1]:
            place[start : start + _ROWS], distance[start : start + _ROWS] = between.argmin(1), between.min(1)
    near = distance / usual if usual > 0 else np.full(len(first), np.inf)
    return FeatureCopies(np.where(near <= limit, place, -1), np.round(near, 6))


def _distances(first: Floats, second: Floats) -> Floats:
    squares = (first**2).sum(1)[:, None] + (second**2).sum(1)[None] - 2 * first @ second.T
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))
