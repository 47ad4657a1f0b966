"""What to do next: which images to look at, label or relabel; test images are not to be trained on."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.classes.membership import Members, images_of
from weakspot.core.errors import DataError


class Selected(NamedTuple):
    """An image of a confused pair."""

    image: int
    """Position of the image."""
    predicted: int
    """Class of the pair it was predicted to be."""
    suspected: int
    """The other class of the pair, which it may be instead."""


def images_to_label(
    pairs: ArrayLike,
    scores: NDArray[np.floating],
    predicted: Members,
    *,
    budget: int | None = None,
    rank: NDArray[np.int64] | None = None,
) -> list[Selected]:
    """A balanced list of images from confused pairs, the likeliest mistakes first.

    Every pair has two directions: images predicted a that score highest for b, and the reverse. The directions of all
    pairs take turns, so that no pair and no class fills the list, and no image appears twice. Needs no labels.

    pairs: classes of the confused pairs, pairs × 2, the most suspicious first.
    scores: the network's outputs, images × classes; the higher, the likelier the class. May be memory-mapped.
    predicted: images × classes.
    budget: how many images to select at most; None for all.
    rank: place of each image in an order of its own, such as that of the ids, which settles equal scores.

    >>> from weakspot.classes import class_members
    >>> scores = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]])
    >>> chosen = images_to_label([[0, 1]], scores, class_members([0, 0, 1, 0], 2), budget=3)
    >>> [each.image for each in chosen]
    [1, 2, 3]
    """
    if scores.shape != predicted.shape:
        raise DataError(f"expected scores of shape {predicted.shape} (images × classes), got {scores.shape}.")
    members, rank = images_of(predicted), np.arange(len(scores)) if rank is None else rank
    directions = [(a, b) for pair in np.asarray(pairs, dtype=np.int64).reshape(-1, 2) for a, b in (pair, pair[::-1])]
    queues = deque((a, b, iter(likeliest(members[a], scores[members[a], b], rank))) for a, b in directions)
    chosen: dict[int, Selected] = {}
    while queues and (budget is None or len(chosen) < budget):
        a, b, candidates = queues.popleft()
        if (image := next((each for each in candidates if each not in chosen), None)) is not None:
            chosen[image] = Selected(image, int(a), int(b))
            queues.append((a, b, candidates))
    return list(chosen.values())


def likeliest(images: NDArray[np.int64], score: NDArray[np.floating], rank: NDArray[np.int64]) -> list[int]:
    """The images, highest score first; equal scores in the order of their ranks."""
    order: list[int] = images[np.lexsort([rank[images], -score])].tolist()
    return order
