"""How good the model is, for the viewer: classes, confusions and confident errors, each with its samples."""

from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response

from weakspot.report.headlines import answer
from weakspot.viewer.columns import SampleColumn
from weakspot.viewer.finding_access import array_in
from weakspot.viewer.library import Chosen
from weakspot.viewer.reading import RunReader
from weakspot.viewer.responses import as_json, numbers
from weakspot.viewer.sample_table import SampleTable, column_called, sample_table
from weakspot.viewer.splits import split_of

router = APIRouter(prefix="/api")
FINDING = "performance.performance"
MOST_CONFUSIONS = 100


@router.get("/performance")
def performance(run: Chosen) -> Response:
    """The classes, the worst first, and the confusions, each with the filters that list its samples."""
    finding = run.finding(FINDING)
    split = split_of(run, finding)
    table = None if split is None else sample_table(run, split)
    correct, sure, overlap = (_column(table, name) for name in ("correct", "confidence", "iou"))
    told = {
        "answer": "".join(part.text for part in answer("performance", [finding]).sentence),
        "split": split,
        "measure": "IoU" if "class_iou" in finding.arrays else "Correct",
        "classes": _classes(run, table),
        "confusions": _confusions(run, table),
        "errors": None if correct is None else [f"{correct.name}:is:no"],
        "sort": "" if sure is None else f"-{sure.name}",
    }
    if overlap is not None:  # of a segmentation nothing is simply wrong: those with the least overlap
        told |= {"errors": [], "sort": overlap.name}
    return as_json(told)


def _column(table: SampleTable | None, name: str) -> SampleColumn | None:
    return None if table is None else table.columns.get(f"{FINDING}.{name}") or column_called(table, name)


def _classes(run: RunReader, table: SampleTable | None) -> list[dict[str, Any]]:
    arrays = run.finding(FINDING).arrays
    measure = next((name for name in ("class_accuracy", "class_iou") if name in arrays), None)
    if measure is None:
        return []
    finding, target = run.finding(FINDING), _column(table, "target")
    names = array_in(finding, "class_name", "U", (None,))
    count = (len(names),)
    columns = {
        "accuracy": numbers(array_in(finding, measure, "f", count)),
        "low": numbers(array_in(finding, "class_low", "f", count)),
        "high": numbers(array_in(finding, "class_high", "f", count)),
        "inputs": numbers(array_in(finding, "class_inputs", "iu", count)),
    }
    return [
        {"name": str(name), **{key: values[row] for key, values in columns.items()}, "filter": _is(target, str(name))}
        for row, name in enumerate(np.asarray(names))
    ]


def _confusions(run: RunReader, table: SampleTable | None) -> list[dict[str, Any]]:
    finding = run.finding(FINDING)
    if "confusion_target" not in finding.arrays:
        return []
    names = [array_in(finding, f"confusion_{part}", "U", (None,)) for part in ("target", "prediction")]
    counts = numbers(array_in(finding, "confusion_inputs", "iu", (len(names[0]),)))
    columns = [_column(table, part) for part in ("target", "prediction")]
    rows = zip(*(np.asarray(part).tolist() for part in names), counts, strict=True)
    return [
        {
            "target": target,
            "prediction": prediction,
            "inputs": count,
            "filter": [*_is(columns[0], target), *_is(columns[1], prediction)],
        }
        for target, prediction, count in list(rows)[:MOST_CONFUSIONS]
    ]


def _is(column: SampleColumn | None, value: str) -> list[str]:
    return [] if column is None else [f"{column.name}:is:{value}"]
