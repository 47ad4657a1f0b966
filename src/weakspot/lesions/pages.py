"""Lesions: the list of them, and slices of the cases in three planes, made from volumes that stay on the disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from weakspot.core.errors import ConfigError, RunError
from weakspot.core.finding import Finding
from weakspot.lesions.slices import LETTERS, OPAQUE, OVERLAY, PLANES, levels, outline_layer, overlaid, ramp
from weakspot.lesions.volumes import MAPS, PER_SEQUENCE, VOLUMES, Volume, case_rows, open_volume
from weakspot.viewer.finding_access import real, rows_in, whole
from weakspot.viewer.library import Chosen
from weakspot.viewer.pictures import Version, quick_png
from weakspot.viewer.reading import NotThereError, RunReader
from weakspot.viewer.responses import Png, as_json, finite, picture

LESIONS, SCORES = "lesions.lesions", "lesions.scores"
PROBABILITY, TRUE = "false_positive_probability", "true_positive"
_LISTED = (
    "case", "lesion", "z", "y", "x", "voxels", "volume_mm3", PROBABILITY, "rank", "entropy", "adjusted_iou", TRUE,
)  # fmt: skip
_OF_SEQUENCE = PER_SEQUENCE[2:]
_MOST_PIXELS = 2048
_LEGEND = 11
_OPEN = 4
"""Cases that are kept open: each takes memory for its lesions' voxels."""

router = APIRouter(prefix="/api/lesions")
Split = Annotated[str, Query(max_length=200, description="Whose lesions.")]
Number = Annotated[int, Path(ge=0, description="Which case, from 0 on.")]
Plane = Literal["axial", "coronal", "sagittal"]
Index = Annotated[int, Path(ge=0, description="Which slice of that plane, from 0 on.")]
Pixels = Annotated[int, Query(ge=1, le=_MOST_PIXELS)]
Real = Annotated[float, Query(allow_inf_nan=False)]


@dataclass(frozen=True)
class Listed:
    """The lesions of one split by columns, scored where there are scores."""

    finding: Finding
    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, finding: Finding) -> "Listed":
        """From the Finding of `Lesions` or `Scores`; a damaged one is refused."""
        rows = rows_in(finding, "case", "lesion", "y", "x", "voxels")
        kinds: dict[str, Callable[[Any], Any]] = {"case": str, "lesion": whole, "voxels": whole, TRUE: bool}
        there = [name for name in _LISTED if name in rows[0]] if rows else ["case", "lesion", "voxels"]
        return cls(finding, {name: list(map(kinds.get(name, real), (row[name] for row in rows))) for name in there})

    def rows(self, case: str) -> list[int]:
        """The places of one case's lesions."""
        return self._by_case.get(case, [])

    @cached_property
    def _by_case(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self.columns["case"]):
            rows.setdefault(name, []).append(row)
        return rows

    def colours(self) -> list[str]:
        """As their outlines have them."""
        column = self.columns.get(PROBABILITY, [None] * len(self.columns["case"]))
        values = np.array([np.nan if value is None else value for value in column], dtype=np.float64)
        return [_hex(colour) for colour in ramp(values).tolist()]

    def probabilities(self, case: str, most: int) -> np.ndarray:
        """Of a false positive, of lesion i at place i − 1; NaN where it is not known."""
        probabilities = np.full(most, np.nan)
        if PROBABILITY in self.columns:
            for row in self.rows(case):
                number, value = self.columns["lesion"][row], self.columns[PROBABILITY][row]
                if 0 < number <= most:
                    probabilities[number - 1] = np.nan if value is None else value
        return probabilities


def splits(run: RunReader) -> list[str]:
    """The splits whose lesions the Run has, the test data first."""
    names = [name.partition("-")[2] or "test" for name in run.names() if name.partition("-")[0] in (LESIONS, SCORES)]
    return sorted(set(names), key=lambda name: (name != "test", name))


def _named(name: str, split: str) -> str:
    return name if split == "test" else f"{name}-{split}"


def listed(run: RunReader, split: str) -> Listed:
    """The lesions of a split."""
    if split not in splits(run):
        raise NotThereError(f"there are no lesions of a split {split[:80]!r}: ask the question lesions")
    name = next(_named(finding, split) for finding in (SCORES, LESIONS) if _named(finding, split) in run.names())
    return run.kept(("lesions", split), lambda: Listed.of(run.finding(name)))


def volume(run: RunReader, split: str, number: int) -> Volume:
    """A case with its images, opened once; the last few stay open."""
    finding = run.finding(_named(VOLUMES, split))
    opened = run.kept(("volumes", split), dict[int, Volume])
    opened_case = opened.get(number)
    if opened_case is not None:
        return opened_case
    if number >= len(case_rows(finding)):
        raise NotThereError(f"there is no case {number}: expected 0 to {len(case_rows(finding)) - 1}")
    opened_case = open_volume(finding, number)
    while len(opened) >= _OPEN:
        opened.pop(next(iter(opened)), None)
    opened[number] = opened_case
    return opened_case


def version(run: RunReader, split: str) -> str:
    """Changes with the volumes and with what is said of the lesions."""
    return run.finding(_named(VOLUMES, split)).digest[:8] + listed(run, split).finding.digest[:8]


