"""What the answers to a few neighbours tell of an input, as features for a detector.

The neighbours alone speak: what the model says of the original is left out on purpose. On training inputs the model
knows that answer by heart, so whatever is learnt from it, such as "neighbours that contradict the original mean weak",
fails on inputs it has not seen, where the original itself may be wrong.
"""

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import DataError

Floats = NDArray[np.float64]
_SMALL = 1e-4
_FIRST = 4


def query_features(probabilities: np.ndarray) -> NDArray[np.float32]:
    """Features of m answers per input that do not depend on the order of the answers.

    Shares of the answered classes and mean probabilities by class; the largest of both in order; Simpson's λ of both
    and the entropy of the answers; over the answers in order, the log-odds of the class most often given, the highest
    probability, and the entropy. probabilities (inputs, m, classes); returns (inputs, width).

    >>> query_features(np.full((2, 15, 10), 0.1)).shape
    (2, 86)
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 3 or not p.shape[1]:
        raise DataError(f"expected probabilities of shape (inputs, queries, classes), got {p.shape}")
    shares, mean = answer_shares(p.argmax(2), p.shape[2]), p.mean(1)
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


def answer_shares(answers: np.ndarray, classes: int) -> Floats:
    """Share of each class among the answers; answers (inputs, m), returns (inputs, classes).

    >>> answer_shares(np.array([[0, 2, 2, 2]]), 3).tolist()
    [[0.25, 0.0, 0.75]]
    """
    counts = np.zeros((len(answers), classes))
    np.add.at(counts, (np.arange(len(answers))[:, None], answers), 1)
    return np.asarray(counts / answers.shape[1])


def _of_majority(p: Floats, weight: Floats) -> Floats:
    """The probability that each answer gives the class most often given; ties by the mean probability."""
    return np.asarray(np.take_along_axis(p, weight.argmax(1)[:, None, None], 2)[..., 0])


def _log_odds(p: Floats) -> Floats:
    return np.log(p + _SMALL) - np.log(1 - p + _SMALL)


def _largest(values: Floats) -> Floats:
    """The largest few in order, zeros where there are fewer classes."""
    ordered = -np.sort(-values, axis=1)[:, :_FIRST]
    return np.pad(ordered, ((0, 0), (0, _FIRST - ordered.shape[1])))
