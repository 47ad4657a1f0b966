"""Distances between heat maps, read in blocks from disk: exact, in memory that does not grow with the maps' size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from mmap import MADV_DONTNEED, mmap

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

Floats = NDArray[np.float64]
Distances = NDArray[np.float32]
"""Condensed, as scipy has it: d(0, 1), d(0, 2) … d(n − 2, n − 1)."""
_BLOCK_BYTES = 128 << 20


@dataclass(frozen=True)
class HeatMapRows:
    """Heat maps of one layer, one per image, wherever they lie: in memory, or in files mapped shard by shard.

    blocks: arrays (images, …) whose rows follow each other.
    scale: what each row is to be multiplied with.
    order: which of all these rows the first, second … heat map is.
    """

    blocks: tuple[np.ndarray, ...]
    scale: Floats
    order: NDArray[np.int64]

    @classmethod
    def of(cls, heat_maps: np.ndarray, scale: np.ndarray | None = None) -> HeatMapRows:
        """Those of one array (images, …)."""
        count = len(heat_maps)
        factor = np.ones(count) if scale is None else np.asarray(scale, dtype=np.float64)
        return cls((heat_maps,), factor, np.arange(count))

    def __len__(self) -> int:
        return len(self.order)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one heat map."""
        return self.blocks[0].shape[1:] if self.blocks else ()

    @property
    def size(self) -> int:
        """How many values a heat map has."""
        return int(np.prod(self.shape, dtype=np.int64))

    def select(self, places: np.ndarray) -> HeatMapRows:
        """The heat maps at these places."""
        return HeatMapRows(self.blocks, self.scale, self.order[places])

    def values(self, start: int = 0, stop: int | None = None) -> Floats:
        """Values `start` … `stop` − 1 of every heat map, each taken as one row: float64 (images, stop − start)."""
        last = self.size if stop is None else stop
        out = np.empty((len(self), last - start))
        for block, first, mine in self.parts:
            out[mine] = block[self.order[mine] - first, start:last]
            let_go(block)
        out *= self.scale[self.order][:, None]
        return out

    @cached_property
    def parts(self) -> list[tuple[np.ndarray, int, np.ndarray]]:
        """Each block as rows, the number of its first row, and which of the heat maps lie in it."""
        ends = np.cumsum([len(block) for block in self.blocks])
        block_of = np.searchsorted(ends, self.order, side="right")
        rows = [block.reshape(len(block), -1) for block in self.blocks]
        return [
            (row, int(end) - len(row), np.flatnonzero(block_of == number))
            for number, (row, end) in enumerate(zip(rows, ends, strict=True))
        ]


def let_go(array: np.ndarray) -> None:
    """Give back the memory of a mapped file's pages that were read: they would count as this process's own."""
    owner: object = array
    while owner is not None and not isinstance(owner, mmap):
        owner = getattr(owner, "base", None)
    if owner is not None:
        owner.madvise(MADV_DONTNEED)  # of a shared mapping: nothing is lost, the file has it


def heat_map_distances(heat_maps: HeatMapRows | np.ndarray) -> Distances:
    """Euclidean distance of every pair of heat maps, condensed [fahmy2021].

    d(x, y)² = ‖x‖² + ‖y‖² − 2 x·y, with the products summed in 64 bits over blocks of values: so each value is read
    once, and what is held is one number per pair and one block.

    >>> heat_map_distances(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]])).tolist()
    [5.0, 4.0, 3.0]
    """
    rows = heat_maps if isinstance(heat_maps, HeatMapRows) else HeatMapRows.of(heat_maps)
    count = len(rows)
    products = np.zeros((count, count), order="F")
    for start, stop in spans(rows.size, count):
        products = dsyrk(1.0, rows.values(start, stop).T, beta=1.0, c=products, trans=1, lower=1, overwrite_c=1)
    norms = products.diagonal().copy()
    condensed = np.empty(count * (count - 1) // 2, dtype=np.float32)
    end = 0
    for i in range(count - 1):
        begin, end = end, end + count - 1 - i
        squares = norms[i] + norms[i + 1 :] - 2 * products[i + 1 :, i]
        condensed[begin:end] = np.sqrt(np.maximum(squares, 0))
    return condensed


def distances_between(heat_maps: HeatMapRows, others: HeatMapRows) -> Distances:
    """Euclidean distance of every heat map to every one of `others`, float32 (heat maps, others)."""
    distances = np.empty((len(heat_maps), len(others)), dtype=np.float32)
    for first, last in spans(len(heat_maps), 4096):
        distances[first:last] = _between(heat_maps.select(np.arange(first, last)), others)
    return distances


def _between(some: HeatMapRows, others: HeatMapRows) -> Floats:
    squares = np.zeros((len(some), len(others)))
    for start, stop in spans(some.size, max(len(some), len(others))):
        mine, theirs = some.values(start, stop), others.values(start, stop)
        squares += np.square(mine).sum(1)[:, None] + np.square(theirs).sum(1) - 2 * mine @ theirs.T
    return np.sqrt(np.maximum(squares, 0))


def square(condensed: np.ndarray) -> Floats:
    """The symmetric matrix of condensed distances, float64.

    >>> square(np.array([5.0, 1.0, 4.0], dtype=np.float32)).tolist()
    [[0.0, 5.0, 1.0], [5.0, 0.0, 4.0], [1.0, 4.0, 0.0]]
    """
    count = images_of_pairs(len(condensed))
    full = np.zeros((count, count))
    end = 0
    for i in range(count - 1):
        begin, end = end, end + count - 1 - i
        full[i, i + 1 :] = full[i + 1 :, i] = condensed[begin:end]
    return full


def images_of_pairs(pairs: int) -> int:
    """How many images have so many pairs.

    >>> [images_of_pairs(pairs) for pairs in (0, 1, 3, 6)]
    [1, 2, 3, 4]
    """
    return (1 + int(np.sqrt(1 + 8 * pairs))) // 2


def spans(size: int, rows: int) -> Iterator[tuple[int, int]]:
    """Spans of at most so many values that `rows` of them fit into a block of memory."""
    step = max(1, _BLOCK_BYTES // (8 * max(rows, 1)))
    return ((start, min(start + step, size)) for start in range(0, size, step))
