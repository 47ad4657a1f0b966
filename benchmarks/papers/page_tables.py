"""What the tables of the papers' pages are made of: rows of the CSVs beside this script, and lines of Markdown."""

import csv
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scipy.stats import t as student

HERE = Path(__file__).resolve().parent
Rows = Sequence[Mapping[str, str]]
HEAD = ("published", "ours", "here", "holds")
"""Of the table that begins a page."""


def rows(table: str, /, **equal: str) -> Rows:
    """The rows of a CSV in which the named columns hold these values; none where there is no CSV.

    A column called table is asked for as `table_`.
    """
    path = HERE / f"{table}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            row for row in csv.DictReader(file) if all(row[name.rstrip("_")] == value for name, value in equal.items())
        ]


def mean(found: Rows, name: str) -> float:
    return statistics.mean(float(row[name]) for row in found)


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> list[str]:
    """Lines of Markdown, with minus signs."""
    cells = list(head)
    written = [f"| {' | '.join(line)} |".replace("|  |", "| |") for line in (cells, *lines)]
    body = [re.sub(r"(?<![\w.])-(?=\d)", "−", line.replace("|  |", "| |")) for line in written]
    return [body[0], "|" + "---|" * len(cells), *body[1:]]


def ends(values: Iterable[float], digits: int = 2) -> str:
    """The least and the greatest."""
    found = list(values)
    return f"{min(found):.{digits}f} to {max(found):.{digits}f}"


def points(share: str, digits: int, *, sign: bool = True) -> str:
    """A difference of shares in points, with its sign: +3.4, −0.2, 0.0."""
    text = f"{100 * float(share):+.{digits}f}"
    text = text if sign and float(text) else text.lstrip("+-")
    return text.replace("-", "−")


def interval(values: Sequence[float], digits: int) -> str:
    """The mean with Student's 95 % interval."""
    centre = statistics.mean(values)
    half = float(student.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5
    low, high = (f"{end:+.{digits}f}" for end in (centre - half, centre + half))
    return f"{centre:+.{digits}f} ({low} to {high})"
