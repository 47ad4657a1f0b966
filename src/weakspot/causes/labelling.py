"""Labels for the unsafe set: what they may be, out as a CSV file and in again with checks. Needs no torch.

The labels are in the Run's `labels.jsonl` (`causes.journal`); the Finding `causes.labels` is made from it.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weakspot.causes import finding_outputs
from weakspot.causes.journal import Change, LabelJournal
from weakspot.core.errors import ConfigError, DataError, RunBusy, RunError
from weakspot.core.files import write_text
from weakspot.core.finding import Estimate, Finding
from weakspot.core.guarded_open import read_plain
from weakspot.core.options import nearest
from weakspot.core.outputs import UNUSABLE
from weakspot.core.run import Run
from weakspot.data.names import shown
from weakspot.data.tables import MOST_BYTES, Table, csv_table
from weakspot.formatting import FORMULA_SIGNS, csv_cell

if TYPE_CHECKING:
    import pyarrow as pa

UNSAFE = "causes.unsafe"
LABELS = "causes.labels"
PLAN = "classes.label_plan"
"""Another list of inputs to label: by these labels the accuracy on all inputs is estimated."""
COLUMNS = ("id", "cluster", "distance", "label")
NO_CLUSTER = 0
"""Of an image that was labelled and is in the unsafe set no more."""
_SHOWN = 5
"""The most mistakes of a file, or labels, that one message lists."""


@dataclass(frozen=True)
class LabelFormat:
    """What a label may be: the name or number of a class, names with ";" between them, or numbers."""

    task: str
    classes: tuple[str, ...]
    outputs: int
    unusable: bool = True
    """Whether an image may be left out as unusable: not of a plan, as an accuracy is about all of its inputs."""

    @classmethod
    def of_finding(cls, unsafe: Finding) -> "LabelFormat":
        """From the Finding of `UnsafeSet`."""
        arrays = unsafe.arrays
        if "task" not in arrays:
            raise RunError(f"{unsafe.name} chooses no images to label: give the Finding of UnsafeSet")
        classes = tuple(np.asarray(arrays["classes"]).tolist())
        return cls(str(arrays["task"]), classes, int(arrays["outputs"]), not unsafe.name.startswith(PLAN))

    def read(self, text: str) -> str:
        """The label in the form that is kept, as `UNUSABLE` always is; a `ValueError` says why it is none.

        >>> LabelFormat("classification", ("cat", "dog"), 2).read("1")
        'dog'
        >>> LabelFormat("keypoints", (), 2).read("1.5; 2")
        '1.5 2.0'
        """
        if text == UNUSABLE and text not in self.classes:
            if self.unusable:
                return text
            raise ValueError("an accuracy is about all inputs of its plan: label each, or take it out of the data")
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
        raise ValueError(f"{shown(text)!r} is not a class: {nearest(text, self.classes)}there are {few}")

    def _numbers(self, text: str) -> list[float]:
        try:
            numbers = [float(part) for part in text.replace(";", " ").split()]
        except ValueError:
            numbers = []
        if len(numbers) != self.outputs or not np.isfinite(numbers).all():
            several = "a number" if self.outputs == 1 else f"{self.outputs} numbers with spaces between them"
            raise ValueError(f"{shown(text)!r} is not a label: expected {several}")
        return numbers


def export_labels(unsafe: Finding, path: str | Path, *, labels: Finding | None = None) -> None:
    """Write the unsafe set as a CSV file `id, cluster, distance, label` that any spreadsheet opens.

    labels: those that there are already, to be filled in; the others are left empty.

    An existing file is not replaced. A cell that a spreadsheet would take for a formula begins with an apostrophe; the
    import removes it.
    """
    target = Path(path)
    text = labels_csv(unsafe, {} if labels is None else known_labels(labels))
    if target.exists():
        raise ConfigError(f"{path} exists already, and may hold labels: choose another name, or remove it")
    write_text(target, text)


def labels_csv(unsafe: Finding, labels: Mapping[str, str]) -> str:
    """What `export_labels` writes; labels by id. Of a plan, without clusters, `id, label` alone."""
    LabelFormat.of_finding(unsafe)
    text, table = io.StringIO(), table_in(unsafe)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS if "cluster" in table.column_names else COLUMNS[::3])
    for row in table.to_pylist():
        where = [row["cluster"], f"{row['distance']:.6g}"] if "cluster" in row else []
        writer.writerow([csv_cell(row["id"]), *where, csv_cell(labels.get(row["id"], ""))])
    return "\ufeff" + text.getvalue()  # by the mark at its beginning spreadsheets know UTF-8


def import_labels(run: Run, path: str | Path) -> Finding:
    """Read labels from a CSV file into the Run, as Finding `causes.labels`: `id, cluster, label`, null where none is.

    The file needs the columns `id` and `label`; it may hold some of the unsafe set, and empty labels. Labels that were
    read before stay, unless the file gives others. Nothing is stored where anything in the file is wrong.
    """
    RunLabels(run).change(read_labels(run[UNSAFE], Path(path)))
    return keep_labels(run)


def keep_labels(run: Run) -> Finding:
    """`current_labels`, and the Finding `causes.labels` made so; not where another process is writing to the Run."""
    finding = current_labels(run)
    kept = run.manifest()["findings"].get(LABELS)
    if finding.digest == kept or (kept is None and not known_labels(finding)):
        return finding
    with suppress(RunBusy), run.locked():  # what was given is safe, and whoever wants labels asks `current_labels`
        finding = current_labels(run)
        run.save(finding)
    return finding


def current_labels(run: Run) -> Finding:
    """The labels of a Run's unsafe set as far as they are known, those that were given a moment ago among them.

    Labels of a plan that estimates the accuracy are none of these.
    """
    planned = [run[name] for name in run.names() if name.partition("-")[0] == PLAN]
    others = {name for plan in planned for name in table_in(plan)["id"].to_pylist()}
    others -= set(table_in(run[UNSAFE])["id"].to_pylist())
    given = RunLabels(run).by_id()
    return labels_finding(run[UNSAFE], {name: label for name, label in given.items() if name not in others})


class RunLabels:
    """The labels that were given for a Run, by whatever page or command; safe to use from several at once."""

    def __init__(self, run: Run):
        self._run = run
        self._journal = LabelJournal(run.folder)

    def by_id(self) -> dict[str, str]:
        """The label of each image that has one, by its id."""
        journalled = self._journal.labels()
        return self._before() if journalled is None else journalled

    def change(self, labels: Change, *, expected: Change | None = None) -> dict[str, str | None]:
        """Set labels, None to remove one, and return those before; on disk when this returns.

        expected: the labels that the caller knows of; if another program has changed them meanwhile, nothing is set,
            and `LabelsDiffer` holds those that there are.
        """
        before: dict[str, str | None] = {}

        def changed(journalled: dict[str, str] | None) -> Change:
            labels_before = self._before() if journalled is None else journalled
            before.update({name: labels_before.get(name) for name in labels})
            differ = {
                name: now for name in expected or () if (now := labels_before.get(name)) != (expected or {})[name]
            }
            if differ:
                raise LabelsDiffer(differ)
            return labels if journalled is not None else {**labels_before, **labels}

        self._journal.add(changed)
        return before

    def _before(self) -> dict[str, str]:
        """The labels of a Run from before labels had a file of their own."""
        return known_labels(self._run[LABELS]) if LABELS in self._run else {}


class LabelsDiffer(RunError):  # noqa: N818 - named after what happened
    """Another program has changed the labels that were to be changed; `labels` are those that there are."""

    def __init__(self, labels: Change):
        some = [f"{shown(name)!r} is {shown(label or 'without a label')}" for name, label in labels.items()][:_SHOWN]
        super().__init__(f"labelled elsewhere meanwhile: {', '.join(some)}; nothing was changed, look again")
        self.labels = labels


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
    named = UNUSABLE in LabelFormat.of_finding(unsafe).classes
    unusable = 0 if named else sum(labels.get(name) == UNUSABLE for name in clusters)
    summary = {
        "labelled": Estimate(len(clusters) - missing, about="images of the unsafe set that have a label"),
        "missing": Estimate(missing, about="images of the unsafe set that have none yet"),
    }
    if unusable:
        summary["unusable"] = Estimate(unusable, about="images of the unsafe set that cannot be labelled")
    if earlier:
        summary["earlier"] = Estimate(len(earlier), about="labelled images that are in the unsafe set no more; kept")
    return Finding(
        name=LABELS,
        about="Labels of the unsafe set (Fahmy et al. 2021, step 5).",
        summary=summary,
        table=_table([*clusters, *earlier], {**clusters, **dict.fromkeys(earlier, NO_CLUSTER)}, labels),
        outputs=finding_outputs.LABELS,
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
    """The labels that a file gives, by id; an error names the lines."""
    try:
        content = read_plain(path, most=MOST_BYTES)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return labels_in(unsafe, content, str(path))


def labels_in(unsafe: Finding, content: bytes, path: str) -> dict[str, str]:
    """The labels that the content of a CSV file gives; `path` is its name in messages."""
    label_format, table = LabelFormat.of_finding(unsafe), csv_table(content, path, delimiter=_delimiter(content))
    id_of = {spelling: name for name in table_in(unsafe)["id"].to_pylist() for spelling in (csv_cell(name), name)}
    labels: dict[str, str] = {}
    seen: set[str | None] = set()
    wrong = []
    for cell, text, line in _cells(table):
        name = cell if cell in id_of else cell.strip()
        trouble = _trouble(name, id_of, seen)
        seen.add(id_of.get(name))
        if trouble is None and text:
            try:
                labels[id_of[name]] = label_format.read(text)
            except ValueError as error:
                trouble = str(error)
        if trouble:
            wrong.append(f"{path}:{line}: {trouble}")
    if wrong:
        more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        raise DataError(
            "; ".join([*wrong[:_SHOWN], *more]) + ". Nothing was stored: correct the file, and import it again"
        )
    return labels


def _trouble(name: str, id_of: Mapping[str, str], seen: set[str | None]) -> str | None:
    if name not in id_of:
        return f"{shown(name)!r} is not an image to label{_meant(name, id_of)}"
    return f"{shown(name)!r} is in the file twice" if id_of[name] in seen else None


def _meant(name: str, id_of: Mapping[str, str]) -> str:
    hint = nearest(name, list(id_of)).strip()
    return f": {hint}" if hint else ""


def _cells(table: Table) -> list[tuple[str, str, str]]:
    """Id, label and line of each row."""
    ids, labels = (table.column(name, "labels") for name in ("id", "label"))
    lines = [where.removeprefix("line ") for where in table.places]
    return [(name, _plain(text.strip()), line) for name, text, line in zip(ids, labels, lines, strict=True)]


def _delimiter(content: bytes) -> str:
    """What parts the cells: spreadsheets write "," or, where that is the decimal sign, ";", some a tab."""
    header = content.splitlines()[0] if content else b""
    return max((",", ";", "\t"), key=lambda sign: header.count(sign.encode()))


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_SIGNS) else cell
