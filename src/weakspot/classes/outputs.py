"""The classes room: its Findings, the worst pairs and groups among them, and its page. Torch-free."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from weakspot.classes import finding_outputs as declared
from weakspot.classes import gap_outputs, label_outputs
from weakspot.classes.pixel_outputs import PIXEL_CONFUSION
from weakspot.core.finding import Finding
from weakspot.core.room import Room, ViewerPage, WorstFinding
from weakspot.formatting import number, points, roughly

_MOST_ROWS = 10_000
_MANY_LABELS = "multilabel"


def worst(findings: Sequence[Finding], task: str) -> list[WorstFinding]:
    """The pair that is confused most, and the largest difference between groups that is beyond chance."""
    tables = {finding.name.partition("-")[0]: finding for finding in reversed(findings) if finding.table is not None}
    pairs = tables.get("classes.class_pairs") or tables.get("classes.output_pairs")
    groups = tables.get("classes.group_fairness")
    gaps = tables.get("classes.group_gaps")
    candidates = (
        None if pairs is None else _pair(pairs, task),
        None if groups is None else _group(groups),
        None if gaps is None else _gap(gaps),
    )
    return [one for one in candidates if one is not None]


def _rows(finding: Finding) -> list[dict[str, Any]]:
    """The first rows: tables have the worst first."""
    return [] if finding.table is None else list(finding.table.slice(0, _MOST_ROWS).to_pylist())


def _pair(finding: Finding, task: str) -> WorstFinding | None:
    """The pair that labels show confused most or, without labels, the most suspicious one."""
    rows = _rows(finding)
    if not rows:
        return None
    row = max(rows, key=lambda row: max(_confusions(row)))  # without labels the first, which is the most suspicious
    forth, back = _confusions(row)
    one, other = str(row["first"]), str(row["second"])
    if back > forth:
        one, other, forth, back = other, one, back, forth
    if forth:
        title, words = (_predicted_beside if task == _MANY_LABELS else _predicted_as)(one, other, forth, back)
        words += "" if row["confused"] else " Only the labels show it: the pair is not among those reported."
    else:
        title, words = f"“{one}” and “{other}” look alike to the network", _alike(row)
    names = (f"{one} like {other}", f"{other} like {one}")
    pictures = [(name, finding.media[name]) for name in names if name in finding.media]
    classes = len(finding.arrays.get("classes", ()))
    return WorstFinding(title, words, finding.name, (forth + back) / max(classes, 1), pictures)


def _confusions(row: Mapping[str, Any]) -> tuple[float, float]:
    forth, back = (float(row.get(name) or 0) for name in ("first_taken_for_second", "second_taken_for_first"))
    return (0.0 if isnan(forth) else forth), (0.0 if isnan(back) else back)  # NaN where no input has one alone


def _predicted_as(one: str, other: str, forth: float, back: float) -> tuple[str, str]:
    words = f"{roughly(forth)} of “{one}” are predicted as “{other}”, {roughly(back)} of “{other}” as “{one}”."
    return f"“{one}” is predicted as “{other}”", words


def _predicted_beside(one: str, other: str, forth: float, back: float) -> tuple[str, str]:
    """Of several labels none replaces another: one is predicted beside the other."""
    words = (
        f"Both are predicted for {roughly(forth)} of the inputs with “{one}” and without “{other}”, and for "
        f"{roughly(back)} of those with “{other}” and without “{one}”."
    )
    return f"“{other}” is predicted beside “{one}”", words


def _alike(row: Mapping[str, Any]) -> str:
    """By what two classes look alike, where no label says so."""
    if "distance" in row:
        return f"They activate the same neurons: distance {number(row['distance'])}, the nearest of all pairs."
    return f"Images predicted as one give {roughly(row['soft_confusion'])} to the other, the most of all pairs."


def _group(finding: Finding) -> WorstFinding | None:
    rows = [row for row in _rows(finding) if row.get("sure")]
    if not rows:
        return None
    row = max(rows, key=lambda row: row["difference"])
    total = finding.provenance.get("samples")
    interval = f"95\u00a0% interval {points(row['low'])} to {points(row['high'])}"
    rates = f"{roughly(row['accuracy_worse'])} against {roughly(row['accuracy_better'])}"
    return WorstFinding(
        title=f"“{row['worse']}” is predicted correctly less often than “{row['better']}”",
        text=f"{rates}: {points(row['difference'])} percentage points less ({interval}).",
        finding=finding.name,
        share=row["difference"] * row["images_worse"] / total if isinstance(total, int) and total else 0.0,
    )


def _gap(finding: Finding) -> WorstFinding | None:
    """The surest gap in accuracy, or else the surest of a class."""
    rows = sorted((row for row in _rows(finding) if row["sure"]), key=lambda row: bool(row["class"]))
    if not rows:
        return None
    row, total = rows[0], finding.provenance.get("samples")
    of_class = f" of “{row['class']}”" if row["class"] else ""
    interval = f"{points(row['low'])} to {points(row['high'])} percentage points (simultaneous interval)"
    return WorstFinding(
        title=f"{row['measure'].capitalize()}{of_class} is worse where {row['group']}",
        text=f"{roughly(row['rate'])}, elsewhere {roughly(row['rate_of_others'])}: a gap of {interval}.",
        finding=finding.name,
        share=row["gap"] * row["images"] / total if isinstance(total, int) and total else 0.0,
    )


ROOM = Room(
    "classes",
    findings={
        "classes.class_pairs": declared.CLASS_PAIRS,
        "classes.output_pairs": declared.OUTPUT_PAIRS,
        "classes.images_to_label": declared.IMAGES_TO_LABEL,
        "classes.group_fairness": declared.GROUP_FAIRNESS,
        "classes.class_coverage": declared.CLASS_COVERAGE,
        "classes.class_ranges": declared.CLASS_RANGES,
        "classes.class_criteria": declared.CLASS_CRITERIA,
        "classes.group_gaps": gap_outputs.GROUP_GAPS,
        "classes.known_confidence": label_outputs.KNOWN_CONFIDENCE,
        "classes.label_plan": label_outputs.LABEL_PLAN,
        "classes.estimated_accuracy": label_outputs.ESTIMATED_ACCURACY,
        "classes.pixel_confusion": PIXEL_CONFUSION,
    },
    worst=worst,
    pages=(
        ViewerPage(
            "pairs",
            "Confused pairs",
            "Classes that the model may confuse, with their images.",
            ("classes.class_pairs", "classes.output_pairs"),
        ),
    ),
)
