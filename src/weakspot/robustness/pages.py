"""Weak inputs beside their variations, and inputs by their features, for the viewer."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from weakspot.viewer.columns import SampleColumn
from weakspot.viewer.finding_access import plain_rows, rows_in
from weakspot.viewer.library import Chosen
from weakspot.viewer.media import media_of
from weakspot.viewer.pictures import pictures_of
from weakspot.viewer.reading import NotThereError, RunReader
from weakspot.viewer.responses import as_json
from weakspot.viewer.sample_table import SampleTable, column_called, sample_table
from weakspot.viewer.samples import described
from weakspot.viewer.splits import split_of

router = APIRouter(prefix="/api")
STRIPS = "robustness.weak_strips"
NEIGHBOURS = ("robustness.neighbour_accuracy", "robustness.neighbour_tolerance")
DIVERSITY = "robustness.neighbour_diversity"
PLACES = "robustness.weak_places"
_COLOURS = ("weak", "neighbour_accuracy", "correct", "cluster", "target", "prediction")
"""Columns by which a map is coloured first."""


@router.get("/weak")
def weak(run: Chosen) -> Response:
    """The weakest inputs beside their neighbours, and how to list all weak inputs, and those that may be."""
    rankings = _rankings(run)
    present = [name for name in (STRIPS, *NEIGHBOURS) if name in run.names()] or rankings
    if not present:
        raise NotThereError("the Run has no weak inputs: examine with the question robustness")
    about, split = run.head(present[-1]).about, split_of(run, run.head(present[0]))
    table = None if split is None else sample_table(run, split)
    answer = {"about": about, "finding": STRIPS, "split": split, "strips": _strips(run, table)}
    differing = [told for name in rankings if (told := _differing(run, name)) is not None]
    return as_json({**answer, **_weak_query(table, present[-1]), "differing": differing})


def _rankings(run: RunReader) -> list[str]:
    """The Findings that rank inputs without labels, one for each split."""
    return [name for name in run.names() if name.partition("-")[0] == DIVERSITY]


def _differing(run: RunReader, finding: str) -> dict[str, Any] | None:
    """The filter, order and columns that list the inputs of a split whose looks are predicted differently."""
    split = split_of(run, run.head(finding))
    table = None if split is None else sample_table(run, split)
    names = ("unanimous", "concentration", "entropy")
    unanimous, concentration, entropy = (None if table is None else _column(table, n, finding) for n in names)
    if unanimous is None or concentration is None or entropy is None:
        return None
    filters = [f"{unanimous.name}:is:no"]
    return {"split": split, "filters": filters, "sort": concentration.name, "beside": [entropy.name]}


def _strips(run: RunReader, table: SampleTable | None) -> list[dict[str, Any]]:
    if STRIPS not in run.names():
        return []
    finding = run.finding(STRIPS)
    rows, media = plain_rows(rows_in(finding, "id")), media_of(finding)
    positions = [-1] * len(rows) if table is None else table.places([str(row["id"]) for row in rows]).tolist()
    return [
        {**row, "position": None if position < 0 else position, "picture": media.get(str(row["id"]))}
        for row, position in zip(rows, positions, strict=True)
    ]


def _weak_query(table: SampleTable | None, finding: str) -> dict[str, Any]:
    """The filters and the order that list the weak inputs, and of these the fragile ones."""
    names = ("weak", "correct", "neighbour_accuracy")
    weak, correct, accuracy = (None if table is None else _column(table, name, finding) for name in names)
    filters = [] if weak is None else [f"{weak.name}:is:yes"]
    fragile = None if weak is None or correct is None else [*filters, f"{correct.name}:is:yes"]
    return {"filters": filters, "fragile": fragile, "sort": "" if accuracy is None else accuracy.name}


def _column(table: SampleTable, name: str, finding: str) -> SampleColumn | None:
    """The column of a Finding; where another Finding has the same values under that name, the one that is kept."""
    return table.columns.get(f"{finding}.{name}") or column_called(table, name)


@router.get("/map")
def feature_map(run: Chosen) -> Response:
    """The columns that are coordinates on the map, and those that can colour it; /api/samples/column has the values."""
    finding = run.finding(PLACES)
    split = split_of(run, finding)
    table = None if split is None else sample_table(run, split)
    x, y = (None if table is None else column_called(table, name) for name in ("x", "y"))
    if table is None or x is None or y is None:
        raise NotThereError(f"{PLACES} has no coordinates of inputs: examine with robustness: {{analysis: true}}")
    colours = [column for column in table.columns.values() if column not in (x, y)]
    colours.sort(key=lambda column: _COLOURS.index(column.bare) if column.bare in _COLOURS else len(_COLOURS))
    media = list(media_of(finding).values())
    return as_json(
        {
            "about": finding.about,
            "finding": PLACES,
            "split": split,
            "total": len(table),
            "x": x.name,
            "y": y.name,
            "picture": media[0] if media else None,
            "pictures": pictures_of(run, str(split)).described(),
            "columns": [described(column) for column in colours],
        }
    )
