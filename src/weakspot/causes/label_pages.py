"""Labelling, step 5 of HUDD: images to label, their pictures, the model's prediction on request, CSV in and out.

A label that was confirmed is on disk (`causes.journal`); the Finding `causes.labels` follows when the viewer ends.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, FastAPI, Path, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from weakspot.causes.labelling import (
    PLAN,
    UNSAFE,
    LabelFormat,
    LabelsDiffer,
    RunLabels,
    keep_labels,
    labels_csv,
    labels_in,
)
from weakspot.core.errors import DataError, RunError, WeakspotError
from weakspot.core.finding import Finding
from weakspot.data.names import shown
from weakspot.viewer.finding_access import rows_in
from weakspot.viewer.library import Chosen, Library
from weakspot.viewer.pictures import Version, is_pictures, quick_png
from weakspot.viewer.reading import NotThereError, RunReader
from weakspot.viewer.responses import NO_STORE, CsvFile, Png, as_json, finite, picture

CAUSES = "causes.root_causes"
_COLUMNS = {"id": str, "cluster": int, "distance": float, "prediction": str}
_OF_PLAN = {name: _COLUMNS[name] for name in ("id", "prediction")}


@asynccontextmanager
async def _keeping(app: FastAPI) -> AsyncIterator[None]:
    """When the viewer ends, the Finding of labels is made what was given."""
    yield
    library: Library = app.state.library
    for reader in library.readers:
        try:
            if UNSAFE in reader.names():
                keep_labels(reader.run)
        except WeakspotError as error:  # nothing is lost: the next one to keep labels will have them
            print(f"weakspot: {error}", file=sys.stderr)


router = APIRouter(prefix="/api/label", lifespan=_keeping)
Number = Annotated[int, Path(ge=0, description="Which of the images to label, from 0 on.")]
Texts = Annotated[dict[str, Annotated[str, Field(max_length=10_000)] | None], Field(max_length=100_000)]


Of = Annotated[str, Query(max_length=200, description="The Finding that names the images; by default the first.")]


class LabelChange(BaseModel):
    """Labels by the images' ids, null to remove one; `before`: those that the page shows, if it is to be checked."""

    labels: Texts
    before: Texts | None = None


@dataclass(frozen=True)
class Wanted:
    """The images that are to be labelled, as the Finding of the unsafe set, or a plan of few labels, has them."""

    unsafe: Finding
    label_format: LabelFormat
    columns: dict[str, list[Any]]
    pictures: np.ndarray | None

    @classmethod
    def of(cls, unsafe: Finding) -> "Wanted":
        """From the Finding of `UnsafeSet` or `LabelPlan`, which knows no clusters; a damaged one is refused."""
        try:
            label_format = LabelFormat.of_finding(unsafe)
        except (TypeError, ValueError) as error:
            raise RunError(f"{unsafe.name} is damaged: {error}; choose the images again") from error
        kinds = _OF_PLAN if _is_plan(unsafe.name) else _COLUMNS
        rows, pictures = rows_in(unsafe, *kinds), unsafe.arrays.get("thumbnails")
        odd = [name for name, kind in kinds.items() if not all(isinstance(row[name], kind) for row in rows)]
        if odd:
            raise RunError(
                f"{unsafe.name} is damaged: its column {odd[0]} holds something else; choose the images again"
            )
        columns: dict[str, list[Any]] = {"cluster": [0] * len(rows), "distance": [np.nan] * len(rows)}
        columns |= {name: [row[name] for row in rows] for name in kinds}
        if pictures is not None and not (is_pictures(pictures) and len(pictures) == len(rows)):
            raise RunError(f"{unsafe.name} is damaged: its pictures do not fit its table; choose the images again")
        return cls(unsafe, label_format, columns, pictures)

    @property
    def version(self) -> str:
        """Changes with the Finding."""
        return self.unsafe.digest[:8]

    def index(self, number: int) -> int:
        """The number of an image, if there is one."""
        if number >= len(self.columns["id"]):
            raise NotThereError(f"there is no image {number}: expected 0 to {len(self.columns['id']) - 1}")
        return number

    def checked(self, labels: dict[str, str | None]) -> dict[str, str | None]:
        """Labels in the form that is kept; one that is none, or of an image that is not here, is refused."""
        ids = set(self.columns["id"])
        return {name: self._label(name, label, ids) for name, label in labels.items()}

    def _label(self, name: str, label: str | None, ids: set[str]) -> str | None:
        if name not in ids:
            raise NotThereError(f"{shown(name)[:80]!r} is not an image to label: reload the page")
        if label is None or not label.strip():
            return None
        try:
            return self.label_format.read(label.strip())
        except ValueError as error:
            raise DataError(str(error)) from error


