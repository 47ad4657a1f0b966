"""How consistent the predictions for an input and its neighbours are: pure functions on arrays of predictions.

`predictions` has one row per input: the prediction for the original first, then those for its neighbours. A look that
was not taken is −1 and does not count (Zhong et al. 2021, `zhong2021`).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import DataError
from weakspot.statistics.thresholds import LowIf, low_shares

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


def neighbour_accuracy(predictions: ArrayLike, targets: ArrayLike) -> Floats:
    """Share of correct predictions among the original and its m neighbours: (correct predictions)/(m + 1).

    Zhong et al. 2021; gives shape (inputs,).

    predictions: shape (inputs, m + 1).
    targets: shape (inputs,).

    >>> neighbour_accuracy([[3, 3, 8, 3]], [3]).tolist()
    [0.75]
    """
    checked = _checked(predictions)
    labels = np.asarray(targets)
    if labels.shape != checked.shape[:1]:
        raise DataError(f"expected one target per input, got {labels.shape} targets for {checked.shape[0]} inputs")
    return np.asarray((checked == labels[:, None]).sum(1) / (checked >= 0).sum(1))


def weak_inputs(accuracy: ArrayLike, threshold: ArrayLike, weak_if: LowIf = "below") -> Bools:
    """Which inputs are weak: those whose neighbour accuracy is below the threshold (Zhong et al. 2021).

    weak_if: "below", as in the paper's text; "at_or_below", so that an input exactly at the threshold is weak, too.

    >>> weak_inputs([0.5, 0.75, 0.76], 0.75).tolist()
    [True, False, False]
    """
    return low_shares(accuracy, threshold, weak_if)


def simpson_diversity(predictions: ArrayLike) -> Floats:
    """Simpson's index λ = Σ pᵢ² of the predictions, pᵢ the share of class i; 1 where all agree (Simpson 1949).

    A large λ means low diversity. predictions (inputs, m + 1); returns (inputs,).

    >>> simpson_diversity([[0, 0, 1, 1, 1], [0, 0, 1, 1, 2]]).round(2).tolist()  # the examples of Zhong et al. 2021
    [0.52, 0.36]
    """
    return disagreement(predictions)["concentration"]


def variation_ratio(predictions: ArrayLike) -> Floats:
    """Share of the predictions that differ from the most frequent one (Freeman 1965).

    >>> variation_ratio([[0, 0, 0, 1]]).tolist()
    [0.25]
    """
    return disagreement(predictions)["variation_ratio"]


def prediction_entropy(predictions: ArrayLike) -> Floats:
    """Entropy −Σ pᵢ·ln pᵢ of the predictions; 0 where all agree (Shannon 1948).

    >>> prediction_entropy([[0, 0, 1, 1]]).round(4).tolist()
    [0.6931]
    """
    return disagreement(predictions)["entropy"]


def disagreement(predictions: ArrayLike) -> dict[str, Floats]:
    """`simpson_diversity`, `variation_ratio` and `prediction_entropy` at once, by their column names in a Finding."""
    counts, total = prediction_counts(predictions)
    shares = counts / total[:, None]
    return {
        "concentration": np.asarray((counts.astype(np.float64) ** 2).sum(1) / total**2),
        "variation_ratio": np.asarray(1 - counts.max(1) / total),
        "entropy": np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(1)) + 0.0,
    }


def distinct_predictions(predictions: ArrayLike) -> Integers:
    """How many different classes are predicted.

    >>> distinct_predictions([[0, 0, 4, 1]]).tolist()
    [3]
    """
    return np.asarray((prediction_counts(predictions)[0] > 0).sum(1), dtype=np.int64)


def consistency(predictions: ArrayLike) -> Floats:
    """Share of the neighbours with the same prediction as the original; needs no label. NaN without a neighbour.

    >>> consistency([[3, 3, 8, 3, 3]]).tolist()
    [0.75]
    """
    checked = _checked(predictions)
    neighbours = (checked[:, 1:] >= 0).sum(1)
    same = (checked[:, 1:] == checked[:, :1]).sum(1)
    return np.where(neighbours > 0, same / np.maximum(neighbours, 1), np.nan)


def prediction_counts(predictions: ArrayLike) -> tuple[Integers, Integers]:
    """How often each class is predicted, in runs of equal predictions, (inputs, m + 1), and the total, (inputs,).

    The columns are not classes: only equality within a row counts, so a thousand classes cost no more than two.
    """
    ordered = np.sort(_checked(predictions), axis=1)
    begins = np.ones(ordered.shape, dtype=np.bool_)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    runs = np.cumsum(begins, axis=1) - 1 + ordered.shape[1] * np.arange(len(ordered))[:, None]
    counts = np.bincount(runs[ordered >= 0], minlength=ordered.size).reshape(ordered.shape)
    return counts, counts.sum(1)


def label_set_codes(labels: ArrayLike) -> Integers:
    """One number per set of labels, so that equal sets have equal numbers; boolean (inputs, labels) to (inputs,).

    >>> label_set_codes([[True, False], [False, True], [True, False]]).tolist()
    [2, 1, 2]
    """
    bits = np.asarray(labels, dtype=np.bool_)
    codes = np.zeros(len(bits), dtype=np.uint64)
    for column in np.ascontiguousarray(bits.T):  # a hash once there are more than 63 labels
        codes = codes * np.uint64(2 if bits.shape[1] < 64 else 0x9E3779B97F4A7C15) + column
    return (codes & np.uint64((1 << 63) - 1)).astype(np.int64)


def within_tolerance(outputs: ArrayLike, targets: ArrayLike, mean_squared_error: float, tolerance: float) -> Bools:
    """Which numbers are correct: mean over the outputs of (ŷ − y)² ≤ tolerance · MSE of the training data.

    outputs and targets (inputs,) or (inputs, outputs); returns (inputs,) (Zhong et al. 2021).

    >>> within_tolerance([1.0, 2.0], [1.5, 0.0], mean_squared_error=0.25, tolerance=3).tolist()
    [True, False]
    """
    squared = squared_errors(outputs, targets)
    return np.asarray(squared <= tolerance * mean_squared_error)


def squared_errors(outputs: ArrayLike, targets: ArrayLike) -> Floats:
    """Mean over the outputs of (ŷ − y)², per input."""
    first, second = np.asarray(outputs, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    if first.size != second.size or len(first) != len(second):
        raise DataError(f"expected outputs and targets of one shape, got {first.shape} and {second.shape}")
    return np.asarray(((first.reshape(len(first), -1) - second.reshape(len(second), -1)) ** 2).mean(1))


def _checked(predictions: ArrayLike) -> Integers:
    checked = np.asarray(predictions)
    if checked.ndim != 2 or not checked.shape[1] or checked.dtype.kind not in "iu":
        raise DataError(
            f"expected class numbers of shape (inputs, looks), the original first; got {checked.dtype}{checked.shape}"
        )
    checked = checked.astype(np.int64, copy=False)
    if not (checked >= 0).any(1).all():
        raise DataError(
            "expected at least one prediction per input, got none for some; −1 means a look that was not taken"
        )
    return checked
