"""Bias: two classes that the network treats differently in the presence of a third."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist, squareform

from weakspot.classes.metrics_confusion import pair_confusion
from weakspot.classes.pairs import Cutoff, checked_square, checked_symmetric, pair_values, suspicious
from weakspot.core.errors import ConfigError, DataError
from weakspot.statistics import Detection, detection

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Near = Literal["matrix", "pairs"] | float | None
"""How near a third class must be to count: see `average_bias`."""

_BLOCK = 1 << 18
"""Entries of a block: two of them fit into a processor's cache."""


def triplet_bias(distance: ArrayLike, a: int, b: int, *, near: Near = None) -> Floats:
    """How differently two classes are treated beside each third class (`deepinspect`, Eq. 3).

    bias(a, b, c) = |Δ(c, a) − Δ(c, b)| / (Δ(c, a) + Δ(c, b)).

    distance: classes × classes.
    a: one class.
    b: the other class.
    near: how near to a or b a third class must be to count, as in `average_bias`; by default every one does.
    returns: one entry per class; NaN for a and b themselves and for classes that do not count.

    >>> triplet_bias([[0, 2, 1], [2, 0, 3], [1, 3, 0]], 0, 1)
    array([nan, nan, 0.5])
    """
    square = checked_symmetric(distance)
    if a == b or not {a, b} <= set(range(len(square))):
        raise ConfigError(f"expected two different classes of 0 … {len(square) - 1}, got {a} and {b}.")
    scores: Floats = triplet_scores(square, np.array([[a, b]]), limit_of(square, near))[0]
    return scores


def worst_third_classes(
    distance: ArrayLike, a: int, b: int, *, number: int = 5, near: Near = "matrix"
) -> NDArray[np.int64]:
    """Third classes c with the highest bias(a, b, c), worst first; those that do not count are left out."""
    scores = triplet_bias(distance, a, b, near=near)
    order = np.argsort(-scores, kind="stable")
    return order[~np.isnan(scores[order])][:number]


def worst_beside(distance: ArrayLike, pairs: NDArray[np.int64], *, near: Near = "matrix") -> NDArray[np.int64]:
    """The third class with the highest bias(a, b, c) of each pair (pairs × 2); −1 where none counts."""
    square = checked_symmetric(distance)
    limit, step = limit_of(square, near), max(1, _BLOCK // len(square))
    worst = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(pairs), step):
        scores = np.nan_to_num(triplet_scores(square, pairs[start : start + step], limit), nan=-1.0)
        worst.append(np.where(scores.max(axis=1) >= 0, scores.argmax(axis=1), -1))
    return np.concatenate(worst)


def triplet_scores(square: Floats, pairs: NDArray[np.int64], limit: float) -> Floats:
    """bias(a, b, c) of some pairs with every class, pairs × classes; NaN where c is a or b or not near either."""
    first, second = square[pairs[:, 0]], square[pairs[:, 1]]
    nearest = np.minimum(first, second)
    scores = _bias(first, second.copy())
    scores[(first == 0) & (second == 0)] = 0
    scores[nearest >= limit] = np.nan
    np.put_along_axis(scores, pairs, np.nan, axis=1)
    return scores


def average_bias(
    distance: ArrayLike, *, confusion: ArrayLike | None = None, near: Near = "matrix", halved: bool = False
) -> Floats:
    """Mean of bias(a, b, c) over all third classes c (`deepinspect`, Eq. 4), far ones counting as unbiased.

    avg_bias(a, b) = 1/(|O|−2) · Σ_c bias(a, b, c), where c ≠ a, b counts only if Δ(c, a) or Δ(c, b) < th.

    distance: classes × classes, symmetric; classes without any distance (NaN) are not in O and get NaN.
    confusion: directional ground truth. A triplet then counts only if conf(a, c) or conf(b, c), mean of both
        directions, is above zero. This lets labels into a score meant to do without; the paper's published
        bias figures (Table IV, Fig. 10 and 11) need it.
    near: th. "matrix", mean − std of the whole matrix with its zero diagonal; "pairs", the same over the pairs
        a < b only, as the paper words it; a number; None, every third class counts.
    halved: half of it, the scale of the released code's scores.
    returns: classes × classes, symmetric, zero on the diagonal.

    >>> average_bias([[0, 3, 1], [3, 0, 3], [1, 3, 0]], near=None)
    array([[0. , 0.5, 0. ],
           [0.5, 0. , 0.5],
           [0. , 0.5, 0. ]])
    """
    square = checked_symmetric(distance)
    ranked = np.count_nonzero(~np.isnan(square), axis=0) > 1
    if np.count_nonzero(ranked) < 3:
        raise DataError(f"expected three or more classes with distances, got {np.count_nonzero(ranked)}.")
    total = _summed_bias(square, near, _confused(confusion, square))
    total /= (np.count_nonzero(ranked) - 2) * (2 if halved else 1)
    total[~ranked] = total[:, ~ranked] = np.nan
    return total