@router.get("", summary="Every lesion, and the cases whose volumes can be looked at.")
def lesions(run: Chosen, split: Split = "test") -> Response:
    """Columns of the lesions in the order of the Finding; `note` says why there are no slices to show, if so."""
    chosen = listed(run, split)
    columns = {**chosen.columns, "colour": chosen.colours()}
    legend = [_hex(colour) for colour in ramp(np.linspace(0, 1, _LEGEND)).tolist()]
    return as_json(
        {
            "splits": splits(run),
            "split": split,
            "lesions": columns,
            "legend": legend,
            "overlay": _hex([*OVERLAY, round(255 * OPAQUE)]),
            **_volumes(run, split),
        }
    )


def _hex(colour: Sequence[int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)


def _volumes(run: RunReader, split: str) -> dict[str, Any]:
    name = _named(VOLUMES, split)
    if name not in run.names():
        note = "The Run has no volumes to show: ask with `lesions: {volumes: true}`, and examine again."
        return {"cases": [], "note": note, "version": ""}
    try:
        cases = [row["case"] for row in case_rows(run.finding(name))]
        if cases and "image_0000" not in run.finding(name).arrays:
            return {"cases": [], "note": "The images of this copy of the Run were left out.", "version": ""}
        return {"cases": cases, "note": "", "version": version(run, split)}
    except RunError as error:
        return {"cases": [], "note": str(error), "version": ""}


@router.get("/case/{number}", summary="A case: its extent, sequences and lesions.")
def case(run: Chosen, number: Number, split: Split = "test") -> Response:
    """Of each plane its slices, size in millimetres and the letters at its edges; of each lesion where it is."""
    opened, chosen = volume(run, split, number), listed(run, split)
    rows = chosen.rows(opened.case)
    centres = [[chosen.columns[axis][row] if axis in chosen.columns else 0.0 for axis in "zyx"] for row in rows]
    return as_json(
        {
            "case": opened.case,
            "shape": opened.shape,
            "planes": {name: _extent(opened, name) for name in PLANES},
            "sequences": [
                {name: finite(value) for name, value in zip(_OF_SEQUENCE, values, strict=True)}
                for values in opened.per_sequence[2:].T.tolist()
            ],
            "truth": opened.truth is not None,
            "maps": None if opened.maps is None else dict(zip(MAPS, opened.most, strict=True)),
            "lesions": [chosen.columns["lesion"][row] for row in rows],
            "places": opened.placed(np.array(centres, dtype=np.float64)),
        }
    )


def _extent(opened: Volume, plane: str) -> dict[str, Any]:
    axis = PLANES.index(plane)
    rows, columns = (dimension for dimension in range(3) if dimension != axis)
    return {
        "slices": opened.shape[axis],
        "rows": opened.shape[rows],
        "columns": opened.shape[columns],
        "height": opened.shape[rows] * opened.spacing[rows],
        "width": opened.shape[columns] * opened.spacing[columns],
        "letters": LETTERS[plane] if opened.oriented else None,
    }


@router.get(
    "/case/{number}/slice/{plane}/{index}", response_class=Png, summary="One slice in grey, as PNG: a pixel per voxel."
)
def grey(
    run: Chosen, number: Number, plane: Plane, index: Index, low: Real, high: Real,
    sequence: Annotated[int, Query(ge=0)] = 0, split: Split = "test", v: Version = "",
) -> Response:  # fmt: skip
    """low, high: what is shown black and white."""
    opened = _with_slice(volume(run, split, number), plane, index)
    if sequence >= len(opened.image):
        raise NotThereError(f"there is no sequence {sequence}: expected 0 to {len(opened.image) - 1}")
    if not high > low:
        raise ConfigError(f"the window ends at {high:g}, not above {low:g} where it begins: give high above low")
    pixels = levels(opened.intensities(sequence, plane, index), (low, high))
    return picture(quick_png(pixels.astype(np.uint8)), versioned=v == version(run, split))


@router.get(
    "/case/{number}/outlines/{plane}/{index}", response_class=Png, summary="The outlines that lie over a slice, as PNG."
)
def coloured(
    run: Chosen, number: Number, plane: Plane, index: Index, width: Pixels, height: Pixels, below: Real = 2.0,
    truth: bool = False, plain: bool = False, line: Annotated[int, Query(ge=1, le=8)] = 1,
    over: Literal["probability", "entropy"] | None = None, split: Split = "test", v: Version = "",
) -> Response:  # fmt: skip
    """Coloured by the probability of a false positive; those not `below` it dashed, the truth purple.

    plain: all in grey, for a read that the probability shall not sway.
    over: a map of the case that lies below them.
    """
    opened, chosen = _with_slice(volume(run, split, number), plane, index), listed(run, split)
    probability = chosen.probabilities(opened.case, int(opened.numbers.max(initial=0)))
    if plain:
        probability[:] = np.nan
    true = opened.true_lesions(plane, index) if truth else None
    layer = outline_layer(opened.labels(plane, index), true, probability, below, (width, height), width=line)
    if over is not None:
        layer = overlaid(layer, _shares(opened, over, plane, index))
    return picture(quick_png(layer), versioned=v == version(run, split))


def _shares(opened: Volume, name: str, plane: str, index: int) -> np.ndarray:
    values = opened.map(name, plane, index)
    if values is None:
        raise NotThereError(
            "the Run keeps no maps of probability and entropy: examine again, without `volumes: {maps: false}`"
        )
    return values / opened.most[MAPS.index(name)]


def _with_slice(opened: Volume, plane: str, index: int) -> Volume:
    last = opened.shape[PLANES.index(plane)] - 1
    if index > last:
        raise NotThereError(f"there is no {plane} slice {index}: expected 0 to {last}")
    return opened
