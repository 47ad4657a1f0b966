"""Labels for the unsafe set: out as a CSV file, labelled with any tool, and in again with checks. Needs no torch."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weakspot.core.errors import ConfigError, DataError, RunError
from weakspot.core.files import write_text
from weakspot.core.finding import Estimate, Finding
from weakspot.core.options import nearest
from weakspot.core.run import Run
from weakspot.data.names import shown
from weakspot.data.tables import Table, read_csv

if TYPE_CHECKING:
    import pyarrow as pa

UNSAFE = "causes.unsafe"
LABELS = "causes.labels"
COLUMNS = ("id", "cluster", "distance", "label")
NO_CLUSTER = 0
"""Of an image that was labelled and is in the unsafe set no more."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SHOWN = 5
"""Mistakes of a file that are told at once."""


@dataclass(frozen=True)
class Answers:
    """What a label may be: the name or number of a class, names with ";" between them, or numbers."""

    task: str
    classes: tuple[str, ...]
    outputs: int

    @classmethod
    def of_finding(cls, unsafe: Finding) -> "Answers":
        """From the Finding of `UnsafeSet`."""
        arrays = unsafe.arrays
        if "task" not in arrays:
            raise RunError(f"{unsafe.name} chooses no images to label: give the Finding of UnsafeSet")
        return cls(str(arrays["task"]), tuple(np.asarray(arrays["classes"]).tolist()), int(arrays["outputs"]))

    def read(self, text: str) -> str:
        """The label in the form that is kept; a `ValueError` says why it is none.

        >>> Answers("classification", ("cat", "dog"), 2).read("1")
        'dog'
        >>> Answers("keypoints", (), 2).read("1.5; 2")
        '1.5 2.0'
        """
        if self.task == "classification":
            return self._class(text)
        if self.task == "multilabel":
            return ";".join(self._class(part) for part in map(str.strip, text.split(";")) if part) or ";"
        return " ".join(map(repr, self._numbers(text)))

    def _class(self, text: str) -> str:
        if text in self.classes:
            return text
        if text.isdecimal() and int(text) < len(self.classes):
            return self.classes[int(text)]
        few = ", ".join(self.classes[:5]) + (" …" if len(self.classes) > 5 else "")
        raise ValueError(f"{shown(text)!r} is no class: {nearest(text, self.classes)}there are {few}")

    def _numbers(self, text: str) -> list[float]:
        try:
            numbers = [float(part) for part in text.replace(";", " ").split()]
        except ValueError:
            numbers = []
        if len(numbers) != self.outputs or not np.isfinite(numbers).all():
            several = "a number" if self.outputs == 1 else f"{self.outputs} numbers with spaces between them"
            raise ValueError(f"{shown(text)!r} is no answer: expected {several}")
        return numbers


def export_labels(unsafe: Finding, path: str | Path, *, labels: Finding | None = None) -> None:
    """Write the unsafe set as a CSV file `id, cluster, distance, label` that any spreadsheet opens.

    A file that is there is not replaced. labels: those that are known already, to be filled in; the others are left
    empty. A cell that a spreadsheet would take for a formula begins with an apostrophe, which `import_labels` takes
    away again.
    """
    Answers.of_finding(unsafe)
    target = Path(path)
    if target.exists():
        raise ConfigError(f"{path} is there already, and may hold labels: choose another name, or remove it")
    known, text = {} if labels is None else known_labels(labels), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in table_in(unsafe).to_pylist():
        label = known.get(row["id"], "")
        writer.writerow([guarded(row["id"]), row["cluster"], f"{row['distance']:.6g}", guarded(label)])
    write_text(target, "\ufeff" + text.getvalue())  # by the mark at its beginning spreadsheets know UTF-8


def import_labels(run: Run, path: str | Path) -> Finding:
    """Read labels from a CSV file into the Run, as Finding `causes.labels`: `id, cluster, label`, null where none is.

    The file needs the columns `id` and `label`; it may hold some of the unsafe set, and empty labels. Labels that were
    read before stay, unless the file gives others. Nothing is stored where anything in the file is wrong.
    """
    unsafe = run[UNSAFE]
    given = read_labels(unsafe, Path(path))
    with run.locked():
        before = known_labels(run[LABELS]) if LABELS in run else {}
        found = labels_finding(unsafe, {**before, **given})
        run.save(found)
    return found