def _summed_bias(square: Floats, near: Near, counted: Bools | None) -> Floats:
    """Σ_c bias(a, b, c) over the third classes that count."""
    if near is None and counted is None and not np.isnan(square).any():
        # the Canberra distance of two rows, less its terms at c = a and c = b, each 1 unless a and b coincide
        every: Floats = squareform(pdist(square, "canberra"))
        every -= 2 * (square > 0)
        return every
    total = _half_sums(square, square < limit_of(square, near), counted)
    total += total.T
    return total


def _half_sums(square: Floats, near: Bools, counted: Bools | None) -> Floats:
    """S with S[a, b] + S[b, a] = Σ_c bias(a, b, c): row a sums the third classes near a, so that far ones cost nothing.

    A third class near both appears in both rows and is halved in each. Rows are independent, and numpy releases the
    interpreter while it works on one: threads share them.
    """
    np.fill_diagonal(near, False)
    total, step = np.zeros_like(square), max(1, _BLOCK // len(square))
    # no distance, or two of zero: nothing to tell apart, and rare enough to look for only when it occurs
    gaps = np.count_nonzero(square > 0) < square.size - len(square)

    def sum_row(a: int) -> None:
        third = np.flatnonzero(near[a])
        for c in np.split(third, range(step, third.size, step)):
            term = _bias(square[a, c, None], square[c])
            if gaps:
                np.nan_to_num(term, copy=False)
            if counted is not None:
                term *= counted[c] | counted[a, c, None]
            term[np.arange(c.size), c] = 0
            total[a] += term.sum(axis=0) - np.einsum("cb,cb->b", term, near[c]) / 2

    with ThreadPoolExecutor() as pool:
        list(pool.map(sum_row, range(len(square))))
    return total


def _bias(first: Floats, second: Floats) -> Floats:
    """|x − y|/(x + y); overwrites `second`, which a caller hands over as its own."""
    with np.errstate(invalid="ignore"):
        term = first - second
        second += first
        term /= second
    return np.abs(term, out=term)


def limit_of(square: Floats, near: Near) -> float:
    """Distance below which a third class counts as near."""
    if near is None:
        return np.inf
    if not isinstance(near, str):
        return float(near)
    if near not in ("matrix", "pairs"):
        raise ConfigError(f'expected near to be "matrix", "pairs", a number or None, got {near!r}.')
    values = square if near == "matrix" else pair_values(square)
    return float(np.nanmean(values) - np.nanstd(values))


def _confused(confusion: ArrayLike | None, square: Floats) -> Bools | None:
    """Whether there is any ground-truth confusion between two classes, in either direction."""
    if confusion is None:
        return None
    shares = checked_square(confusion, "confusion between each two classes")
    if shares.shape != square.shape:
        raise DataError(f"expected distance and confusion of the same classes, got {square.shape} and {shares.shape}.")
    return (shares > 0) | (shares.T > 0)


def average_confusion_disparity(confusion: ArrayLike, *, directions: Literal["mean", "sum"] = "mean") -> Floats:
    """Ground truth of bias (`deepinspect`): how differently two classes are confused with all the others.

    avg_cd(a, b) = 1/(|O|−2) · Σ_{c ≠ a, b} |conf(a, c) − conf(b, c)|.

    confusion: classes × classes, directional, type 1 or type 2; NaN counts as no confusion.
    directions: conf is the mean of both directions, as in the paper, or their sum, the scale of the released code.
    returns: classes × classes, symmetric, zero on the diagonal.

    >>> average_confusion_disparity([[0, 0, 0.5], [0, 0, 0.1], [0.5, 0.1, 0]])
    array([[0. , 0.4, 0.1],
           [0.4, 0. , 0.5],
           [0.1, 0.5, 0. ]])
    """
    error = pair_confusion(confusion)
    if len(error) < 3:
        raise DataError(f"expected confusion between three or more classes, got {len(error)}.")
    if directions == "sum":
        error *= 2
    # the city-block distance of two rows holds conf(a, b) twice, at c = a and at c = b
    summed: Floats = squareform(pdist(error, "cityblock"))
    summed -= 2 * error
    np.maximum(summed, 0, out=summed)
    summed /= len(error) - 2
    return summed


def bias_errors(score: ArrayLike, disparity: ArrayLike, *, cutoff: Cutoff = "std") -> Detection:
    """How many truly biased pairs the average bias finds (`deepinspect`, Table IV).

    Reported are the pairs with avg_bias > mean + std; truly biased those with avg_cd > mean + std.

    score: `average_bias`, classes × classes; pairs without a score (NaN) are left out of everything.
    disparity: `average_confusion_disparity`, classes × classes.
    cutoff: "std", "2 std", "top 1%" (rounded up) or a score above which to report; of the report alone.
    """
    scores, truth = pair_values(checked_symmetric(score)), pair_values(checked_symmetric(disparity))
    if scores.shape != truth.shape:
        raise DataError(
            f"expected bias and disparity of the same classes, got {np.shape(score)}, {np.shape(disparity)}."
        )
    ranked = ~np.isnan(scores)
    return detection(suspicious(scores[ranked], cutoff, rounding="up"), suspicious(truth[ranked]))
