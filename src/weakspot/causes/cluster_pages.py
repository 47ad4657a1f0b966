"""Root-cause clusters: their members, contact sheets with and without heat maps, and an animation."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter
from fastapi import Path as Part
from fastapi import Query as Parameter
from fastapi.responses import Response
from PIL import Image

from weakspot.core.errors import RunError
from weakspot.core.finding import Finding
from weakspot.data.images import animation
from weakspot.heat_pictures import overlay
from weakspot.viewer.columns import Places
from weakspot.viewer.finding_access import array_in, plain_rows, rows_in, whole
from weakspot.viewer.library import Chosen
from weakspot.viewer.pictures import SHEET_COLUMNS, SHEET_MOST, Pixels, Version, is_pictures, quick_png, sheet
from weakspot.viewer.reading import NotThereError, RunReader
from weakspot.viewer.responses import Gif, Png, as_json, numbers, picture
from weakspot.viewer.sample_table import sample_table
from weakspot.viewer.splits import sampled_splits, split_names

router = APIRouter(prefix="/api/clusters")
FINDING = "causes.root_causes"
ALONE = 0
"""The number of the images that are in no cluster."""
MOST_FRAMES = 200
MOST_MEMBERS = 2000

Number = Annotated[int, Part(ge=0, le=10**6, description="The cluster, from 1 on; 0 for images in none.")]
Heat = Annotated[bool, Parameter(description="With the heat map laid over each picture.")]
Offset = Annotated[int, Parameter(ge=0, le=10**9)]


@dataclass(frozen=True)
class Causes:
    """The clusters of a Finding: everything per error-inducing image, in the order of `ids`."""

    finding: Finding
    ids: np.ndarray
    kinds: np.ndarray
    cluster: np.ndarray
    distance: np.ndarray
    thumbnails: np.ndarray | None
    heat: np.ndarray | None
    medoids: dict[int, str]

    @property
    def version(self) -> str:
        """Changes with the Finding."""
        return self.finding.digest[:8]

    def members(self, number: int) -> Places:
        """The images of a cluster, the medoid first, then by their distance from it."""
        places = np.flatnonzero(self.cluster == number)
        if not len(places) and number not in self.medoids and number != ALONE:
            raise NotThereError(f"there is no cluster {number}: expected 1 to {max(self.medoids, default=0)}")
        first = self.ids[places] != self.medoids.get(number, "")
        return places[np.lexsort((places, self.distance[places], first))]

    def pixels(self, index: int, *, heat: bool) -> Pixels | None:
        """The picture of an image, with its heat map over it where that is asked for and known."""
        if self.thumbnails is None:
            return None
        shown = np.asarray(self.thumbnails[index])
        return with_heat(shown, np.asarray(self.heat[index])) if heat and self.heat is not None else shown


def causes_of(run: RunReader) -> Causes:
    """The clusters of a Run, checked once."""
    return run.kept("causes", lambda: _checked(run.finding(FINDING)))


def _checked(finding: Finding) -> Causes:
    rows = rows_in(finding, "cluster", "medoid") if finding.table is not None else []
    if "image_id" not in finding.arrays:
        none = np.empty(0, dtype=np.int64)
        return Causes(finding, none.astype(str), none.astype(str), none, none.astype(float), None, None, {})
    ids = array_in(finding, "image_id", "U", (None,))
    count = len(ids)
    pictures, heat = finding.arrays.get("thumbnails"), finding.arrays.get("heat_pictures")
    if pictures is not None and not (is_pictures(pictures) and len(pictures) == count):
        raise RunError(f"{finding.name} is damaged: its small pictures are none; examine again")
    if heat is not None:
        heat = array_in(finding, "heat_pictures", "f", (count, None, None))
    return Causes(
        finding=finding,
        ids=np.asarray(ids),
        kinds=np.asarray(array_in(finding, "image_kind", "U", (count,))),
        cluster=np.asarray(array_in(finding, "image_cluster", "iu", (count,))),
        distance=np.asarray(array_in(finding, "image_distance", "f", (count,))),
        thumbnails=pictures,
        heat=heat,
        medoids={whole(row["cluster"]): str(row["medoid"]) for row in rows},
    )


def with_heat(pixels: Pixels, heat: np.ndarray) -> Pixels:
    """The heat map over the picture in grey, at the picture's size."""
    size = pixels.shape[1], pixels.shape[0]
    finite = np.nan_to_num(heat.astype(np.float32), posinf=0, neginf=0)
    wide = np.asarray(Image.fromarray(finite).resize(size, Image.Resampling.BILINEAR))
    return overlay(pixels.transpose(2, 0, 1), wide)


