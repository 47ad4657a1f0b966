"""A folder per confirmed cause: its sentence, its images as a table, errors, and correct images like them."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.causes.export_files import file_name, write_csv
from weakspot.causes.labelling import table_in
from weakspot.core.run import Run
from weakspot.core.source import Source
from weakspot.data.images import pixels_of, png

SLICES, ERRORS = "causes.error_slices", "causes.errors"
MOST = 100
"""Errors of a cause whose pictures are written."""
_COLUMNS = ("id", "correct", "kind", "target", "prediction", "error")
_BATCH = 64


def write_causes(folder: Path, run: Run, source: Source | None) -> None:
    """Write a folder for each confirmed cause of a Run; nothing where it has none.

    causes.csv                      the causes in their order
    01-dark/sentence.txt            its rule and rates
    01-dark/images.csv              images that it is the first rule of: whether correct, what was predicted
    01-dark/wrong/, correct/        errors, and images like them that are predicted correctly
    """
    if SLICES not in run or ERRORS not in run:
        return
    finding = run[SLICES]
    rows = [row for row in ([] if finding.table is None else finding.table.to_pylist()) if row["confirmed"]]
    if not rows:
        return
    folder.mkdir()
    names = [name for name in rows[0] if name not in ("incorrect_examples", "correct_examples")]
    write_csv(folder / "causes.csv", names, ([row[name] for name in names] for row in rows))
    known = {row["id"]: row for row in table_in(run[ERRORS]).to_pylist()}
    for row in rows:
        members = finding.arrays["image_id"][finding.arrays["image_slice"] == row["slice"]].tolist()
        _write_cause(
            folder / f"{row['slice']:02d}-{_slug(row['rule'])}", row, [known[name] for name in members], source
        )


def _write_cause(folder: Path, row: dict[str, Any], members: Sequence[dict[str, Any]], source: Source | None) -> None:
    folder.mkdir()
    (folder / "sentence.txt").write_text(f"{row['summary']}\n", encoding="utf-8")
    columns = [name for name in _COLUMNS if members and name in members[0]]
    write_csv(folder / "images.csv", columns, ([one[name] for name in columns] for one in members))
    wrong = _first([one["id"] for one in members if not one["correct"]], row["incorrect_examples"])
    _write_pictures(folder / "wrong", source, wrong[:MOST])
    _write_pictures(folder / "correct", source, list(filter(None, row["correct_examples"].split(", "))))


def _first(ids: Sequence[str], typical: str) -> list[str]:
    """The typical ones first."""
    chosen = [name for name in typical.split(", ") if name in set(ids)]
    return [*chosen, *(name for name in ids if name not in set(chosen))]


def _slug(rule: str) -> str:
    """The words of a rule as a name of a folder.

    >>> _slug("dark (brightness < 0.21) and weather = fog")
    'dark-and-weather-fog'
    """
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\([^)]*\)", "", rule.lower())).strip("-")[:40] or "cause"


def _write_pictures(folder: Path, source: Source | None, ids: Sequence[str]) -> None:
    if source is None or not ids:
        return
    folder.mkdir()
    for rank, (name, content, pixels) in enumerate(pictures_of(source, ids), start=1):
        stem, suffix = file_name(name)
        file = folder / f"{rank:03d}-{stem}{'.png' if content is None else suffix}"
        file.write_bytes(png(pixels) if content is None else content)


def pictures_of(source: Source, ids: Sequence[str]) -> Iterator[tuple[str, bytes | None, np.ndarray]]:
    """Name, content of the file where there is one, and pixels of each sample; nothing where these are no images."""
    place = {name: index for index, name in enumerate(source.ids)}
    content = getattr(source, "content", None)
    for start in range(0, len(ids), _BATCH):
        places = np.array([place[name] for name in ids[start : start + _BATCH]])
        inputs = source.read(places).inputs.numpy()
        if inputs.ndim != 4:
            return
        for index, picture in zip(places.tolist(), inputs, strict=True):
            yield source.ids[index], None if content is None else content(index), pixels_of(picture)
