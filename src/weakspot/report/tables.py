"""The part of a table that a page shows: its first rows, as text, with what is needed to sort them."""

from dataclasses import dataclass
from decimal import Decimal
from math import isnan
from typing import Any

import pyarrow as pa

from weakspot.core.outputs import Outputs, ValueSpec
from weakspot.formatting import MISSING, counted, in_unit, number, value_text

ROWS = 200
COLUMNS = 40


@dataclass(frozen=True)
class ColumnHead:
    """A column's head; numbers are set flush right and sorted by value."""

    name: str
    numeric: bool
    declared: ValueSpec

    @property
    def identifier(self) -> bool:
        """Whether its whole numbers are names, which are not to be split by thousands separators."""
        return self.declared.role in ("id", "code") or self.name == "id" or self.name.endswith("_id")


@dataclass(frozen=True)
class TableCell:
    """What a cell shows, how it is set ("number", "missing"), and the number it is sorted by."""

    text: str
    kind: str = ""
    value: str | None = None


@dataclass(frozen=True)
class ShownTable:
    """The first rows and columns of a table."""

    columns: list[ColumnHead]
    rows: list[list[TableCell]]
    all_rows: int
    all_columns: int

    @property
    def cut(self) -> bool:
        """Whether rows are left out."""
        return len(self.rows) < self.all_rows

    @property
    def extent(self) -> str:
        """How much of the table is shown, as a phrase."""
        rows = _extent(len(self.rows), self.all_rows, "row")
        columns = _extent(len(self.columns), self.all_columns, "column")
        return f"{rows}, {columns}" if len(self.columns) < self.all_columns else rows


def show_table(table: pa.Table, outputs: Outputs, *, rows: int = ROWS, columns: int = COLUMNS) -> ShownTable:
    """The first rows and columns, cell by cell; the table itself is not copied."""
    fields = list(table.schema)[:columns]
    heads = [ColumnHead(field.name, _is_numeric(field.type), outputs.column(field.name)) for field in fields]
    shown = [_cells(table.column(index).slice(0, rows), head) for index, head in enumerate(heads)]
    return ShownTable(heads, [list(row) for row in zip(*shown, strict=True)], table.num_rows, table.num_columns)


def _extent(shown: int, total: int, noun: str) -> str:
    return counted(total, noun) if shown == total else f"first {number(shown)} of {counted(total, noun)}"


def _cells(column: pa.ChunkedArray, head: ColumnHead) -> list[TableCell]:
    return [_cell(value, head) for value in _values(column)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    # Python's own dates have no nanoseconds, and pyarrow refuses to drop them
    plain = column.cast(pa.string()) if pa.types.is_temporal(column.type) else column
    return list(plain.to_pylist())


def _cell(value: Any, head: ColumnHead) -> TableCell:
    kind = "number" if head.numeric else ""
    if value is None:
        return TableCell(MISSING, f"{kind} missing".strip())
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return TableCell(value_text(value), kind)
    if isnan(value):
        return TableCell(number(value), f"{kind} missing".strip())
    text = str(value) if head.identifier and isinstance(value, int) else in_unit(value, head.declared.unit)
    return TableCell(text, kind, str(value).replace("inf", "Infinity"))  # as the browser spells it


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
