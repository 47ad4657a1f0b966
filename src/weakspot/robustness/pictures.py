"""Pictures of the room: an input beside its neighbours, and a map of inputs by their features. numpy alone."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weakspot.core.finding import Picture
from weakspot.data.images import enlarged, png, strip

Pixels = NDArray[np.uint8]
RIGHT, WRONG = (0, 114, 178), (213, 94, 0)
"""Blue and vermilion: told apart by everyone."""
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


def strip_picture(pictures: Sequence[Pixels], right: Sequence[bool], caption: str, *, size: int) -> Picture:
    """An input and its neighbours side by side, framed in blue where the answer was right, in vermilion where not."""
    frames = [
        framed(enlarged(picture, size), RIGHT if answered else WRONG)
        for picture, answered in zip(pictures, right, strict=True)
    ]
    return Picture(png(strip(frames)), caption)


class Pictures(Protocol):
    """Small pictures by their number, in memory or on disk."""

    def __getitem__(self, number: Any, /) -> Pixels:
        """One of them, (height, width, 3)."""


def map_picture(places: NDArray[np.float64], accuracy: NDArray[np.float64], pictures: Pictures) -> Picture:
    """Inputs where their features lie, one per cell of a grid, framed by neighbour accuracy.

    Of the inputs in a cell the weakest is shown. places (inputs, 2), accuracy (inputs,), pictures (inputs, height,
    width, 3).
    """
    low, high = places.min(0), places.max(0)
    unit = (places - low) / np.where(high > low, high - low, 1)
    cell = np.minimum((unit * _CELLS).astype(np.int64), _CELLS - 1)
    room = _MAP // _CELLS
    sheet = np.full((_MAP, _MAP, 3), 255, dtype=np.uint8)
    for index in weakest_per_cell(cell[:, 0] * _CELLS + cell[:, 1], accuracy):
        shown = framed(fitted(pictures[index], room - 2 * _FRAME - 2), blend(float(accuracy[index])))
        left, top = cell[index, 0] * room, (_CELLS - 1 - cell[index, 1]) * room
        sheet[top : top + shown.shape[0], left : left + shown.shape[1]] = shown
    caption = (
        "Inputs by the two main directions of their features; of each place the weakest is shown. Frames go from "
        "vermilion (no neighbour answered rightly) to blue (all)."
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


def blend(accuracy: float) -> NDArray[np.float64]:
    """From vermilion at 0 to blue at 1."""
    return np.asarray((1 - accuracy) * np.array(WRONG) + accuracy * np.array(RIGHT))


def fitted(picture: Pixels, side: int) -> Pixels:
    """The picture in `side` pixels both ways, each pixel the nearest one."""
    rows = np.arange(side) * picture.shape[0] // side
    columns = np.arange(side) * picture.shape[1] // side
    return np.asarray(picture[rows][:, columns])
