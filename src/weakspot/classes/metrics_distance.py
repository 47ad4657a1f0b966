"""Distance between two classes in the neurons they activate: classes at a small distance are easily confused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from threadpoolctl import threadpool_limits

from weakspot.classes.pairs import checked_symmetric, pair_values
from weakspot.core.errors import DataError

Floats = NDArray[np.float64]
Real = NDArray[np.floating]

_BLOCK_BYTES = 128 << 20
_STRIP = 125
CANCELLED = 1e-4
"""Below this share of the squared norms a difference of them has lost four digits and is computed directly."""


def activation_distance(probability: ArrayLike, *, normalise: bool = False, images: ArrayLike | None = None) -> Floats:
    """NAPVD: Euclidean distance between the activation probabilities of every two classes (`deepinspect`, Eq. 2).

    Δ(a, b) = √Σ_n (P(n|a) − P(n|b))².

    probability: P(n|C), classes × neurons; a row of NaN for a class without images.
    normalise: divide by the root of the number of neurons that either class ever activates, as the authors'
        released code does (the paper's formula has no such term).
    images: the number of images of each class, where the rows are not probabilities but counts of images, as
        `activation_counts` gives them: they are divided block by block, and never fill the memory as floats.
    returns: classes × classes, symmetric, zero on the diagonal; NaN for a class without images.

    >>> activation_distance([[1, 0, 0], [1, 0.6, 0.8]])
    array([[0., 1.],
           [1., 0.]])
    """
    rows = _checked_probability(probability) if images is None else _checked_counts(probability, images)
    sizes = None if images is None else np.asarray(images, dtype=np.float64)
    # the distance does not change if all classes move by the same vector; near the origin it keeps its digits
    centre = np.nan_to_num(_shares(rows, sizes, slice(0, 256))).mean(axis=0)
    step = max(1, _BLOCK_BYTES // (8 * rows.shape[1]))
    blocks = [slice(start, start + step) for start in range(0, len(rows), step)]
    distance = np.empty((len(rows), len(rows)))
    for number, first in enumerate(blocks):
        first_rows, first_shares = rows[first], _shares(rows, sizes, first) - centre
        for second in blocks[number:]:
            second_rows, second_shares = (
                (first_rows, first_shares) if second is first else (rows[second], _shares(rows, sizes, second) - centre)
            )
            block = _distance_block(first_shares, second_shares)
            if normalise:
                block /= np.sqrt(np.maximum(_either_active(first_rows, second_rows), 1))
            distance[first, second], distance[second, first] = block, block.T
    np.fill_diagonal(distance, np.where(np.isnan(np.diagonal(distance)), np.nan, 0.0))
    return distance


def _shares(rows: NDArray[Any], sizes: Floats | None, block: slice) -> Floats:
    """The probabilities of a block of classes; NaN for a class without images."""
    if sizes is None:
        return rows[block].astype(np.float64)
    with np.errstate(invalid="ignore"):
        shares: Floats = np.divide(rows[block], sizes[block, None], dtype=np.float64)
    return shares


def _distance_block(first: Floats, second: Floats) -> Floats:
    """Distances between the rows of two blocks, through |x|² + |y|² − 2·x·y where that is precise enough."""
    norms = np.einsum("ij,ij->i", first, first)[:, None] + np.einsum("ij,ij->i", second, second)
    with np.errstate(invalid="ignore"):  # classes without images
        squared: Floats = norms - 2 * _products(first, second)
    for row, column in zip(*np.nonzero(squared < CANCELLED * norms), strict=True):
        difference = first[row] - second[column]
        squared[row, column] = difference @ difference
    return np.sqrt(squared, out=squared)


def _products(first: Real, second: Real) -> Real:
    """first · secondᵀ in strips, one thread each; of a block with itself only one half, mirrored.

    The threads of a BLAS wait for each other at every step: beside other work with many threads, one product of the
    whole took ten times as long. Strips are independent of each other.
    """
    if len(first) <= _STRIP:
        return first @ second.T
    products = np.empty((len(first), len(second)), dtype=first.dtype)

    def multiply(start: int) -> None:
        strip, beyond = slice(start, start + _STRIP), slice(start if first is second else 0, None)
        products[strip, beyond] = first[strip] @ second[beyond].T
        if first is second:
            products[beyond, strip] = products[strip, beyond].T

    with threadpool_limits(1, "blas"), ThreadPoolExecutor() as pool:
        list(pool.map(multiply, range(0, len(first), _STRIP)))
    return products


def _either_active(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Number of neurons that at least one of two classes ever activates; exact in float32 below 2²⁴ neurons."""
    some = (first > 0).astype(np.float32)
    other = some if second is first else (second > 0).astype(np.float32)
    either: Floats = some.sum(axis=1, dtype=np.float64)[:, None] + other.sum(axis=1, dtype=np.float64)
    either -= _products(some, other)
    return either


def class_tree(distance: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    """Dendrogram of the classes (average linkage) and the order of its leaves, similar classes side by side.

    distance: classes × classes, without NaN: leave out classes that could not be ranked.
    returns: scipy's linkage matrix, (classes − 1) × 4, and the order of the classes.
    """
    pairs = pair_values(checked_symmetric(distance))
    if not pairs.size or np.isnan(pairs).any():
        raise DataError("expected distances between two or more classes, none NaN; leave out classes without images.")
    tree = linkage(pairs, method="average")
    return tree, leaves_list(tree).astype(np.int64)


def _checked_counts(counts: ArrayLike, images: ArrayLike) -> NDArray[np.integer]:
    rows, sizes = np.asarray(counts), np.asarray(images)
    if rows.ndim != 2 or not rows.size or rows.dtype.kind not in "iu" or sizes.shape != (len(rows),):
        raise DataError(
            f"expected counts of images (classes × neurons) and the images of each class, got {rows.dtype} of shape "
            f"{rows.shape} and shape {sizes.shape}."
        )
    if any(counted.max() > size for counted, size in zip(rows, sizes, strict=True)):
        raise DataError("expected at most as many images that activate a neuron as the class has, got more.")
    return rows


def _checked_probability(probability: ArrayLike) -> Real:
    rows = np.asarray(probability)
    rows = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
    if rows.ndim != 2 or not rows.size:
        raise DataError(f"expected activation probabilities (classes × neurons), got shape {rows.shape}.")
    low, high = np.fmin.reduce(rows, axis=None), np.fmax.reduce(rows, axis=None)
    if low < 0 or high > 1:
        raise DataError(
            f"expected probabilities between 0 and 1, got {low:g} to {high:g}; "
            "divide the counts by the number of images of the class."
        )
    return rows