@router.get("")
def clusters(run: Chosen) -> Response:
    """Every cluster with what its images share."""
    causes = causes_of(run)
    shape = (0, 0) if causes.thumbnails is None else causes.thumbnails.shape[1:3]
    return as_json(
        {
            "about": causes.finding.about,
            "split": _split(run, causes),
            "images": len(causes.ids),
            "alone": int((causes.cluster == ALONE).sum()),
            "heat": causes.heat is not None,
            "pictures": {"version": causes.version, "height": shape[0], "width": shape[1]}
            | {"columns": SHEET_COLUMNS, "most": SHEET_MOST},
            "clusters": plain_rows(rows_in(causes.finding, "cluster")),
        }
    )


def _split(run: RunReader, causes: Causes) -> str | None:
    splits = [name for name in split_names(run.manifest(), causes.finding) if name in sampled_splits(run)]
    return splits[0] if splits else None


@router.get("/picture/{index}", response_class=Png)
def one_picture(
    run: Chosen, index: Annotated[int, Part(ge=0, le=10**9)], heat: Heat = False, v: Version = ""
) -> Response:
    """The picture of one error-inducing image."""
    causes = causes_of(run)
    if index >= len(causes.ids):
        raise NotThereError(f"there is no error-inducing image {index}: there are {len(causes.ids)}")
    pixels = causes.pixels(index, heat=heat)
    if pixels is None:
        raise NotThereError("the Run has no pictures of its errors: examine causes with thumbnail: 64")
    return picture(quick_png(pixels), versioned=bool(v) and v == causes.version)


@router.get("/{number}")
def members(
    run: Chosen,
    number: Number,
    offset: Offset = 0,
    limit: Annotated[int, Parameter(ge=0, le=MOST_MEMBERS)] = MOST_MEMBERS,
) -> Response:
    """The members of a cluster, the medoid first."""
    causes = causes_of(run)
    places = causes.members(number)
    shown = places[offset : offset + limit]
    split = _split(run, causes)
    positions = np.full(len(shown), -1) if split is None else sample_table(run, split).places(causes.ids[shown])
    entries: list[dict[str, Any]] = [
        {"place": index, "id": name, "position": position, "kind": kind, "distance": far}
        for index, name, position, kind, far in zip(
            shown.tolist(),
            causes.ids[shown].tolist(),
            [None if position < 0 else position for position in positions.tolist()],
            causes.kinds[shown].tolist(),
            numbers(causes.distance[shown].astype(np.float64)),
            strict=True,
        )
    ]
    total = {"number": number, "split": split, "images": len(places), "offset": offset}
    return as_json({**total, "picture": causes.thumbnails is not None, "members": entries})


@router.get("/{number}/sheet", response_class=Png)
def contact_sheet(run: Chosen, number: Number, heat: Heat = False, offset: Offset = 0, v: Version = "") -> Response:
    """Up to 256 members from `offset` on as one PNG, 16 to a row, in the order of the members."""
    causes = causes_of(run)
    places = causes.members(number)[offset : offset + SHEET_MOST]
    drawn = [causes.pixels(index, heat=heat) for index in places.tolist()]
    if causes.thumbnails is None or not drawn:
        raise NotThereError("there are no pictures to show here")
    height, width = causes.thumbnails.shape[1:3]
    return picture(quick_png(sheet(drawn, height, width)), versioned=bool(v) and v == causes.version)


@router.get("/{number}/animation", response_class=Gif)
def one_after_another(run: Chosen, number: Number, heat: Heat = False, v: Version = "") -> Response:
    """The members one after another as an animated GIF, the first 200 of them."""
    causes = causes_of(run)
    places = causes.members(number)[:MOST_FRAMES].tolist()
    if causes.thumbnails is None or not places:
        raise NotThereError("there are no pictures to show here")
    frames = (shown for index in places if (shown := causes.pixels(index, heat=heat)) is not None)
    return picture(animation(frames), kind="gif", versioned=bool(v) and v == causes.version)


@router.get("/{number}/mean", response_class=Png)
def mean_heat_map(run: Chosen, number: Number, v: Version = "") -> Response:
    """The mean heat map of a cluster over its mean image."""
    causes = causes_of(run)
    places = causes.members(number)
    if causes.thumbnails is None or causes.heat is None or not len(places):
        raise NotThereError("the Run keeps no heat maps to show here")
    mean = np.asarray(causes.thumbnails[places]).mean(0).round().astype(np.uint8)
    heat = np.asarray(causes.heat[places]).mean(0, dtype=np.float64)
    return picture(quick_png(with_heat(mean, heat)), versioned=bool(v) and v == causes.version)
