"""A lesion as a graph: its voxels and those around it are nodes, voxels that touch are joined (Lambert et al. 2022).

All lesions of a case are built at once. Each gets a box of its own in one flat array, with a rim that nothing enters,
so that a neighbour is an addition to a position and lesions that lie close together stay apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.lesions.metrics_components import Labels

Ints = NDArray[np.int64]

FEATURES = ("label", "entropy", "variance", "pcs")
"""What a node carries besides the intensities of the n sequences, in this order."""


@dataclass(frozen=True)
class LesionNodes:
    """The nodes of some lesions, one lesion after another, each in the order of the volume."""

    places: NDArray[np.int32]
    """Voxel coordinates, shape (nodes, dimensions)."""
    starts: Ints
    """Where each lesion's nodes begin, and at the end their number; shape (lesions + 1,)."""


def lesion_nodes(labels: Labels, count: int, *, dilation: int = 1) -> LesionNodes:
    """The voxels of each lesion and those within `dilation` steps of it, corners included.

    labels: 1 … count, 0 elsewhere. What lies outside the volume is left out; a voxel near two lesions is a node of
        both.

    >>> nodes = lesion_nodes(np.array([[1, 0, 0, 2]], dtype=np.int32), 2)
    >>> nodes.places.tolist(), nodes.starts.tolist()
    ([[0, 0], [0, 1], [0, 2], [0, 3]], [0, 2, 4])
    """
    if dilation < 0:
        raise ConfigError(f"dilation is {dilation}: expected 0 voxels or more")
    flat = np.flatnonzero(labels != 0)
    flat = flat[np.argsort(labels.ravel()[flat], kind="stable")]
    of = labels.ravel()[flat].astype(np.int64) - 1
    voxels = np.column_stack(np.unravel_index(flat, labels.shape))
    boxes = _Boxes.around(voxels, np.searchsorted(of, np.arange(count + 1)), rim=dilation)
    marked = np.zeros(boxes.size, dtype=bool)
    reached = boxes.positions(voxels, of)
    marked[reached] = True
    for _ in range(dilation):
        for jump in boxes.jumps():
            marked[reached + jump[of]] = True
        reached = np.flatnonzero(marked)
        of = boxes.owner(reached)
    places = boxes.places(reached, of)
    inside = ((places >= 0) & (places < labels.shape)).all(1)
    starts = np.searchsorted(of[inside], np.arange(count + 1))
    return LesionNodes(places[inside].astype(np.int32), starts)


def lesion_edges(nodes: LesionNodes) -> NDArray[np.int32]:
    """Which nodes of a lesion touch, by face, edge or corner: each pair once, shape (2, edges).

    >>> lesion_edges(LesionNodes(np.array([[0, 0], [1, 1], [5, 5]], dtype=np.int32), np.array([0, 2, 3]))).tolist()
    [[1], [0]]
    """
    of = np.repeat(np.arange(len(nodes.starts) - 1), np.diff(nodes.starts))
    boxes = _Boxes.around(nodes.places, nodes.starts, rim=0)
    positions = boxes.positions(nodes.places, of)
    index = np.full(boxes.size, -1, dtype=np.int32)
    number = index[positions] = np.arange(len(positions), dtype=np.int32)
    pairs = []
    jumps = boxes.jumps()
    for jump in jumps[: len(jumps) // 2]:  # the other half meets the same pairs from their other end
        met = index[positions + jump[of]]
        touching = met >= 0
        pairs.append(np.stack([number[touching], met[touching]]))
    return np.concatenate(pairs, axis=1)


def node_features(
    nodes: LesionNodes, intensities: Any, label: np.ndarray, measures: Sequence[Any]
) -> NDArray[np.float32]:
    """The n + 4 features of each node: n intensities, label, entropy, variance, PCS; shape (nodes, n + 4).

    intensities: (n, …voxels), or n volumes.
    label: 1 for voxels of the lesion class.
    measures: the three maps.
    """
    shapes = {label.shape, *(each.shape for each in (*intensities, *measures))}
    if len(shapes) > 1:
        raise DataError(f"intensities, label and measures differ in shape: {sorted(shapes)}")
    at = tuple(nodes.places.T)
    columns = [*(values[at] for values in intensities), label[at], *(values[at] for values in measures)]
    return np.stack(columns, axis=1).astype(np.float32)


@dataclass(frozen=True)
class _Boxes:
    """A box per lesion, side by side in one flat array of `size` places."""

    low: Ints
    strides: Ints
    begin: Ints
    size: int

    @classmethod
    def around(cls, places: np.ndarray, starts: np.ndarray, *, rim: int) -> "_Boxes":
        """Boxes around each lesion's places, with a rim for what is to enter and one that stays empty."""
        if np.any(np.diff(starts) == 0):
            raise DataError("a lesion has no voxel: labels must run from 1 to the number of lesions")
        if len(starts) < 2:
            return cls(
                np.zeros((0, places.shape[1]), np.int64), np.zeros((0, places.shape[1]), np.int64), starts[:0], 0
            )
        low = np.minimum.reduceat(places, starts[:-1]).astype(np.int64) - rim - 1
        sides = np.maximum.reduceat(places, starts[:-1]).astype(np.int64) - low + rim + 2
        strides = np.ones_like(sides)
        for axis in range(sides.shape[1] - 1, 0, -1):
            strides[:, axis - 1] = strides[:, axis] * sides[:, axis]
        ends = np.cumsum(sides.prod(1))
        return cls(low, strides, np.concatenate([[0], ends[:-1]]), int(ends[-1]))

    def positions(self, places: np.ndarray, owner: Ints) -> Ints:
        """Where voxels lie in the flat array."""
        return np.asarray(self.begin[owner] + ((places - self.low[owner]) * self.strides[owner]).sum(1))

    def owner(self, positions: Ints) -> Ints:
        """Whose box each position lies in; positions in rising order."""
        ends = np.searchsorted(positions, np.append(self.begin, self.size))
        return np.repeat(np.arange(len(self.begin)), np.diff(ends))

    def jumps(self) -> Ints:
        """How far the 26 (in a slice 8) voxels that touch are in each box; the second half mirrors the first.

        Shape (neighbours, lesions).
        """
        steps = [step for step in product((-1, 0, 1), repeat=self.strides.shape[1]) if any(step)]
        return np.array(steps) @ self.strides.T

    def places(self, positions: Ints, owner: Ints) -> Ints:
        """The voxel at a position."""
        left, columns = positions - self.begin[owner], []
        for axis in range(self.low.shape[1]):
            along, left = np.divmod(left, self.strides[owner, axis])
            columns.append(along)
        return np.asarray(np.stack(columns, 1) + self.low[owner])
