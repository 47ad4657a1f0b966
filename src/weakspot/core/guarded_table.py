"""Parquet files that somebody else may have made, read within bounds: few bytes can stand for any number of values."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weakspot.core.guarded_open import open_plain

if TYPE_CHECKING:
    import pyarrow as pa  # over a second to import, so only where a table is touched

FREE_BYTES = 256 << 20
"""So much a table may take however small its file is."""
MOST_TIMES = 100
"""And besides as many times the size of its file: numbers and names that repeat shrink no further in a real table."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_TEXT = "BYTE_ARRAY"
_ENDLESS = "DELTA_BYTE_ARRAY"
"""Each value repeats the beginning of the one before, so that its size is known only once it is unpacked."""


def read_table(path: Path, *, links: bool = True) -> "pa.Table":
    """A Parquet file as a table; a `ValueError` where it is damaged, or would unpack to far more than its size."""
    import pyarrow as pa
    from pyarrow import parquet

    with open_plain(path, links=links) as file:
        most = FREE_BYTES + MOST_TIMES * os.fstat(file.fileno()).st_size
        try:
            about = parquet.read_metadata(file)
            coded = _checked(about, most)
            # No threads of Arrow: one that still holds a Python file when the interpreter exits aborts the process.
            with parquet.ParquetFile(file, metadata=about, read_dictionary=sorted(coded), pre_buffer=False) as opened:
                return _unpacked(opened.read(use_threads=False), about.schema.to_arrow_schema(), most)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # Arrow's own errors of damaged pages, too
            raise ValueError(str(error).strip().partition("\n")[0][:200]) from error
        finally:
            pa.default_memory_pool().release_unused()  # Arrow keeps what it used, several times the table


def _checked(about: Any, most: int) -> set[str]:
    """The columns of text that are kept as numbers into a list of texts; refuses what would take too much."""
    flat, coded, size = set(about.schema.to_arrow_schema().names), set(), int(about.num_rows)
    for column, chunk in _chunks(about):
        name, text = chunk.path_in_schema, chunk.physical_type == _TEXT
        if text and _ENDLESS in chunk.encodings:
            raise ValueError(f"column {name!r} is packed as {_ENDLESS}, whose size cannot be checked: use another")
        width = 8 if text else _WIDTHS.get(chunk.physical_type) or about.schema.column(column).length
        size += max(chunk.total_uncompressed_size, chunk.num_values * width)
        if text and any("DICTIONARY" in encoding for encoding in chunk.encodings):
            if name in flat:
                coded.add(name)
            else:  # inside a list or a mapping: any value may be as long as all texts together
                size += chunk.num_values * chunk.total_uncompressed_size
    _check_size(size, most)
    return coded


def _chunks(about: Any) -> Iterator[tuple[int, Any]]:
    for number in range(about.num_row_groups):
        group = about.row_group(number)
        yield from ((column, group.column(column)) for column in range(group.num_columns))


def _unpacked(table: "pa.Table", wanted: "pa.Schema", most: int) -> "pa.Table":
    """The table with texts in the place of their numbers, once it is known that they fit."""
    _check_size(table.nbytes + sum(map(_text_bytes, table.columns)), most)
    for column, field in enumerate(wanted):
        if table.column(column).type != field.type:
            table = table.set_column(column, field, table.column(column).cast(field.type))
    return table


def _text_bytes(column: "pa.ChunkedArray") -> int:
    """How much the texts of a column take once each value has its own; 0 where they have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else None
    if kind is None or not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return 0
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(chunk_lengths).as_py() or 0 for chunk_lengths in lengths)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"its table would unpack to {size:,} bytes, expected {most:,} at most")
