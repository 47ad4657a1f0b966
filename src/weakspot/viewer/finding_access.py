"""Reads arrays and tables of a Finding with checks; another type or size than expected is reported as damage."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from weakspot.core.errors import RunError
from weakspot.core.finding import Finding

MOST_ROWS = 100_000
"""Rows of a table that are sent at once; tables per class pair or cluster are far smaller."""


def array_in(finding: Finding, name: str, kinds: str, shape: Sequence[int | None]) -> np.ndarray:
    """An array whose dtype is of one of these kinds and whose shape is this one; None stands for any size."""
    array = finding.arrays.get(name)
    if array is None:
        raise RunError(f"{finding.name} is damaged: it has no array {name}; examine again")
    sizes = len(array.shape) == len(shape)
    sizes = sizes and all(want is None or want == has for want, has in zip(shape, array.shape, strict=True))
    if array.dtype.kind not in kinds or not sizes:
        kind = f"{array.dtype} of shape {array.shape}"
        raise RunError(f"{finding.name} is damaged: its array {name} is {kind}; examine again")
    return array


def rows_in(finding: Finding, *columns: str) -> list[dict[str, Any]]:
    """The rows of a table that has at least these columns."""
    table = finding.table
    if table is None:
        return []
    lost = [name for name in columns if table.column_names.count(name) != 1]
    if lost:
        raise RunError(f"{finding.name} is damaged: its table has no column {lost[0]}; examine again")
    try:
        plain = {name: _shown(table[name].slice(0, MOST_ROWS)) for name in dict.fromkeys(table.column_names)}
        return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise RunError(f"{finding.name} is damaged: its table cannot be read; examine again") from error


def _shown(column: "pa.ChunkedArray") -> list[Any]:
    """Dates as text: Python's own have no nanoseconds."""
    return list((column.cast(pa.string()) if pa.types.is_temporal(column.type) else column).to_pylist())


def whole(value: Any) -> int:
    """A whole number of a table."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RunError(f"a table is damaged: expected a whole number, got {type(value).__name__}; examine again")
    return value


def real(value: Any) -> float | None:
    """A number of a table that JSON can hold."""
    numeric = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    return float(value) if numeric else None


def plain_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as JSON holds them."""
    return [{name: plain(value) for name, value in row.items()} for row in rows]


def plain(value: Any) -> Any:
    """A value as JSON holds it: what is no number, text or truth value as text."""
    if isinstance(value, float):
        return real(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
