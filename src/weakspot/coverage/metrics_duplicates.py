"""Copies of images: exact ones by their content, near ones by a perceptual hash and the correlation of small pictures.

The hash is that of Zauner 2010 (`zauner2010`): the signs of the lowest frequencies about their median. It misses
mirrored, rotated and strongly cropped copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SIDE = 24
"""Pixels of a side of the small pictures."""
MANY = 0.2
"""Share of images with near copies among them from which on they look like frames of a few things."""
_FREQUENCIES = 8
_LUMA = (77, 150, 29)
"""Of 256: weights of red, green and blue (ITU-R BT.601)."""
_ROWS = 256
"""Images that are compared with all others at a time."""
_PAIRS = 4096
"""Pairs of small pictures that are compared at a time."""
Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class ImageKeys:
    """What images are compared by; one entry per image.

    contents: digests, 16 bytes.
    hashes: 63 bits.
    pictures: (images, 24, 24, channels).
    """

    contents: Bytes
    hashes: Hashes
    pictures: Bytes


@dataclass(frozen=True)
class Copies:
    """The most similar copy of each image: its place, −1 for none; whether it is exact; the correlation."""

    place: Places
    exact: NDArray[np.bool_]
    similarity: NDArray[np.float64]

    @property
    def near(self) -> NDArray[np.bool_]:
        """Which images have a copy that is not exact."""
        return (self.place >= 0) & ~self.exact


def content_digests(inputs: Tensor) -> Bytes:
    """A digest of all numbers of each image, (images, 16): equal for equal images."""
    arrays = np.ascontiguousarray(inputs.cpu().numpy())
    return np.stack([np.frombuffer(blake2b(image.tobytes(), digest_size=16).digest(), np.uint8) for image in arrays])


def small_pictures(inputs: Tensor) -> Bytes:
    """Images (images, channels, height, width) of 24 × 24 pixels with one or three channels, each from 0 to 255."""
    channels = 3 if inputs.shape[1] >= 3 else 1
    small = torch.nn.functional.adaptive_avg_pool2d(inputs[:, :channels].double(), SIDE).cpu().numpy()
    low = small.min((1, 2, 3), keepdims=True)
    reach = small.max((1, 2, 3), keepdims=True) - low
    scaled = (small - low) / np.where(reach > 0, reach, 1)
    return np.asarray((scaled * 255).round().astype(np.uint8).transpose(0, 2, 3, 1))


def perceptual_hashes(pictures: Bytes) -> Hashes:
    """63 bits per small picture: which of its lowest frequencies lie above their median (Zauner 2010, `zauner2010`).

    The cosine transform is taken in whole numbers, so that a hash is the same in any batch.
    """
    weights = np.array(_LUMA if pictures.shape[3] == 3 else (256,), dtype=np.int64)
    grey = pictures.astype(np.int64) @ weights // 256
    steps = np.arange(SIDE) * 2 + 1
    waves = np.rint(1000 * np.cos(np.pi * np.outer(np.arange(_FREQUENCIES), steps) / (2 * SIDE))).astype(np.int64)
    lowest = np.einsum("ux,nxy,vy->nuv", waves, grey, waves).reshape(len(grey), -1)[:, 1:]
    above = lowest > np.median(lowest, axis=1, keepdims=True)
    bits = np.packbits(np.pad(above, ((0, 0), (0, 1))), axis=1)
    return np.asarray(bits.view(np.uint64)[:, 0])


def image_keys(inputs: Tensor) -> ImageKeys:
    """What these images (images, channels, height, width) are compared by."""
    pictures = small_pictures(inputs)
    return ImageKeys(content_digests(inputs), perceptual_hashes(pictures), pictures)


def nearest_copies(
    images: ImageKeys, others: ImageKeys | None = None, *, distance: int = 10, correlation: float = 0.97
) -> Copies:
    """The most similar copy of each image among the others; without others, among the images themselves.

    A copy is exact, or near: hashes that differ in at most so many bits, and small pictures that correlate at least so
    much. Of equally similar ones the first is taken. Memory does not grow with the number of pairs.
    """
    against = images if others is None else others
    best = Copies(
        np.full(len(images.hashes), -1, dtype=np.int64),
        np.zeros(len(images.hashes), dtype=bool),
        np.zeros(len(images.hashes)),
    )
    for rows, columns in _alike(images.hashes, against.hashes, distance, same=others is None):
        similar = _correlations(images.pictures[rows], against.pictures[columns])
        order = np.lexsort((columns, -similar, rows))
        first = order[np.concatenate([[True], rows[order][1:] != rows[order][:-1]])] if len(order) else order
        for row, column, value in zip(rows[first], columns[first], similar[first], strict=True):
            if value >= correlation and value > best.similarity[row]:
                best.place[row], best.similarity[row] = column, value
    equal = _equal_contents(images.contents, against.contents, same=others is None)
    exact = equal >= 0
    return Copies(
        np.where(exact, equal, best.place), exact, np.where(exact, 1.0, np.where(best.place >= 0, best.similarity, 0))
    )


def _alike(hashes: Hashes, others: Hashes, distance: int, *, same: bool) -> Iterator[tuple[Places, Places]]:
    """Pairs whose hashes differ in few bits, some at a time, in the order of their places."""
    for start in range(0, len(hashes), _ROWS):
        block = hashes[start : start + _ROWS, None]
        rows, columns = np.nonzero(np.bitwise_count(block ^ others[None]) <= distance)
        rows = rows + start
        if same:
            rows, columns = rows[rows != columns], columns[rows != columns]
        for first in range(0, len(rows), _PAIRS):
            yield rows[first : first + _PAIRS], columns[first : first + _PAIRS]


def _correlations(pictures: Bytes, others: Bytes) -> NDArray[np.float64]:
    """Pearson's correlation of the pictures of each pair; 0 where one has no contrast."""
    first, second = (part.reshape(len(part), -1).astype(np.float64) for part in (pictures, others))
    first, second = (part - part.mean(1, keepdims=True) for part in (first, second))
    scale = np.sqrt((first**2).sum(1) * (second**2).sum(1))
    product = (first * second).sum(1)
    return np.asarray(np.where(scale > 0, product / np.where(scale > 0, scale, 1), 0.0))


def _equal_contents(contents: Bytes, others: Bytes, *, same: bool) -> Places:
    """The first place with the same content, −1 for none; in the images themselves another than their own."""
    names = [row.tobytes() for row in others]
    places: dict[bytes, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    found = []
    for place, row in enumerate(contents):
        equal = places.get(row.tobytes(), [])
        others_than_it = equal[1:2] if same and equal[:1] == [place] else equal[:1]
        found.append(others_than_it[0] if others_than_it else -1)
    return np.array(found, dtype=np.int64)
