"""Confusion: what the network takes for something else, measured with labels and predicted without.

Directional matrices hold confusion[a, b], of images of class a with class b; NaN where there were too few images to
tell, which every function here counts as no confusion.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.classes.membership import Members, class_sizes
from weakspot.classes.pairs import Cutoff, checked_square, checked_symmetric, pair_values, suspicious
from weakspot.core.errors import DataError
from weakspot.statistics import Detection, detection

Floats = NDArray[np.float64]


def type1_confusion(labels: Members, predicted: Members, *, minimum: int = 10) -> Floats:
    """How often an image of a is taken for b instead (`deepinspect`).

    P(b predicted, a not | a present, b absent); with one label per image, P(predicted b | true a).

    Args:
        labels: true classes, images × classes.
        predicted: predicted classes, images × classes.
        minimum: images with a and without b below which there is no figure.

    Returns:
        classes × classes, directional; NaN on the diagonal and where images are too few.

    >>> from weakspot.classes import class_members
    >>> labels, predicted = class_members([0, 0, 1], 2), class_members([0, 1, 1], 2)
    >>> type1_confusion(labels, predicted, minimum=1)
    array([[nan, 0.5],
           [0. , nan]])
    """
    return _confusion(labels, predicted, labels - labels * predicted, minimum)


def type2_confusion(labels: Members, predicted: Members, *, minimum: int = 10) -> Floats:
    """How often an image of a, without b, is said to hold both (`deepinspect`): multi-label only.

    P(a and b predicted | a present, b absent).

    Args:
        labels: true classes, images × classes.
        predicted: predicted classes, images × classes.
        minimum: images with a and without b below which there is no figure.

    Returns:
        classes × classes, directional; NaN on the diagonal and where images are too few.
    """
    return _confusion(labels, predicted, labels * predicted, minimum)


def _confusion(labels: Members, predicted: Members, wanted: Members, minimum: int) -> Floats:
    """Share of the images with a and without b that are `wanted` of a and falsely predicted b."""
    if labels.shape != predicted.shape:
        raise DataError(
            f"expected labels and predictions of the same images and classes, "
            f"got {labels.shape} and {predicted.shape} (images × classes)."
        )
    share: Floats = (wanted.T @ (predicted - labels * predicted)).toarray().astype(np.float64)
    present = class_sizes(labels)[:, None] - (labels.T @ labels).toarray()
    share[present < max(minimum, 1)] = np.nan
    share /= np.maximum(present, 1)
    np.fill_diagonal(share, np.nan)
    return share


def pair_confusion(confusion: ArrayLike) -> Floats:
    """Mean of both directions, conf(a, b) = (conf[a, b] + conf[b, a])/2, as a symmetric matrix with zero diagonal.

    >>> pair_confusion([[float("nan"), 0.5], [0.1, float("nan")]])
    array([[0. , 0.3],
           [0.3, 0. ]])
    """
    known = np.nan_to_num(checked_square(confusion, "confusion between each two classes"))
    np.fill_diagonal(known, 0)
    known += known.T
    known /= 2
    return known


def label_coincidence(labels: Members) -> Floats:
    """How often two classes appear together, mean(P(a, b | a), P(a, b | b)) (`deepinspect`, RQ1c).

    Returns:
        classes × classes, symmetric; zero for a class without images.
    """
    together: Floats = (labels.T @ labels).toarray() / np.maximum(class_sizes(labels), 1)[:, None]
    return (together + together.T) / 2


def confusion_errors(distance: ArrayLike, confusion: ArrayLike, *, cutoff: Cutoff = "std") -> Detection:
    """How many truly confused pairs the distance finds (`deepinspect`, Table III).

    Reported are the pairs with the smallest distance (distance < mean − std); truly confused those with
    conf(a, b) > mean + std, conf the mean of both directions; population mean and std over the pairs.

    Args:
        distance: classes × classes; pairs without a distance (NaN) are left out of everything.
        confusion: classes × classes, directional, type 1 or type 2.
        cutoff: "std", "2 std", "top 1%" (rounded down) or a distance below which to report; of the report alone.

    >>> distance = [[0, 1, 5, 5], [1, 0, 5, 5], [5, 5, 0, 5], [5, 5, 5, 0]]
    >>> confusion = [[0, 0.4, 0, 0], [0.2, 0, 0, 0], [0, 0, 0, 0.1], [0, 0, 0, 0]]
    >>> confusion_errors(distance, confusion)
    Detection(true_positives=1, false_positives=0, false_negatives=0, true_negatives=5)
    """
    truth = pair_values(pair_confusion(confusion))
    score = -pair_values(checked_symmetric(distance))
    if score.shape != truth.shape:
        raise DataError(
            f"expected distance and confusion of the same classes, got {np.shape(distance)} and {np.shape(confusion)}."
        )
    ranked = ~np.isnan(score)
    reported = suspicious(score[ranked], cutoff if isinstance(cutoff, str) else -cutoff)
    return detection(reported, suspicious(truth[ranked]))
