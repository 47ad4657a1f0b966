"""Rows: records per sample that go to disk while they are made and come back memory-mapped.

One raw file per column and shard, plus `sample`, the place of each record's sample in the data. A sample may have no
record, one, or several.
"""

import json
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from weakspot.core.async_copy import AsyncCopy
from weakspot.core.errors import ProbeError
from weakspot.core.files import writing
from weakspot.core.guarded_open import check_plain, let_small_go, open_plain, read_json

SAMPLE = "sample"
_BLOCK = 1 << 20
_ON_THEIR_WAY = 4
"""Appends whose values may still be on their way from a GPU, at most."""


@dataclass(frozen=True)
class ColumnType:
    """The type and the shape of one record of a column."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def record_bytes(self) -> int:
        """The size of one record."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


class RowWriter:
    """Appends records to the files of one shard. Columns take their type and shape from the first records."""

    def __init__(self, folder: Path, name: str):
        self._folder = folder
        self._name = name
        self._files: dict[str, IO[bytes]] = {}
        self._columns: dict[str, ColumnType] = {}
        self._empty: dict[str, ColumnType] = {}
        """What appends without records looked like; it counts only where no others come."""
        self._fetched: deque[AsyncCopy] = deque()
        self._count = 0
        self._last = -1
        self._sorted = True

    def append(self, positions: np.ndarray, columns: Mapping[str, Any]) -> None:
        """Add one record per entry of `positions`."""
        taken = sorted({SAMPLE, "json"} & columns.keys())
        if taken:
            raise ProbeError(f"rows {self._name!r}: the name {taken[0]!r} is taken, call the column something else")
        fetched = AsyncCopy({SAMPLE: np.asarray(positions, dtype=np.int64), **columns})
        arrays = fetched.arrays
        if not len(positions):
            self._empty = {key: ColumnType(array.dtype.str, tuple(array.shape[1:])) for key, array in arrays.items()}
            return
        if self._columns and arrays.keys() != self._columns.keys():
            raise ProbeError(f"rows {self._name!r}: columns {sorted(arrays)} after {sorted(self._columns)}")
        for key, array in arrays.items():
            self._check(key, array, len(positions))
        self._fetched.append(fetched)
        self._write_those(lambda first: first.here() or not fetched.copied or len(self._fetched) > _ON_THEIR_WAY)
        steps = np.diff(np.concatenate([[self._last], arrays[SAMPLE]]))
        self._sorted = self._sorted and bool((steps >= 0).all())
        self._last = int(arrays[SAMPLE][-1])
        self._count += len(positions)

    def _write_those(self, due: Callable[[AsyncCopy], bool]) -> None:
        """Write what was appended first, as long as it is due."""
        with writing(self._folder):
            while self._fetched and due(self._fetched[0]):
                for key, array in self._fetched.popleft().wait().items():
                    self._write(key, array)

    def _write(self, key: str, array: np.ndarray) -> None:
        if key not in self._files:
            self._files[key] = (self._folder / f"{self._name}.{key}").open("wb")
        self._files[key].write(np.ascontiguousarray(array).data)

    def _check(self, key: str, array: np.ndarray, expected: int) -> None:
        column = ColumnType(array.dtype.str, tuple(array.shape[1:]))
        if array.dtype.hasobject or array.dtype.kind not in "biufc":
            raise ProbeError(f"rows {self._name!r}: column {key!r} has type {array.dtype}; expected numbers")
        if array.ndim == 0 or len(array) != expected:
            count = "a single number" if array.ndim == 0 else f"{len(array)} records"
            raise ProbeError(f"rows {self._name!r}: column {key!r} has {count} for {expected} ids")
        if self._columns.setdefault(key, column) != column:
            raise ProbeError(
                f"rows {self._name!r}: column {key!r} changed from {self._columns[key]} to {column}; records must be "
                "alike (for several records per sample repeat its id)"
            )

    def close(self) -> None:
        """Let go of the files, finished or not: of all of them, also where the disk is full."""
        with writing(self._folder), ExitStack() as stack:
            for file in self._files.values():
                stack.callback(file.close)

    def finish(self) -> None:
        """Complete the files: records in the order of their samples, whatever the batches and looks were."""
        columns = self._columns or self._empty
        index = {"count": self._count, "columns": {key: [c.dtype, c.shape] for key, c in columns.items()}}
        self._write_those(lambda first: True)
        with writing(self._folder):
            self.close()
            if not self._sorted:
                self._sort()
            (self._folder / f"{self._name}.json").write_text(json.dumps(index))

    def _sort(self) -> None:
        order = np.argsort(self._open(SAMPLE), kind="stable")
        for key, column in self._columns.items():
            source, target = self._open(key), self._folder / f"{self._name}.{key}.sorted"
            step = max(1, _BLOCK // max(1, column.record_bytes))
            with target.open("wb") as file:
                for start in range(0, self._count, step):
                    file.write(np.ascontiguousarray(source[order[start : start + step]]).data)
            del source
            target.replace(self._folder / f"{self._name}.{key}")

    def _open(self, key: str) -> np.ndarray:
        return map_column(self._folder / f"{self._name}.{key}", self._columns[key], self._count)


def map_column(path: Path, column: ColumnType, count: int) -> np.ndarray:
    """A raw file as a read-only memory-mapped array; an empty one cannot be mapped."""
    shape = (count, *column.shape)
    if count == 0 or column.record_bytes == 0:
        return np.zeros(shape, dtype=column.dtype)
    check_plain(path, links=False)
    return let_small_go(np.memmap(path, dtype=column.dtype, mode="r", shape=shape))


def id_order(ids: Sequence[str]) -> np.ndarray:
    """The records in the order of their ids: what is summed or drawn in it does not depend on the order of the data.

    >>> id_order(["b", "c", "a"]).tolist()
    [2, 0, 1]
    """
    return np.argsort(np.asarray(ids, dtype=np.str_), kind="stable")


def id_rank(ids: Sequence[str]) -> np.ndarray:
    """The position of each record in the order of the ids.

    >>> id_rank(["b", "c", "a"]).tolist()
    [1, 2, 0]
    """
    return np.argsort(id_order(ids), kind="stable")


class RowTable(Mapping[str, np.ndarray]):
    """All records of all shards, in the order of the data. Columns are arrays; `blocks` goes shard by shard."""

    def __init__(self, name: str, shards: Sequence[Path], scratch: Path, ids: Sequence[str]):
        self._name = name
        self._scratch = scratch
        self._ids = ids
        self._indexes = [(folder, read_json(folder / f"{name}.json", links=False)) for folder in shards]
        self._columns: dict[str, ColumnType] = {}
        for folder, index in sorted(self._indexes, key=lambda entry: entry[1]["count"] == 0):
            for key, (dtype, shape) in index["columns"].items():
                column = ColumnType(dtype, tuple(shape))
                if self._columns.setdefault(key, column) != column and index["count"]:
                    raise ProbeError(f"rows {name!r}: column {key!r} differs between shards, see {folder}")

    @property
    def count(self) -> int:
        """The number of records."""
        return sum(index["count"] for _, index in self._indexes)

    @cached_property
    def ids(self) -> list[str]:
        """The id of each record's sample."""
        return [self._ids[position] for position in self[SAMPLE].tolist()] if self.count else []

    def blocks(self, column: str) -> Iterator[np.ndarray]:
        """A column shard by shard, each part memory-mapped."""
        for folder, index in self._indexes:
            if index["count"]:
                yield map_column(folder / f"{self._name}.{column}", self._columns[column], index["count"])

    def __getitem__(self, column: str) -> np.ndarray:
        if column not in self._columns:
            raise KeyError(column)
        path = self._scratch / f"{self._name}.{column}"
        if not path.exists():
            self._join(column, path)
        return map_column(path, self._columns[column], self.count)

    def _join(self, column: str, path: Path) -> None:
        self._scratch.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        with partial.open("wb") as target:
            for folder, index in self._indexes:
                if index["count"]:
                    with open_plain(folder / f"{self._name}.{column}", links=False) as source:
                        shutil.copyfileobj(source, target, _BLOCK)
        partial.replace(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
