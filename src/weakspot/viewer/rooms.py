"""What the other rooms found: confused pairs, weak inputs, the feature map, coverage holes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response

from weakspot.core.finding import Finding
from weakspot.viewer.answers import as_json, numbers
from weakspot.viewer.columns import Column
from weakspot.viewer.library import Chosen
from weakspot.viewer.media import media_of
from weakspot.viewer.pictures import pictures_of
from weakspot.viewer.reading import NotThereError, RunReader
from weakspot.viewer.sample_table import SampleTable, sample_table
from weakspot.viewer.samples import described
from weakspot.viewer.splits import sampled_splits, split_names
from weakspot.viewer.taking import array_in, plain_rows, real, rows_in

router = APIRouter(prefix="/api")
PAIRS = ("classes.class_pairs", "classes.output_pairs")
"""By neurons and outputs, or by outputs alone; the first that is there is shown."""
STRIPS = "robustness.weak_strips"
NEIGHBOURS = "robustness.neighbour_accuracy"
PLACES = "robustness.weak_places"
HOLES = "coverage.importance_driven_coverage"
_COLOURS = ("weak", "accuracy", "wrong", "cluster", "target", "predicted")
"""Columns by which a map is coloured first."""


def split_of(run: RunReader, finding: Finding) -> str | None:
    """The split with samples that a Finding is about."""
    own = split_names(run.manifest(), finding)
    return next((name for name in sampled_splits(run) if name in own), None)


def column_called(table: SampleTable, *names: str) -> Column | None:
    """The first column of one of these names, whichever Finding it is of."""
    for name in names:
        for column in table.columns.values():
            if column.bare == name:
                return column
    return None


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
    told = {"about": finding.about, "finding": finding.name, "split": split, "several_labels": several}
    return as_json({**told, "pairs": rows})


def _mixed_up(row: Mapping[str, Any]) -> tuple[float, bool, float]:
    """How much a pair matters: errors that were seen, then that it is reported, then that it lies near or leans."""
    seen = [real(row.get(name)) or 0.0 for name in ("first_taken_for_second", "second_taken_for_first")]
    near = -(real(row.get("distance")) or 0.0) if "distance" in row else real(row.get("leaning")) or 0.0
    return max(seen), bool(row.get("confused")), near


def _direction(table: SampleTable | None, operator: str, target: str, predicted: str) -> list[str] | None:
    """The filters that leave the images of one class that are taken for another; None where neither is known."""
    columns = [] if table is None else [column_called(table, "target"), column_called(table, "predicted", "answer")]
    known = [column for column in columns if column is not None]
    if len(known) < 2:
        return None
    return [f"{column.name}:{operator}:{value}" for column, value in zip(known, (target, predicted), strict=True)]


@router.get("/weak")
def weak(run: Chosen) -> Response:
    """The weakest inputs beside their neighbours, and how to list all weak inputs."""
    there = [name for name in (STRIPS, NEIGHBOURS) if name in run.names()]
    if not there:
        raise NotThereError("the Run has no weak inputs: examine with the question robustness")
    split = split_of(run, run.head(there[0]))
    table = None if split is None else sample_table(run, split)
    found = {"about": run.head(there[-1]).about, "finding": STRIPS, "split": split}
    return as_json({**found, "strips": _strips(run, table), **_weak_query(table)})


def _strips(run: RunReader, table: SampleTable | None) -> list[dict[str, Any]]:
    if STRIPS not in run.names():
        return []
    finding = run.finding(STRIPS)
    rows, media = plain_rows(rows_in(finding, "id")), media_of(finding)
    places = [-1] * len(rows) if table is None else table.places([str(row["id"]) for row in rows]).tolist()
    return [
        {**row, "position": None if place < 0 else place, "picture": media.get(str(row["id"]))}
        for row, place in zip(rows, places, strict=True)
    ]


def _weak_query(table: SampleTable | None) -> dict[str, Any]:
    """The filters and the order that list the weak inputs."""
    flags = {} if table is None else {name: column_called(table, name) for name in ("weak", "wrong", "accuracy")}
    weak, wrong, accuracy = (flags.get(name) for name in ("weak", "wrong", "accuracy"))
    filters = [] if weak is None else [f"{weak.name}:is:yes"]
    lucky = None if weak is None or wrong is None else [*filters, f"{wrong.name}:is:no"]
    return {"filters": filters, "lucky": lucky, "sort": "" if accuracy is None else accuracy.name}


@router.get("/map")
def feature_map(run: Chosen) -> Response:
    """Which columns place the inputs on the map and which can colour it; the numbers come by /api/samples/column."""
    finding = run.finding(PLACES)
    split = split_of(run, finding)
    table = None if split is None else sample_table(run, split)
    x, y = (None if table is None else column_called(table, name) for name in ("x", "y"))
    if table is None or x is None or y is None:
        raise NotThereError(f"{PLACES} has no places of inputs: examine with robustness: {{understand: true}}")
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


@router.get("/holes")
def holes(run: Chosen) -> Response:
    """Combinations that training inputs reach and no test input does, with the training inputs that show them."""
    finding = run.finding(HOLES)
    media = media_of(finding)
    found: dict[str, Any] = {"about": finding.about, "finding": HOLES, "split": None, "pictures": None, "holes": []}
    if "hole_combination" not in finding.arrays:
        return as_json(found)
    combinations = array_in(finding, "hole_combination", "iu", (None, None))
    count = len(combinations)
    nearest = array_in(finding, "hole_nearest_id", "U", (count, None))
    far = array_in(finding, "hole_nearest_distance", "f", nearest.shape)
    seen = array_in(finding, "hole_training_inputs", "iu", (count,))
    groups = array_in(finding, "hole_group", "iu", (count,))
    split, places = _where(run, nearest)
    listed = [
        {
            "number": number + 1,
            "combination": combinations[number].tolist(),
            "group": int(groups[number]),
            "training_inputs": int(seen[number]),
            "nearest": _nearest(nearest[number], far[number], places[number]),
            "picture": media.get(f"hole {number + 1}"),
        }
        for number in range(count)
    ]
    pictures = None if split is None else pictures_of(run, split).described()
    return as_json({**found, "split": split, "pictures": pictures, "holes": listed})


def _nearest(ids: np.ndarray, far: np.ndarray, places: np.ndarray) -> list[dict[str, Any]]:
    together = zip(ids.tolist(), numbers(far), places.tolist(), strict=True)
    return [
        {"id": name, "distance": distance, "position": None if place < 0 else place}
        for name, distance, place in together
        if name
    ]


def _where(run: RunReader, ids: np.ndarray) -> tuple[str | None, np.ndarray]:
    """The split that holds these inputs, and their positions in it."""
    best: str | None = None
    places = np.full(ids.shape, -1)
    for split in sampled_splits(run):
        found = sample_table(run, split).places(ids.ravel()).reshape(ids.shape)
        if (found >= 0).sum() > (places >= 0).sum():
            best, places = split, found
    return best, places
