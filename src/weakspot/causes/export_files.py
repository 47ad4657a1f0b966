"""Names and tables of what is exported."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weakspot.data.images import SUFFIXES
from weakspot.formatting import csv_cell


def file_name(name: str) -> tuple[str, str]:
    """A stem and a suffix that any file system takes and that lead nowhere else, from the id of a sample.

    >>> file_name("../cats/one two.JPG"), file_name("test <3>")
    (('one_two', '.jpg'), ('test_3', ''))
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    stem, _, suffix = last.rpartition(".")
    has_suffix = bool(stem) and f".{suffix.lower()}" in SUFFIXES
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", stem if has_suffix else last).strip("_.")[:60]
    return plain or "image", f".{suffix.lower()}" if has_suffix else ""


def write_csv(path: Path, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """A CSV file that spreadsheets open, without formulas."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(_cell, columns))
        writer.writerows(map(_cell, row) for row in rows)


def _cell(value: Any) -> Any:
    return csv_cell(str(value)) if isinstance(value, str) else value
