"""Pairs of classes: their values as one vector, and which of them to report.

The pairs a < b of n classes are kept in the order (0, 1), (0, 2), …, (1, 2), …; a value per pair is a vector of
n(n−1)/2 entries, half the memory of the matrix.
"""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import ConfigError, DataError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Positions = NDArray[np.int64]

Cutoff = str | float
"""What to report: "std" (one standard deviation from the mean; "2 std" …), "top 1%" (any share), or a score."""


def pair_values(matrix: ArrayLike) -> Floats:
    """Upper triangle of a square matrix (classes × classes), one entry for each pair a < b.

    >>> pair_values([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    array([1., 2., 3.])
    """
    square = checked_square(matrix)
    return square[np.triu(np.ones(square.shape, dtype=np.bool_), 1)]


def pair_classes(positions: ArrayLike, classes: int) -> Positions:
    """The two classes of the pairs at the given positions, shape (…, 2).

    >>> pair_classes([0, 1, 2], classes=3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    places = np.asarray(positions, dtype=np.int64)
    ends = np.cumsum(np.arange(classes - 1, -1, -1))
    if places.size and (places.min() < 0 or places.max() >= classes * (classes - 1) // 2):
        raise DataError(
            f"expected pair positions 0 … {classes * (classes - 1) // 2 - 1} for {classes} classes, "
            f"got {places.min()} … {places.max()}."
        )
    first = np.searchsorted(ends, places, side="right")
    return np.stack([first, places - ends[first] + classes], axis=-1)


def suspicious(score: ArrayLike, cutoff: Cutoff = "std", *, rounding: Literal["down", "up"] = "down") -> Bools:
    """Which pairs to report, where a higher score is more suspicious.

    score: one entry per pair; a pair without a score (NaN) is neither counted nor reported.
    cutoff: "std" reports score > mean + std (population std over the pairs; "2 std" two of them), "top 1%" that
        share of the pairs with the highest scores, a number every pair with a score above it.
    rounding: of the number of pairs in a top share.

    >>> suspicious([1, 2, 3, 10]).tolist(), suspicious([1, 2, 3, 10], "top 50%").tolist()
    ([False, False, False, True], [False, False, True, True])
    """
    scores = np.asarray(score, dtype=np.float64)
    kind, amount = _parsed(cutoff)
    if kind != "top":
        return scores > cutoff_score(scores, cutoff)
    reported = np.zeros(scores.shape, dtype=np.bool_)
    reported[np.argsort(-scores, kind="stable")[: _share(scores, amount, rounding)]] = True
    return reported


def cutoff_score(score: ArrayLike, cutoff: Cutoff = "std", *, rounding: Literal["down", "up"] = "down") -> float:
    """Score at which `suspicious` begins to report: above it, or for a top share the lowest score reported."""
    kind, amount = _parsed(cutoff)
    scores = np.asarray(score, dtype=np.float64)
    scored = scores[~np.isnan(scores)]
    if kind == "top":
        number = _share(scored, amount, rounding)
        return float(np.partition(scored, -number)[-number]) if number else np.inf
    if kind == "std":
        return float(scored.mean() + amount * scored.std()) if scored.size else np.inf
    return amount


def most_suspicious(score: ArrayLike, reported: ArrayLike) -> Positions:
    """Positions of the reported pairs, highest score first; equal scores keep the order of the pairs."""
    positions = np.flatnonzero(np.asarray(reported))
    return positions[np.argsort(-np.asarray(score, dtype=np.float64)[positions], kind="stable")]


def _share(scores: Floats, per_cent: float, rounding: str) -> int:
    """Number of pairs in a top share of those that have a score."""
    # rounded first: 7 % of 100 pairs are seven, though 0.07 · 100 is a little more in binary
    exact = round(np.count_nonzero(~np.isnan(scores)) * per_cent / 100, 9)
    return int(np.ceil(exact) if rounding == "up" else np.floor(exact))


def _parsed(cutoff: Cutoff) -> tuple[Literal["top", "std", "score"], float]:
    """What a cutoff counts in, and how much of it."""
    if not isinstance(cutoff, str):
        return "score", float(cutoff)
    if share := re.fullmatch(r"top\s*(\d+\.?\d*)\s*%", cutoff):
        return "top", float(share[1])
    if deviations := re.fullmatch(r"(\d+\.?\d*)?\s*std", cutoff):
        return "std", float(deviations[1] or 1)
    raise ConfigError(f'expected cutoff "std", "2 std", "top 1%" or a number, got {cutoff!r}.')


def checked_square(matrix: ArrayLike, what: str = "a value for each two classes") -> Floats:
    """The matrix as floats, refused unless it is classes × classes."""
    square = np.asarray(matrix, dtype=np.float64)
    if square.ndim != 2 or square.shape[0] != square.shape[1]:
        raise DataError(f"expected {what} (classes × classes), got shape {square.shape}.")
    return square


def checked_symmetric(matrix: ArrayLike, what: str = "a distance between each two classes") -> Floats:
    """The matrix as floats, refused unless it is classes × classes and, to rounding, symmetric."""
    square = checked_square(matrix, what)
    for row, (across, down) in enumerate(zip(square, square.T, strict=True)):
        if not np.allclose(across, down, rtol=1e-6, atol=1e-12, equal_nan=True):
            raise DataError(
                f"expected {what}, the same in both directions, got a matrix whose row and column {row} differ; "
                "pass the mean of both."
            )
    return square
