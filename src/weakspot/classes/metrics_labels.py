"""Accuracy on unlabelled inputs: which few to label, with known probabilities, and estimates without any label."""

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_LABELS_PER_STRATUM = 12
_MOST_STRATA = 40
_LEAST_LABELS = 20
_DOUBT = 4.0
"""Divided by the number of labels, added to a predicted error rate: a model is wrong more often than it says."""


def strata(uncertainty: Floats, labels: int) -> Places:
    """The stratum of each input, the surest in the first: cut where sums of √(uncertainty + 4/labels) are equal.

    About one stratum for twelve labels, between 2 and 40 (the rule of Dalenius and Hodges 1959, `dalenius1959`).
    """
    if not _LEAST_LABELS <= labels <= len(uncertainty):
        raise ConfigError(
            f"labels is {labels}: expected {_LEAST_LABELS} or more, and at most the {len(uncertainty)} inputs"
        )
    number = int(np.clip(labels // _LABELS_PER_STRATUM, 2, _MOST_STRATA))
    order = np.argsort(uncertainty, kind="stable")
    weight = np.cumsum(np.sqrt(uncertainty[order] + _DOUBT / labels))
    placed = np.empty(len(order), dtype=np.int64)
    placed[order] = np.minimum((weight / weight[-1] * number - 1e-9).astype(np.int64), number - 1)
    return np.unique(placed, return_inverse=True)[1]


def allocation(stratum: Places, uncertainty: Floats, labels: int) -> Places:
    """How many inputs to label of each stratum: in proportion to size and deviation (Neyman 1934, `neyman1934`).

    The deviation is √(mean u(1 − u) + 4/labels), u the predicted error rate; two or more of each stratum.
    """
    sizes = np.bincount(stratum)
    deviation = np.sqrt(np.bincount(stratum, uncertainty * (1 - uncertainty)) / sizes + _DOUBT / labels)
    taken = np.minimum(2, sizes)
    while taken.sum() < labels:  # the one that gains most by one more label, as long as it has any
        taken[np.argmax(np.where(taken < sizes, sizes * deviation / taken, -1.0))] += 1
    return taken


def drawn(stratum: Places, taken: Places, keys: NDArray[np.uint64]) -> Places:
    """The places of the inputs to label: in every stratum those with the smallest keys.

    In an order whose every beginning holds each stratum in proportion.
    """
    order = np.lexsort((keys, stratum))
    first = np.cumsum(np.bincount(stratum)) - np.bincount(stratum)
    rank = np.arange(len(order)) - first[stratum[order]]
    chosen = rank < taken[stratum[order]]
    turn = (rank[chosen] + 0.5) / taken[stratum[order]][chosen]
    return order[chosen][np.lexsort((stratum[order][chosen], turn))]


def average_thresholded_confidence(confidence: Floats, known: Floats, correct: NDArray[np.bool_]) -> float:
    """Share of the inputs above the confidence above which as many known inputs lie as are correct (Garg et al. 2022).

    confidence: of the inputs without labels. known, correct: of labelled ones.

    >>> known, correct = np.array([0.5, 0.6, 0.8, 0.9]), np.array([False, True, True, True])
    >>> average_thresholded_confidence(np.array([0.55, 0.65, 0.7, 0.95]), known, correct)
    0.75
    """
    wrong = int((~correct).sum())
    threshold = -np.inf if not wrong else np.sort(known)[wrong - 1]
    return float((confidence > threshold).mean())


def difference_of_confidences(confidence: Floats, known: Floats, correct: NDArray[np.bool_]) -> float:
    """Accuracy of labelled inputs less the loss of mean confidence (Guillory et al. 2021), cut to 0 to 1."""
    return float(np.clip(correct.mean() - (known.mean() - confidence.mean()), 0, 1))
