"""Small pictures of samples: from the Run alone, where the examination kept them."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter
from fastapi import Path as Part
from fastapi import Query as Parameter
from fastapi.responses import Response
from numpy.typing import NDArray
from PIL import Image

from weakspot.core.errors import ConfigError, RunError
from weakspot.core.finding import Finding
from weakspot.viewer.columns import Places
from weakspot.viewer.library import Chosen
from weakspot.viewer.reading import NotThereError, RunReader
from weakspot.viewer.responses import Png, picture
from weakspot.viewer.sample_table import SampleTable, ids_in, sample_table
from weakspot.viewer.splits import chosen_split, findings_of

router = APIRouter(prefix="/api")
Pixels = NDArray[np.uint8]
SHEET_COLUMNS = 16
SHEET_MOST = 256
MOST_SIDE = 4096
_NONE = 0xEE
"""The grey of a cell without a picture."""


@dataclass(frozen=True)
class Kept:
    """Pictures that one Finding keeps: `rows` says where each sample's is, -1 for none."""

    pixels: NDArray[np.uint8]
    rows: Places


@dataclass(frozen=True)
class SplitPictures:
    """The pictures of a split's samples, from the first of some Findings that has one."""

    kept: tuple[Kept, ...]
    version: str

    @property
    def height(self) -> int:
        """Of a cell on a sheet: that of the largest picture."""
        return max((one.pixels.shape[1] for one in self.kept), default=0)

    @property
    def width(self) -> int:
        """Of a cell on a sheet: that of the largest picture."""
        return max((one.pixels.shape[2] for one in self.kept), default=0)

    def described(self) -> dict[str, Any]:
        """What a browser must know to cut a sheet into pictures."""
        size = {"width": self.width, "height": self.height}
        return {"version": self.version, **size, "columns": SHEET_COLUMNS, "most": SHEET_MOST}

    def has(self, places: Places) -> NDArray[np.bool_]:
        """Whether there is a picture of each of these samples."""
        pictured = np.zeros(len(places), dtype=bool)
        for one in self.kept:
            pictured |= one.rows[places] >= 0
        return pictured

    def of(self, position: int) -> Pixels | None:
        """The picture of a sample."""
        for one in self.kept:
            row = int(one.rows[position])
            if row >= 0:
                return np.asarray(one.pixels[row])
        return None


def pictures_of(run: RunReader, split: str) -> SplitPictures:
    """The pictures of a split's samples, the largest of each."""
    return run.kept(("pictures", split), lambda: _gathered(run, split))


def _gathered(run: RunReader, split: str) -> SplitPictures:
    table = sample_table(run, split)
    sources = sorted(_sources(run, split, table), key=lambda one: -one[1].pixels.shape[1])
    version = "".join(digest[:8] for digest, _ in sources)
    return SplitPictures(tuple(kept for _, kept in sources), version)


def _sources(run: RunReader, split: str, table: SampleTable) -> Iterator[tuple[str, Kept]]:
    for name in findings_of(run, split):
        try:
            finding = run.finding(name)
        except RunError:
            continue
        held = _pixels_in(finding)
        if held is not None:
            pixels, ids = held
            rows = np.full(len(table), -1, dtype=np.int64)
            places = table.places(ids)
            rows[places[places >= 0]] = np.flatnonzero(places >= 0)
            yield finding.digest, Kept(pixels, rows)


def _pixels_in(finding: Finding) -> tuple[Pixels, Sequence[str]] | None:
    """The pictures in a Finding with the samples they show; None where there are none, or they are no pictures."""
    pixels = next((finding.arrays[name] for name in ("pixels", "thumbnails") if name in finding.arrays), None)
    if pixels is None or not is_pictures(pixels):
        return None
    named = ids_in(finding)
    if named is not None and len(named) == len(pixels):
        return pixels, named.to_pylist()
    ids = finding.arrays.get("image_id")
    fits = ids is not None and ids.dtype.kind == "U" and ids.shape == pixels.shape[:1]
    return (pixels, ids.tolist()) if ids is not None and fits else None


