"""Confusion of classes: counted with labels, and soft confusion, which needs the outputs alone.

An image that is predicted as one class gives some probability to the others. Where that is much, look for confusion:
neither neurons nor labels are needed, so a black box will do. DeepInspect (Tian et al. 2020) has no such score; on the
networks of `docs/papers-classes.md` it found confusion sooner than the paper's distance nearly everywhere.

Directional matrices hold confusion[a, b], of images of class a with class b; NaN where there were too few images to
tell, which every function here counts as no confusion.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from weakspot.classes.membership import Members, class_sizes
from weakspot.classes.pairs import Cutoff, checked_square, checked_symmetric, pair_values, suspicious
from weakspot.core.errors import DataError
from weakspot.core.tasks import Scores, Task, probabilities
from weakspot.statistics import Detection, detection

Floats = NDArray[np.float64]

_BLOCK_BYTES = 32 << 20


def type1_confusion(labels: Members, predicted: Members, *, minimum: int = 10) -> Floats:
    """How often an image of a is taken for b instead (`deepinspect`).

    P(b predicted, a not | a present, b absent); with one label per image, P(predicted b | true a).

    labels: true classes, images × classes.
    predicted: predicted classes, images × classes.
    minimum: images with a and without b below which there is no figure.
    returns: classes × classes, directional; NaN on the diagonal and where images are too few.

    >>> from weakspot.classes import class_members
    >>> labels, predicted = class_members([0, 0, 1], 2), class_members([0, 1, 1], 2)
    >>> type1_confusion(labels, predicted, minimum=1)
    array([[nan, 0.5],
           [0. , nan]])
    """
    return _confusion(labels, predicted, labels - labels * predicted, minimum)


def type2_confusion(labels: Members, predicted: Members, *, minimum: int = 10) -> Floats:
    """How often an image of a, without b, is said to hold both (`deepinspect`): multi-label only.

    P(a and b predicted | a present, b absent). Arguments and result are as of `type1_confusion`.
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
    mean = np.nan_to_num(checked_square(confusion, "confusion between each two classes"))
    np.fill_diagonal(mean, 0)
    mean += mean.T
    mean /= 2
    return mean


def label_coincidence(labels: Members) -> Floats:
    """How often two classes appear together, mean(P(a, b | a), P(a, b | b)) (`deepinspect`, RQ1c).

    returns: classes × classes, symmetric; zero for a class without images.
    """
    together: Floats = (labels.T @ labels).toarray() / np.maximum(class_sizes(labels), 1)[:, None]
    return (together + together.T) / 2


def confusion_errors(distance: ArrayLike, confusion: ArrayLike, *, cutoff: Cutoff = "std") -> Detection:
    """How many truly confused pairs the distance finds (`deepinspect`, Table III).

    Reported are the pairs with the smallest distance (distance < mean − std); truly confused those with
    conf(a, b) > mean + std, conf the mean of both directions; population mean and std over the pairs.

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


def output_soft_confusion(
    outputs: NDArray[np.floating],
    predicted: Members,
    *,
    task: Task,
    scores: Scores | None,
    rank: NDArray[np.int64] | None = None,
) -> Floats:
    """Mean probability of each class over the images predicted as another.

    soft_confusion[a, b] = 1/|A| · Σ_{x ∈ A} p(b | x), where A holds the images predicted a; with several labels,
    those that are said to hold a.

    outputs: images × classes, logits or probabilities. May be memory-mapped: it is read a block at a time.
    predicted: images × classes.
    task: "classification", one class per image, or "multilabel".
    scores: what the outputs are.
    rank: place of each image in an order of its own, such as that of the ids, in which sums are taken.
    returns: classes × classes, directional; NaN on the diagonal and for a class without images. Its mean over both
        directions, as `pair_confusion` takes it, ranks the pairs. Of outputs that are zeros and ones with several
        labels per image it is how often two classes are predicted together, as `label_coincidence` counts.

    >>> from weakspot.classes import class_members
    >>> outputs = np.array([[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]])
    >>> predicted = class_members([0, 0, 1], 2)
    >>> output_soft_confusion(outputs, predicted, task="classification", scores="probabilities")
    array([[  nan, 0.375],
           [0.   ,   nan]])
    """
    if outputs.shape != predicted.shape:
        raise DataError(f"expected outputs of shape {predicted.shape} (images × classes), got {outputs.shape}.")
    total: Floats = np.zeros((predicted.shape[1], predicted.shape[1]))
    for images in _blocks(np.arange(len(outputs)) if rank is None else np.argsort(rank), outputs.shape[1]):
        block = torch.from_numpy(np.asarray(outputs[images], dtype=np.float64))
        total += predicted[images].T @ probabilities(block, task, scores).numpy()
    with np.errstate(invalid="ignore"):
        total /= class_sizes(predicted)[:, None]
    np.fill_diagonal(total, np.nan)
    return total


def _blocks(images: NDArray[np.int64], classes: int) -> Iterator[NDArray[np.int64]]:
    """The images in this order, as many at a time as have room for their probabilities.

    Of thousands of classes more than that: adding up a block costs as much as classes × classes, however small it is.
    """
    step = max(1, classes // 8, _BLOCK_BYTES // (8 * classes))
    return (images[start : start + step] for start in range(0, len(images), step))