def current_labels(run: Run) -> Finding:
    """The labels of a Run's unsafe set as far as they are known."""
    return labels_finding(run[UNSAFE], known_labels(run[LABELS]) if LABELS in run else {})


def known_labels(labels: Finding) -> dict[str, str]:
    """The label of each image that has one, by its id."""
    if labels.table is None:
        return {}
    pairs = zip(labels.table["id"].to_pylist(), labels.table["label"].to_pylist(), strict=True)
    return {name: label for name, label in pairs if label is not None}


def labels_finding(unsafe: Finding, labels: Mapping[str, str]) -> Finding:
    """The unsafe set with its labels; an image that was labelled for an earlier one is kept, in no cluster."""
    chosen = table_in(unsafe)
    clusters: dict[str, int] = dict(zip(chosen["id"].to_pylist(), chosen["cluster"].to_pylist(), strict=True))
    earlier = sorted(set(labels) - set(clusters))
    missing = sum(name not in labels for name in clusters)
    told = {
        "labelled": Estimate(len(clusters) - missing, about="images of the unsafe set that have a label"),
        "missing": Estimate(missing, about="images of the unsafe set that have none yet"),
    }
    if earlier:
        told["earlier"] = Estimate(len(earlier), about="labelled images that are in the unsafe set no more; kept")
    return Finding(
        name=LABELS,
        about="Labels of the unsafe set (Fahmy et al. 2021, step 5).",
        summary=told,
        table=_table([*clusters, *earlier], {**clusters, **dict.fromkeys(earlier, NO_CLUSTER)}, labels),
        provenance={"unsafe": unsafe.digest},
    )


def table_in(finding: Finding) -> "pa.Table":
    """The table of a Finding; one without is refused."""
    if finding.table is None:
        raise RunError(f"{finding.name} has no table: nothing came of it, or it is another Finding than expected")
    return finding.table


def _table(ids: Sequence[str], clusters: Mapping[str, int], labels: Mapping[str, str]) -> "pa.Table":
    import pyarrow as pa  # over a second to import

    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "cluster": pa.array([clusters[name] for name in ids], pa.int64()),
            "label": pa.array([labels.get(name) for name in ids], pa.string()),
        }
    )


def read_labels(unsafe: Finding, path: Path) -> dict[str, str]:
    """The labels that a file gives, by id; what is wrong in it is told with its lines."""
    answers, table = Answers.of_finding(unsafe), read_csv(path, delimiter=_delimiter(path))
    known = {spelling: name for name in table_in(unsafe)["id"].to_pylist() for spelling in (guarded(name), name)}
    labels: dict[str, str] = {}
    seen: set[str | None] = set()
    wrong = []
    for cell, text, line in _cells(table):
        name = cell if cell in known else cell.strip()
        trouble = _trouble(name, known, seen)
        seen.add(known.get(name))
        if trouble is None and text:
            try:
                labels[known[name]] = answers.read(text)
            except ValueError as error:
                trouble = str(error)
        if trouble:
            wrong.append(f"{path}:{line}: {trouble}")
    if wrong:
        more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        raise DataError("; ".join([*wrong[:_SHOWN], *more]) + ". Nothing was stored: put it right, and import again")
    return labels


def _trouble(name: str, known: Mapping[str, str], seen: set[str | None]) -> str | None:
    if name not in known:
        return f"{shown(name)!r} is no image of the unsafe set{_meant(name, known)}"
    return f"{shown(name)!r} stands in the file twice" if known[name] in seen else None


def _meant(name: str, known: Mapping[str, str]) -> str:
    hint = nearest(name, list(known)).strip()
    return f": {hint}" if hint else ""


def _cells(table: Table) -> list[tuple[str, str, str]]:
    """Id, label and line of each row."""
    ids, labels = (table.column(name, "labels") for name in ("id", "label"))
    lines = [place.removeprefix("line ") for place in table.places]
    return [(name, _plain(text.strip()), line) for name, text, line in zip(ids, labels, lines, strict=True)]


def _delimiter(path: Path) -> str:
    """What parts the cells: spreadsheets write "," or, where that is the decimal sign, ";", some a tab."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            header = file.readline()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return max((",", ";", "\t"), key=header.count)


def guarded(cell: str) -> str:
    """The cell, with an apostrophe before it where a spreadsheet would take it for a formula.

    >>> guarded("=1+1"), guarded("eye-01")
    ("'=1+1", 'eye-01')
    """
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
