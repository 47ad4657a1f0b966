"""Pictures of the room: an input beside its neighbours, and inputs by their features. Only numpy is needed."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weakspot.core.finding import Picture
from weakspot.data.images import enlarged, png, strip

Pixels = NDArray[np.uint8]
CORRECT, WRONG = (0, 114, 178), (213, 94, 0)
"""Blue and orange, which colour-blind readers can tell apart, too."""
_FRAME = 3
_MAP = 720
_CELLS = 16


def framed(picture: Pixels, colour: Sequence[float] | NDArray[np.float64], frame: int = _FRAME) -> Pixels:
    """The picture in a frame of one colour."""
    height, width = picture.shape[:2]
    sheet = np.empty((height + 2 * frame, width + 2 * frame, 3), dtype=np.uint8)
    sheet[:] = np.asarray(colour, dtype=np.float64).round().astype(np.uint8)
    sheet[frame:-frame, frame:-frame] = picture
    return sheet


def strip_picture(pictures: Sequence[Pixels], correct: Sequence[bool], caption: str, *, size: int) -> Picture:
    """An input and its neighbours in a row, framed in blue where the prediction is correct, in orange where not."""
    frames = [
        framed(enlarged(picture, size), CORRECT if is_correct else WRONG)
        for picture, is_correct in zip(pictures, correct, strict=True)
    ]
    return Picture(png(strip(frames)), caption)


class Thumbnails(Protocol):
    """Small pictures by their number, in memory or on disk."""

    def __getitem__(self, number: Any, /) -> Pixels:
        """One of them, (height, width, 3)."""


def map_picture(coordinates: NDArray[np.float64], accuracy: NDArray[np.float64], pictures: Thumbnails) -> Picture:
    """Inputs by two coordinates, one per cell of a grid, framed by neighbour accuracy.

    Of the inputs in a cell the weakest is shown. coordinates (inputs, 2), accuracy (inputs,), pictures (inputs, height,
    width, 3).
    """
    low, high = coordinates.min(0), coordinates.max(0)
    unit = (coordinates - low) / np.where(high > low, high - low, 1)
    cell = np.minimum((unit * _CELLS).astype(np.int64), _CELLS - 1)
    side = _MAP // _CELLS
    sheet = np.full((_MAP, _MAP, 3), 255, dtype=np.uint8)
    for index in weakest_per_cell(cell[:, 0] * _CELLS + cell[:, 1], accuracy):
        shown = framed(resized(pictures[index], side - 2 * _FRAME - 2), accuracy_colour(float(accuracy[index])))
        left, top = cell[index, 0] * side, (_CELLS - 1 - cell[index, 1]) * side
        sheet[top : top + shown.shape[0], left : left + shown.shape[1]] = shown
    caption = (
        "Inputs by the first two principal components of their features; of inputs in one place the weakest is shown. "
        "The frame is orange where no look is predicted correctly, blue where all are, and in between a mixture."
    )
    return Picture(png(sheet), caption)


def weakest_per_cell(cell: NDArray[np.int64], accuracy: NDArray[np.float64]) -> NDArray[np.intp]:
    """The input of lowest accuracy in every cell, the first of equal ones.

    >>> weakest_per_cell(np.array([0, 0, 3]), np.array([0.9, 0.5, 0.7])).tolist()
    [1, 2]
    """
    order = np.lexsort((np.arange(len(cell)), accuracy))
    _, first = np.unique(cell[order], return_index=True)
    return np.asarray(order[first])


def accuracy_colour(accuracy: float) -> NDArray[np.float64]:
    """From orange at 0 to blue at 1."""
    return np.asarray((1 - accuracy) * np.array(WRONG) + accuracy * np.array(CORRECT))


def resized(picture: Pixels, side: int) -> Pixels:
    """The picture in `side` pixels both ways, each pixel the nearest one."""
    rows = np.arange(side) * picture.shape[0] // side
    columns = np.arange(side) * picture.shape[1] // side
    return np.asarray(picture[rows][:, columns])
