"""Exact nearest neighbours among classes: trees in few dimensions, blocked matrix products in many.

‖x − y‖² − ‖x‖² = ‖y‖² − 2 x·y is one matrix product in float32, whose error has a bound. Whatever lies within that
bound of the least value is a candidate; candidates are compared by their differences in float64. So the result is that
of the plain double loop, at the speed of a matrix product and in the memory of a few blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from threadpoolctl import threadpool_limits

from weakspot.core.environment import cores
from weakspot.coverage.metrics_clusters import Floats, Integers

TREE_DIMENSIONS = 5
"""Up to here a tree is faster than products; beyond, it visits too many rows."""
QUERIES, REFERENCES = 512, 4096
"""Rows of the two sides of one product: 8 MB of float32 for each thread."""
_ENTRIES = 1 << 21
"""Entries of a product that are searched at once for candidates."""
_PAIRS = 1 << 15
"""Candidates that are measured at once."""
_UNIT = 2.0**-24
"""Half the distance from 1 to the next float32."""


@dataclass
class Nearest:
    """The nearest row found so far for each query."""

    squared: Floats
    """Squared distance; infinite where there is none."""
    row: Integers
    """Its number; −1 where there is none."""

    @classmethod
    def none(cls, count: int) -> Nearest:
        """Nothing found yet."""
        return cls(np.full(count, np.inf), np.full(count, -1, dtype=np.int64))

    @property
    def distance(self) -> Floats:
        """Euclidean."""
        return np.sqrt(self.squared)

    def improve(self, queries: Integers, squared: Floats, row: Integers) -> None:
        """Take what is nearer than before, each place once; of equally near rows the first."""
        closer = (squared < self.squared[queries]) | ((squared == self.squared[queries]) & (row < self.row[queries]))
        self.squared[queries[closer]], self.row[queries[closer]] = squared[closer], row[closer]


@dataclass(frozen=True)
class Queries:
    """Queries, and the row that each may not find."""

    exact: Floats
    left_out: Integers


def nearest_in_class(
    rows: NDArray[np.floating],
    classes: NDArray[np.integer],
    queries: NDArray[np.floating],
    query_classes: NDArray[np.integer],
    *,
    same: bool,
    leave_out: Integers | None = None,
) -> Nearest:
    """For each query the nearest row of its own class (`same`), or of any other; rows may lie on disk.

    leave_out: for queries that are rows themselves, the number of the row that each may not find; −1 for none.
    """
    nearest = Nearest.none(len(queries))
    left_out = np.full(len(queries), -1) if leave_out is None else leave_out
    exact = Queries(np.asarray(queries, dtype=np.float64), left_out)
    if rows.shape[1] <= TREE_DIMENSIONS:
        for number in np.unique(query_classes):  # one tree of all that these queries may find
            asking, members = np.flatnonzero(query_classes == number), np.flatnonzero((classes == number) == same)
            _search_by_tree(rows, members, exact, asking, nearest)
    else:
        for number in np.unique(classes):  # every row is prepared once, for all queries that may find it
            asking, members = np.flatnonzero((query_classes == number) == same), np.flatnonzero(classes == number)
            _search_by_products(rows, members, exact, asking, nearest)
    return nearest


def _search_by_tree(
    rows: NDArray[np.floating], members: Integers, queries: Queries, asking: Integers, nearest: Nearest
) -> None:
    if not len(members):
        return
    tree = KDTree(np.asarray(rows[members], dtype=np.float64))
    distance, which = tree.query(queries.exact[asking], k=[1, 2], workers=cores())
    row = np.append(members, -1)[which]  # where there is no second one, `which` is the number of members
    second = row[:, 0] == queries.left_out[asking]
    least, match = np.where(second, distance[:, 1], distance[:, 0]), np.where(second, row[:, 1], row[:, 0])
    matched = match >= 0
    nearest.improve(asking[matched], least[matched] ** 2, match[matched])


def _search_by_products(
    rows: NDArray[np.floating], members: Integers, queries: Queries, asking: Integers, nearest: Nearest
) -> None:
    """Blocks of queries against blocks of rows, one thread for some: each has queries of its own."""
    blocks = [asking[start : start + QUERIES] for start in range(0, len(asking), QUERIES)]
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(cores()) as pool:
        for start in range(0, len(members), REFERENCES):
            side = _Side.of(rows, members[start : start + REFERENCES])
            for _ in pool.map(partial(_compare_blocks, side, queries, nearest), blocks):
                pass


@dataclass(frozen=True)
class _Side:
    """A block of rows, prepared for products with queries."""

    members: Integers
    exact: Floats
    centre: Floats
    scale: float
    """A power of two that brings the centred rows to length 1 or less: float32 cannot overflow then."""
    factor: NDArray[np.float32]
    """[−2 y, ‖y‖²] of the centred and scaled rows y, as columns."""

    @classmethod
    def of(cls, rows: NDArray[np.floating], members: Integers) -> _Side:
        exact = np.asarray(rows[members], dtype=np.float64)
        centre = exact.mean(0)
        centred = exact - centre
        longest = float(np.sqrt(np.einsum("ij,ij->i", centred, centred).max()))
        scale = 2.0 ** np.ceil(np.log2(longest)) if longest > 0 else 1.0
        centred /= scale
        squares = np.einsum("ij,ij->i", centred, centred)
        factor = np.concatenate([-2 * centred, squares[:, None]], 1).astype(np.float32)
        return cls(members, exact, centre, scale, np.ascontiguousarray(factor.T))


def _compare_blocks(side: _Side, queries: Queries, nearest: Nearest, places: Integers) -> None:
    """Find the nearest rows of one block for one block of queries."""
    points = queries.exact[places]
    centred = (points - side.centre) / side.scale
    squares = np.einsum("ij,ij->i", centred, centred)
    value = np.concatenate([centred, np.ones((len(points), 1))], 1).astype(np.float32) @ side.factor
    forbidden, column = positions(queries.left_out[places], side.members)
    value[forbidden, column] = np.inf
    error = (points.shape[1] + 8) * _UNIT * (2 * np.sqrt(squares) + 1)
    limit = nearest.squared[places] / side.scale**2 - squares + 1e-12 * (1 + squares)
    for query, column in _candidates(value, error, limit):
        difference = points[query] - side.exact[column]
        squared = np.einsum("ij,ij->i", difference, difference)
        first = _first_of_each(query, squared, column)
        nearest.improve(places[query[first]], squared[first], side.members[column[first]])


def positions(rows: Integers, members: Integers) -> tuple[Integers, Integers]:
    """Which of the rows are members, and where; members in increasing order."""
    if not len(members):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    where = np.minimum(np.searchsorted(members, rows), len(members) - 1)
    hit = np.flatnonzero(members[where] == rows)
    return hit, where[hit]


def _candidates(value: NDArray[np.float32], error: Floats, least_so_far: Floats) -> Iterator[tuple[Integers, Integers]]:
    """Pairs (query, column) that may be nearest: within the error of the least value, and of what is known already."""
    least = value.min(1).astype(np.float64)
    limit = np.minimum(least + 2 * error, least_so_far + error)
    undecided = np.flatnonzero((least <= limit) & (least < np.inf))
    step = max(1, _ENTRIES // value.shape[1])
    for start in range(0, len(undecided), step):
        rows = undecided[start : start + step]
        upper = np.nextafter(limit[rows].astype(np.float32), np.float32(np.inf))
        query, column = np.nonzero(value[rows] <= upper[:, None])
        for begin in range(0, len(query), _PAIRS):
            yield rows[query[begin : begin + _PAIRS]], column[begin : begin + _PAIRS]


def _first_of_each(query: Integers, squared: Floats, column: Integers) -> Integers:
    """Where the nearest column of each query is, of equally near ones the first."""
    order = np.lexsort([column, squared, query])
    return np.asarray(order[np.concatenate([[True], np.diff(query[order]) > 0])])
