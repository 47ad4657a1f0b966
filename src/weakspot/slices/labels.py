"""Errors whose label may be wrong: their nearest neighbours in the model's features carry the predicted label."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from weakspot.slices.conditions import Flags

NEIGHBOURS, AGREEING = 10, 9
"""So many nearest neighbours are asked, and so many of them must carry the predicted label."""
_DIMENSIONS, _FITTED, _BLOCK = 64, 4000, 512


def doubtful_labels(
    features: NDArray[np.floating], labels: NDArray[np.int64], predicted: NDArray[np.int64]
) -> tuple[Flags, NDArray[np.float64]]:
    """Whether each input is such an error, and how near its neighbours are: their mean cosine.

    features: (inputs, features). labels, predicted: the same numbers for the same classes. After confident learning
    (Northcutt et al. 2021, `northcutt2021`), with neighbours in the place of probabilities (Deep k-NN, Bahri et al.
    2020, `bahri2020`).
    """
    flags, near = np.zeros(len(labels), dtype=bool), np.full(len(labels), np.nan)
    wrong = np.flatnonzero(labels != predicted)
    if not len(wrong) or len(labels) <= NEIGHBOURS or not features.shape[1]:
        return flags, near
    places = _directions(features)
    for start in range(0, len(wrong), _BLOCK):
        some = wrong[start : start + _BLOCK]
        cosines = places[some] @ places.T
        cosines[np.arange(len(some)), some] = -np.inf
        nearest = np.argpartition(-cosines, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
        agreeing = (labels[nearest] == predicted[some, None]).sum(1)
        flags[some] = agreeing >= AGREEING
        near[some] = np.take_along_axis(cosines, nearest, 1).mean(1)
    return flags, near.round(6)


def _directions(features: NDArray[np.floating]) -> NDArray[np.float64]:
    """Standardised features on their first principal components, of length 1."""
    values = features.astype(np.float64)
    spread = values.std(0)
    scaled = (values - values.mean(0)) / np.where(spread > 0, spread, 1.0)
    size = scaled.shape[1]
    some = scaled[np.unique(np.linspace(0, len(scaled) - 1, min(len(scaled), _FITTED)).round().astype(np.int64))]
    count = min(_DIMENSIONS, size)
    places = scaled @ eigh(some.T @ some, subset_by_index=[size - count, size - 1])[1]
    return np.asarray(places / np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-12))
