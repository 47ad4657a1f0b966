"""A picture of each lesion for the report, from the volumes that the Run keeps: torch-free."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weakspot.core.finding import Finding, Picture
from weakspot.formatting import counted, number
from weakspot.lesions.volumes import PER_SEQUENCE, VOLUMES, Volume, case_rows, open_volume

MOST = 50
"""Lesions that are shown, the most likely false positives first: a report of hundreds of pictures is not read."""
_SCORES, _LESIONS = "lesions.scores", "lesions.lesions"
_SIDE = 240
"""Pixels of a picture's longer side."""
_AROUND, _LEAST = 1.0, 16
"""How much is shown on each side of a lesion: as much again as it is large, and some voxels at least."""


def lesion_pictures(findings: Sequence[Finding]) -> dict[str, list[tuple[str, Picture]]]:
    """The axial slice that holds most of each lesion, enlarged, with outlines and a sentence, by their Finding."""
    known = {finding.name: finding for finding in findings}
    shown = {}
    for name, finding in known.items():
        kind, dash, split = name.partition("-")
        volumes = known.get(VOLUMES + dash + split)
        last = kind == _SCORES or (kind == _LESIONS and _SCORES + dash + split not in known)
        if last and volumes is not None and _together(finding, volumes):
            shown[name] = list(_pictures(finding, volumes))
    return {name: pictures for name, pictures in shown.items() if pictures}


def _together(finding: Finding, volumes: Finding) -> bool:
    """Whether both are of the same data, and the images were not left out."""
    same = finding.provenance.get("data") == volumes.provenance.get("data")
    return same and finding.table is not None and "image_0000" in volumes.arrays


def _pictures(finding: Finding, volumes: Finding) -> Iterator[tuple[str, Picture]]:
    table = finding.table
    assert table is not None
    ranked = table.sort_by("rank") if "rank" in table.column_names else table
    rows = ranked.slice(0, MOST).to_pylist()
    numbers = {row["case"]: place for place, row in enumerate(case_rows(volumes))}
    made: dict[int, tuple[str, Picture]] = {}
    for case in {row["case"]: None for row in rows if row["case"] in numbers}:
        volume = open_volume(volumes, numbers[case])  # one case at a time: many do not fit
        for place, row in enumerate(rows):
            inside = volume.voxels[volume.numbers == row["lesion"]]
            if row["case"] == case and len(inside) == row["voxels"] > 0:
                made[place] = (f"{case} lesion {row['lesion']}", _picture(volume, inside, row))
    yield from (made[place] for place in sorted(made))


def _picture(volume: Volume, inside: np.ndarray, row: Mapping[str, Any]) -> Picture:
    from PIL import Image

    from weakspot.data.images import png
    from weakspot.lesions.slices import levels, outline_layer

    z = int(np.bincount(inside[:, 0]).argmax())
    view = _view(inside[inside[:, 0] == z][:, 1:], volume)
    low, high = (volume.per_sequence[PER_SEQUENCE.index(end), 0] for end in ("low", "high"))
    grey = levels(volume.intensities(0, "axial", z)[view], (low, high)).astype(np.uint8)
    scale = _SIDE / max(np.multiply(grey.shape, volume.spacing[1:]))
    height, width = (max(1, round(side * scale)) for side in np.multiply(grey.shape, volume.spacing[1:]).tolist())
    picture = np.array(Image.fromarray(grey).resize((width, height), Image.Resampling.NEAREST).convert("RGB"))
    probability = np.full(int(volume.numbers.max()), np.nan)
    value = _probability(row)
    probability[row["lesion"] - 1] = np.nan if value is None else value
    layer = outline_layer(volume.labels("axial", z)[view], None, probability, 2.0, (width, height), width=2)
    picture = np.where(layer[..., 3:] > 0, layer[..., :3], picture)
    return Picture(png(picture), _sentence(row, f"Axial slice {z + 1} of {volume.shape[0]}"))


def _view(inside: np.ndarray, volume: Volume) -> tuple[slice, slice]:
    """Rows and columns of the shown slice, which is turned round, about the voxels of a lesion in it."""
    low, high = inside.min(0), inside.max(0) + 1
    margin = np.maximum(_LEAST, np.ceil(_AROUND * (high - low))).astype(int)
    sides = np.array(volume.shape[1:])
    first, last = np.maximum(low - margin, 0), np.minimum(high + margin, sides)
    rows, columns = (
        slice(int(side - end), int(side - start)) for start, end, side in zip(first, last, sides, strict=True)
    )
    return rows, columns


def _probability(row: Mapping[str, Any]) -> float | None:
    value = row.get("false_positive_probability")
    return None if value is None or np.isnan(value) else float(value)


def _sentence(row: Mapping[str, Any], where: str) -> str:
    """Case, size, probability of being false, and the truth, as far as they are known."""
    size, value, truth = row.get("volume_mm3"), _probability(row), row.get("true_positive")
    parts = [counted(row["voxels"], "voxel") if size is None or np.isnan(size) else f"{number(size)} mm³"]
    parts += [] if value is None else [f"probability of being false {value:.2f}"]
    parts += [] if truth is None else ["a true lesion" if truth else "a false positive by the true mask"]
    return f"{row['case']}, lesion {row['lesion']}: {', '.join(parts)}. {where}."