def is_pictures(array: np.ndarray) -> bool:
    """Whether an array holds pictures, (pictures, height, width, 3) in bytes."""
    return bool(
        array.ndim == 4 and array.dtype == np.uint8 and array.shape[3] == 3 and min(array.shape[1:3]) > 0
        and max(array.shape[1:3]) <= MOST_SIDE
    )  # fmt: skip


def quick_png(pixels: Pixels) -> bytes:
    """As PNG, packed quickly rather than tightly: it goes no further than this machine."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()


def sheet(pictures: Sequence[Pixels | None], height: int, width: int, columns: int = SHEET_COLUMNS) -> Pixels:
    """Pictures in cells of one size without gaps, row by row; smaller ones are enlarged by whole pixels and centred."""
    across = max(1, min(columns, len(pictures)))
    down = max(1, -(-len(pictures) // across))
    drawn = np.full((down * height, across * width, 3), _NONE, dtype=np.uint8)
    for number, pixels in enumerate(pictures):
        if pixels is not None:
            top, left = number // across * height, number % across * width
            _put(drawn[top : top + height, left : left + width], pixels)
    return drawn


def _put(cell: Pixels, pixels: Pixels) -> None:
    times = max(1, min(cell.shape[0] // pixels.shape[0], cell.shape[1] // pixels.shape[1]))
    shown = pixels.repeat(times, 0).repeat(times, 1)[: cell.shape[0], : cell.shape[1]]
    top, left = (cell.shape[0] - shown.shape[0]) // 2, (cell.shape[1] - shown.shape[1]) // 2
    cell[top : top + shown.shape[0], left : left + shown.shape[1]] = shown


Version = Annotated[str, Parameter(max_length=200, description="The version that /api/samples names; keeps it cached.")]
SplitName = Annotated[str, Part(max_length=200)]


@router.get("/picture/{split}/{position}", response_class=Png)
def one_picture(
    run: Chosen, split: SplitName, position: Annotated[int, Part(ge=0, le=10**9)], v: Version = ""
) -> Response:
    """The small picture of a sample as PNG."""
    table, kept = sample_table(run, chosen_split(run, split)), pictures_of(run, split)
    if position >= len(table):
        raise NotThereError(f"there is no sample at position {position}: the split has {len(table)}")
    pixels = kept.of(position)
    if pixels is None:
        raise NotThereError("the Run has no picture of this sample: add pictures to ask in weakspot.yaml")
    return picture(quick_png(pixels), versioned=bool(v) and v == kept.version)


@router.get("/sheet/{split}", response_class=Png)
def many_pictures(
    run: Chosen, split: SplitName, positions: Annotated[str, Parameter(max_length=4000)], v: Version = ""
) -> Response:
    """Small pictures of up to 256 samples as one PNG, 16 to a row in cells of one size; grey where there is none."""
    table, kept = sample_table(run, chosen_split(run, split)), pictures_of(run, split)
    places = read_positions(positions, len(table))
    if not kept.kept:
        raise NotThereError("the Run has no pictures of this split: add pictures to ask in weakspot.yaml")
    drawn = sheet([kept.of(position) for position in places], kept.height, kept.width)
    return picture(quick_png(drawn), versioned=bool(v) and v == kept.version)


def read_positions(text: str, count: int) -> list[int]:
    """Positions as `1,2,3`.

    >>> read_positions("0,2", 3)
    [0, 2]
    """
    parts = text.split(",")
    if len(parts) > SHEET_MOST or not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise ConfigError(f"positions: expected up to {SHEET_MOST} whole numbers with commas between them")
    places = list(map(int, parts))
    if max(places) >= count:
        raise NotThereError(f"there is no sample at position {max(places)}: the split has {count}")
    return places
