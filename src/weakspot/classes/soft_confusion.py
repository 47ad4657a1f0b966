"""Soft confusion: what the outputs alone say of two classes, without a look inside the network.

An image that is predicted as one class gives some probability to the others. Where that is much, look for confusion:
neither neurons nor labels are needed, so a black box will do. DeepInspect
(Tian et al. 2020) has no such score; on the networks of `docs/papers-classes.md` it found confusion sooner than the
paper's distance nearly everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from weakspot.classes.membership import Members, class_sizes
from weakspot.core.errors import DataError
from weakspot.core.tasks import Scores, Task, probabilities

Floats = NDArray[np.float64]

_BLOCK_BYTES = 32 << 20


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

    Args:
        outputs: images × classes, logits or probabilities. May be memory-mapped: it is read a block at a time.
        predicted: images × classes.
        task: "classification", one class per image, or "multilabel".
        scores: what the outputs are.
        rank: place of each image in an order of its own, such as that of the ids, in which sums are taken.

    Returns:
        classes × classes, directional; NaN on the diagonal and for a class without images. Its mean over both
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
        given = torch.from_numpy(np.asarray(outputs[images], dtype=np.float64))
        total += predicted[images].T @ probabilities(given, task, scores).numpy()
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
