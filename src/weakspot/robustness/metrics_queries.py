"""What the predictions for a few neighbours tell of an input, as features for a detector.

Only the neighbours count: the prediction for the original is left out on purpose. The model has memorised its training
inputs, so there "neighbours that contradict the original" means weak; on new inputs the original itself may be wrong.
"""

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import DataError

Floats = NDArray[np.float64]
_SMALL = 1e-4
_FIRST = 4


def query_features(probabilities: np.ndarray) -> NDArray[np.float32]:
    """Features of the m predictions for the neighbours of each input; their order does not matter.

    Shares of the predicted classes and mean probabilities by class; the largest of both in order; Simpson's λ of both
    and the entropy of the predictions; sorted over the predictions, the log-odds of the class predicted most often, the
    highest probability, and the entropy. probabilities (inputs, m, classes); returns (inputs, width).

    >>> query_features(np.full((2, 15, 10), 0.1)).shape
    (2, 86)
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 3 or not p.shape[1]:
        raise DataError(f"expected probabilities of shape (inputs, queries, classes), got {p.shape}")
    shares, mean = class_shares(p.argmax(2), p.shape[2]), p.mean(1)
    entropies = -(p * np.log(p + _SMALL**2)).sum(2)
    parts = [
        shares,
        mean,
        np.log(mean + _SMALL),
        _largest(shares),
        _largest(mean),
        np.stack([(shares**2).sum(1), (mean**2).sum(1), -(shares * np.log(shares + _SMALL**2)).sum(1)], 1),
        np.sort(_log_odds(_of_majority(p, shares + _SMALL * mean)), axis=1),
        np.sort(p.max(2), axis=1),
        np.sort(entropies, axis=1),
    ]
    return np.concatenate(parts, 1).astype(np.float32)


def class_shares(predictions: np.ndarray, classes: int) -> Floats:
    """Share of each class among the predictions; predictions (inputs, m), returns (inputs, classes).

    >>> class_shares(np.array([[0, 2, 2, 2]]), 3).tolist()
    [[0.25, 0.0, 0.75]]
    """
    counts = np.zeros((len(predictions), classes))
    np.add.at(counts, (np.arange(len(predictions))[:, None], predictions), 1)
    return np.asarray(counts / predictions.shape[1])


def _of_majority(p: Floats, weight: Floats) -> Floats:
    """The probability that each prediction gives the class predicted most often; ties by the mean probability."""
    return np.asarray(np.take_along_axis(p, weight.argmax(1)[:, None, None], 2)[..., 0])


def _log_odds(p: Floats) -> Floats:
    return np.log(p + _SMALL) - np.log(1 - p + _SMALL)


def _largest(values: Floats) -> Floats:
    """The largest few in order, zeros where there are fewer classes."""
    ordered = -np.sort(-values, axis=1)[:, :_FIRST]
    return np.pad(ordered, ((0, 0), (0, _FIRST - ordered.shape[1])))