def _is_plan(name: str) -> bool:
    return name.partition("-")[0] == PLAN  # a plan of another split than the usual one says so in its name


def lists(run: RunReader) -> list[str]:
    """The Findings that name images to label: the unsafe set, then plans of few labels."""
    return [name for name in run.names() if name == UNSAFE] + [name for name in run.names() if _is_plan(name)]


def wanted(run: RunReader, of: str = "") -> Wanted:
    """What a Run wants to have labelled: the list that is named, or the first."""
    there = lists(run)
    if of and of not in there:
        raise NotThereError(f"{shown(of)[:80]!r} names no images to label: there is {', '.join(there) or 'nothing'}")
    name = of or next(iter(there), UNSAFE)
    return run.kept(("labels wanted", name), lambda: Wanted.of(run.finding(name)))


def labels_of(run: RunReader) -> RunLabels:
    """The labels of a Run."""
    return run.kept("labels given", lambda: RunLabels(run.run))


@router.get("", summary="The images to label, with the labels that they have; not what the model thinks of them.")
def images(run: Chosen, of: Of = "") -> Response:
    """Columns `id, cluster, distance, label` of the images, and what a label may be."""
    unsafe_set, labels = wanted(run, of), labels_of(run).by_id()
    plan = _is_plan(unsafe_set.unsafe.name)
    ids = unsafe_set.columns["id"]
    return as_json(
        {
            "task": unsafe_set.label_format.task,
            "classes": list(unsafe_set.label_format.classes),
            "outputs": unsafe_set.label_format.outputs,
            "pictures": unsafe_set.pictures is not None,
            "version": unsafe_set.version,
            "causes": CAUSES in run.names() and not plan,
            "plan": plan,
            "lists": lists(run),
            "images": {
                "id": ids,
                "cluster": unsafe_set.columns["cluster"],
                "distance": list(map(finite, unsafe_set.columns["distance"])),
                "label": [labels.get(name) for name in ids],
            },
        }
    )


@router.get("/prediction/{number}", summary="What the model predicts for an image.")
def prediction(run: Chosen, number: Number, of: Of = "") -> Response:
    """One image at a time, so that only those who ask for it see it."""
    unsafe_set = wanted(run, of)
    return as_json({"prediction": unsafe_set.columns["prediction"][unsafe_set.index(number)]})


@router.get("/picture/{number}", response_class=Png, summary="An image to label, as PNG.")
def small_picture(run: Chosen, number: Number, v: Version = "", of: Of = "") -> Response:
    """An image as small as the Finding keeps it."""
    unsafe_set = wanted(run, of)
    if unsafe_set.pictures is None:
        raise NotThereError("the images were chosen without pictures: choose them again with thumbnail above 0")
    return picture(
        quick_png(np.asarray(unsafe_set.pictures[unsafe_set.index(number)])), versioned=v == unsafe_set.version
    )


@router.put("", summary="Set or remove labels.")
def give(run: Chosen, body: LabelChange, of: Of = "") -> Response:
    """The labels afterwards and before; nothing is set where `before` differs from them."""
    unsafe_set = wanted(run, of)
    labels = unsafe_set.checked(body.labels)
    expected = None if body.before is None else unsafe_set.checked(body.before)
    try:
        before = labels_of(run).change(labels, expected=expected)
    except LabelsDiffer as error:
        return as_json({"error": str(error), "labels": error.labels}, 409)
    return as_json({"labels": labels, "before": before})


@router.post("/import", summary="Read labels from a CSV file with the columns id and label.")
def read_file(
    run: Chosen, content: Annotated[bytes, Body(media_type="text/csv")], name: str = "labels.csv", of: Of = ""
) -> Response:
    """As `weakspot causes label --import`: nothing is set where anything in the file is wrong."""
    labels = labels_in(wanted(run, of).unsafe, content, shown(name)[:80])
    return as_json({"labels": labels, "before": labels_of(run).change(dict(labels)) if labels else {}})


@router.get("/export.csv", response_class=CsvFile, summary="The images with their labels as a CSV file.")
def written_file(run: Chosen, of: Of = "") -> Response:
    """As `weakspot causes label --export`."""
    text = labels_csv(wanted(run, of).unsafe, labels_of(run).by_id())
    headers = {"Content-Disposition": 'attachment; filename="labels.csv"', **NO_STORE}
    return Response(text, headers=headers, media_type="text/csv; charset=utf-8")
