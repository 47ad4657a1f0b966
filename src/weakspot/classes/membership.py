"""Which image belongs to which class, single- or multi-label, labelled or predicted."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from weakspot.core.errors import DataError

Members: TypeAlias = csr_array
"""images × classes, 1 where the image belongs to the class; sparse, so that thousands of classes cost nothing."""


def class_members(labels: ArrayLike | csr_array, classes: int) -> Members:
    """Membership matrix (images × classes) from either way of labelling.

    labels: one class number per image (single-label; −1 for an image without a label), or a matrix
        images × classes that is nonzero where the image has the class (multi-label), dense or sparse.
    classes: number of classes.

    >>> class_members([2, 0, -1], classes=3).toarray().tolist()
    [[0, 0, 1], [1, 0, 0], [0, 0, 0]]
    """
    if issparse(labels):
        members = csr_array(labels)
    else:
        numbers = np.asarray(labels)
        members = csr_array(numbers != 0) if numbers.ndim == 2 else _single_label(numbers, classes)
    if members.shape[1] != classes:
        raise DataError(f"expected labels of {classes} classes, got a matrix of {members.shape[1]} columns.")
    return members.astype(np.int64)


def class_sizes(members: Members) -> NDArray[np.int64]:
    """Images of each class."""
    return np.asarray(members.sum(axis=0), dtype=np.int64)


def images_of(members: Members) -> list[NDArray[np.int64]]:
    """Positions of the images of each class."""
    columns = members.tocsc()
    return [columns.indices[start:stop] for start, stop in pairwise(columns.indptr)]


def rankable_classes(sizes: ArrayLike, *, minimum: int = 10, most_frequent: int | None = None) -> NDArray[np.int64]:
    """Classes with enough images to be ranked, in their own order; optionally only the most frequent of them.

    >>> rankable_classes([50, 3, 20, 90], most_frequent=2).tolist()
    [0, 3]
    """
    numbers = np.asarray(sizes)
    by_size = np.argsort(-numbers, kind="stable")
    return np.sort(by_size[numbers[by_size] >= minimum][:most_frequent])


def _single_label(numbers: NDArray[np.int64], classes: int) -> Members:
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise DataError(
            f"expected one class number per image or a matrix images × classes, "
            f"got {numbers.dtype} of shape {numbers.shape}."
        )
    if numbers.size and (numbers.min() < -1 or numbers.max() >= classes):
        raise DataError(
            f"expected class numbers 0 … {classes - 1} (−1: no label), got {numbers.min()} … {numbers.max()}."
        )
    labelled = np.flatnonzero(numbers >= 0)
    entries = (np.ones(labelled.size, dtype=np.int64), (labelled, numbers[labelled]))
    return csr_array(entries, shape=(numbers.size, classes))
