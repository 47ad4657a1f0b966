"""Confused pairs of classes, for the viewer."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from weakspot.viewer.finding_access import plain_rows, real, rows_in
from weakspot.viewer.library import Chosen
from weakspot.viewer.media import media_of
from weakspot.viewer.responses import as_json
from weakspot.viewer.sample_table import SampleTable, column_called, sample_table
from weakspot.viewer.splits import split_of

router = APIRouter(prefix="/api")
PAIRS = ("classes.class_pairs", "classes.output_pairs")
"""By neurons and outputs, or by outputs alone; the first that is there is shown."""


@router.get("/pairs")
def pairs(run: Chosen) -> Response:
    """Pairs of classes, those that are truly mixed up most first, each with the filters that show its images."""
    finding = run.finding(next((name for name in PAIRS if name in run.names()), PAIRS[0]))
    split, media = split_of(run, finding), media_of(finding)
    table = None if split is None else sample_table(run, split)
    rows = sorted(plain_rows(rows_in(finding, "first", "second")), key=_mixed_up, reverse=True)
    several = run.manifest()["subject"].get("task") == "multilabel"
    operator = "has" if several else "is"
    for row in rows:
        first, second = str(row["first"]), str(row["second"])
        row["filters"] = {
            "first_as_second": _direction(table, operator, first, second),
            "second_as_first": _direction(table, operator, second, first),
        }
        row["pictures"] = [media[key] for key in (f"{first} like {second}", f"{second} like {first}") if key in media]
    head = {"about": finding.about, "finding": finding.name, "split": split, "several_labels": several}
    return as_json({**head, "pairs": rows})


def _mixed_up(row: Mapping[str, Any]) -> tuple[float, bool, float]:
    """How much a pair matters: true errors, then that it is reported, then its distance or soft confusion."""
    seen = [real(row.get(name)) or 0.0 for name in ("first_taken_for_second", "second_taken_for_first")]
    near = -(real(row.get("distance")) or 0.0) if "distance" in row else real(row.get("soft_confusion")) or 0.0
    return max(seen), bool(row.get("confused")), near


def _direction(table: SampleTable | None, operator: str, target: str, predicted: str) -> list[str] | None:
    """The filters that leave the images of one class that are taken for another; None where neither is known."""
    columns = [] if table is None else [column_called(table, "target"), column_called(table, "prediction")]
    both = [column for column in columns if column is not None]
    if len(both) < 2:
        return None
    return [f"{column.name}:{operator}:{value}" for column, value in zip(both, (target, predicted), strict=True)]
