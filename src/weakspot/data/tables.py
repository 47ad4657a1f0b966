"""Tables beside the samples: CSV and Parquet files read strictly, as columns with their names."""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.guarded_open import check_fits, read_plain
from weakspot.core.guarded_table import read_table
from weakspot.data.names import listed, readable

_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
MOST_BYTES = 1 << 30
"""Of a CSV file."""
_TIMES = 16
"""As many times the size of a CSV file its cells take in memory."""


@dataclass(frozen=True)
class Table:
    """Columns of equal length; `places` say in words where each row stands."""

    name: str
    columns: Mapping[str, Sequence[Any]]
    places: Sequence[str]

    def column(self, name: str, option: str) -> Sequence[Any]:
        """A column; one that is not there is named, with what there is. `option` is where it was asked for."""
        if name not in self.columns:
            raise ConfigError(f"{self.name} has no column {name!r} (for {option}){self._instead(name)}")
        return self.columns[name]

    def _instead(self, name: str) -> str:
        close = get_close_matches(name, list(self.columns), n=1, cutoff=0.6)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        odd = next((sign for sign in (";", "\t", "|") if any(sign in column for column in self.columns)), None)
        separated = f"; its cells look separated by {odd!r}: give that as delimiter" if odd else ""
        return f": it has {listed(list(self.columns))}{meant}{separated}"


def read_csv(path: Path, *, delimiter: str = ",") -> Table:
    """A CSV file in UTF-8 whose first line names the columns; every row must have as many cells."""
    try:
        content = read_plain(path, most=MOST_BYTES)
        check_fits(_TIMES * len(content), "its cells", "split it")
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    return csv_table(content, str(path), delimiter=delimiter)


def csv_table(content: bytes, name: str, *, delimiter: str = ",") -> Table:
    """The content of a CSV file, as `read_csv` reads it; `name` is for messages."""
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ConfigError(f"delimiter is {delimiter!r}: expected one character, as ',' or ';', that separates cells")
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter, strict=True)
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8 text (byte {error.start}): save it as CSV in UTF-8") from error
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: {error}; check the quotes there") from error
    if not rows:
        raise DataError(f"{name} is empty: expected a first line that names the columns")
    return _table(name, rows, lines)


def _table(name: str, rows: list[list[str]], lines: list[int]) -> Table:
    header = [column.strip() for column in rows[0]]
    twice = next((column for column, times in Counter(header).items() if times > 1), None)
    if twice is not None:
        raise DataError(f"{name} has two columns named {twice!r}: name each column once")
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise DataError(f"{name}, line {line}: {len(row)} cells, the first line names {len(header)} columns")
    cells = list(zip(*rows[1:], strict=True)) or [()] * len(header)
    return Table(name, dict(zip(header, cells, strict=True)), [f"line {line}" for line in lines[1:]])


def read_parquet(path: Path) -> Table:
    """A Parquet file."""
    try:
        table = read_table(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path} as a Parquet file: {reason}") from error
    return table_from(table, name=str(path))


def table_from(source: Any, *, name: str = "the table", delimiter: str = ",") -> Table:
    """A path to a CSV or Parquet file, an Arrow table, or a mapping from column names to values."""
    if isinstance(source, str | Path):
        path = Path(source)
        return read_parquet(path) if path.suffix == ".parquet" else read_csv(path, delimiter=delimiter)
    if hasattr(source, "to_pydict"):
        source = source.to_pydict()
    if not isinstance(source, Mapping):
        raise ConfigError(f"a table is a file, an Arrow table or a mapping of columns, got {type(source).__name__}")
    columns = {str(key): _values(str(key), column, name) for key, column in source.items()}
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns of {name} differ in length: {lengths}")
    return Table(name, columns, [f"row {row}" for row in range(max(lengths.values(), default=0))])


def _values(key: str, column: Any, name: str) -> Sequence[Any]:
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    if isinstance(column, str) or not isinstance(column, Sequence):
        raise DataError(f"column {key!r} of {name} must be a list or an array, got {type(column).__name__}")
    return column


def typed(cells: Sequence[Any]) -> np.ndarray:
    """A column of metadata: int64 if all cells are whole numbers, float64 if all are numbers (empty: NaN), else text.

    Numbers written with leading zeros are codes, and stay text.

    >>> typed(["1", "2"]), typed(["1.5", ""]), typed(["007", "x"])
    (array([1, 2]), array([1.5, nan]), array(['007', 'x'], dtype=object))
    """
    texts = ["" if cell is None else cell if isinstance(cell, str) else _number_text(cell) for cell in cells]
    if texts and all(map(_WHOLE.fullmatch, texts)):
        return np.array([int(text) for text in texts], dtype=np.int64)
    if any(texts) and all(text in ("", "nan") or _DECIMAL.fullmatch(text) for text in texts):
        return np.array([float(text or "nan") for text in texts])
    column = np.empty(len(texts), dtype=object)
    column[:] = [readable(text) for text in texts]
    return column


def _number_text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)
