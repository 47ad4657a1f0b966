"""Metadata from a table, joined to the samples of any source by their ids."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.digest import digest
from weakspot.core.errors import DataError
from weakspot.core.observation import Batch
from weakspot.core.source import Source, batch_limit
from weakspot.data.arrays import npz_arrays
from weakspot.data.names import readable, unique_ids
from weakspot.data.tables import Table, table_from, typed


class WithMetadata:
    """The samples of a source, each with its row of a table.

    table: a CSV, Parquet or npz file, an Arrow table, or a mapping from column names to lists. Arrays with several
        numbers for each sample, such as an embedding, are columns as well.
    id_column: the column that holds the samples' ids.
    delimiter: between the cells of a CSV file.

    Every sample must have one row. Rows of other samples are left out, and `remarks` says how many.
    """

    def __init__(self, source: Source, table: Any, *, id_column: str = "id", delimiter: str = ","):
        wide, rest = _parted(table)
        rows = table_from(rest, delimiter=delimiter)
        self._source, self.ids = source, source.ids
        self.classes: tuple[str, ...] | None = getattr(source, "classes", None)
        self.batch_limit = batch_limit(source)
        order, left = _joined(rows, id_column, source)
        self._columns = {
            name: typed([cells[row] for row in order]) for name, cells in rows.columns.items() if name != id_column
        }
        if odd := [name for name, values in wide.items() if len(values) != len(order) + left]:
            raise DataError(f"{odd[0]!r} has {len(wide[odd[0]])} rows, and {id_column!r} has {len(order) + left}")
        self._columns |= {name: values[order] for name, values in wide.items()}
        extra = f"{left} rows of {rows.name} belong to no sample and are left out"
        self.remarks: tuple[str, ...] = (*getattr(source, "remarks", ()), *([extra] if left else []))

    @property
    def metadata(self) -> dict[str, np.ndarray] | None:
        """The columns of source and table; None where those of the source are not known before it is read."""
        of_source = getattr(self._source, "metadata", None)
        return None if of_source is None else {**of_source, **self._columns}

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places, with their metadata."""
        batch = self._source.read(positions)
        added = {name: column[positions] for name, column in self._columns.items()}
        twice = sorted(added.keys() & (batch.metadata or {}).keys())
        if twice:
            raise DataError(f"the data have metadata {twice[0]!r} already: rename that column of the table")
        return Batch(batch.ids, batch.positions, batch.inputs, batch.targets, {**(batch.metadata or {}), **added})

    def fingerprint(self) -> str:
        """Of the source, and of the rows of its samples."""
        return digest([self._source.fingerprint(), self._columns])


def _parted(table: Any) -> tuple[dict[str, np.ndarray], Any]:
    """Arrays with several numbers for each sample, and the rest of the table."""
    if isinstance(table, str | Path) and Path(table).suffix == ".npz":
        table = npz_arrays(Path(table))
    if not isinstance(table, Mapping):
        return {}, table
    wide = {str(name): column for name, column in table.items() if isinstance(column, np.ndarray) and column.ndim == 2}
    return wide, {name: column for name, column in table.items() if str(name) not in wide}


def _joined(table: Table, id_column: str, source: Source) -> tuple[list[int], int]:
    """The row of each sample, and how many rows belong to none."""
    named = unique_ids(
        ["" if cell is None else readable(str(cell)) for cell in table.column(id_column, "id_column")],
        advice=f"{table.name} must have one row per sample",
    )
    row_of = {name: row for row, name in enumerate(named)}
    missing = [name for name in source.ids if name not in row_of]
    if missing:
        instead = f"; its ids look like {named[0]!r}" if named else ""
        raise DataError(
            f"{table.name} has no row for sample {missing[0]!r} ({len(missing)} of {len(source.ids)} samples have "
            f"none){instead}: add them, or leave these samples out"
        )
    return [row_of[name] for name in source.ids], len(named) - len(source.ids)
