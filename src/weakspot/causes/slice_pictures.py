"""What each root cause looks like: wrong members beside correct ones like them, from pictures that the Run keeps."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weakspot.causes.slice_examples import example_ids
from weakspot.core.finding import Finding, Picture
from weakspot.formatting import counted, roughly

SLICES = "causes.error_slices"
_PICTURED = 6
"""Causes that are shown with pictures."""
_LEAST = 96
"""Pixels that the shorter side of a picture has at least."""
_KINDS = {"incorrect": "Wrong", "correct": "Correct, and like them"}
Pictures = list[tuple[str, Picture]]


def slice_pictures(findings: Sequence[Finding]) -> dict[str, Pictures]:
    """Two rows of pictures for each of the first causes, each with a sentence and counts, by their Finding."""
    slices = next((one for one in findings if one.name == SLICES), None)
    if slices is None or slices.table is None or "incorrect_examples" not in slices.table.column_names:
        return {}
    known = _kept(findings, slices.provenance.get("data"))
    rows = slices.table.slice(0, _PICTURED).to_pylist()
    shown = [one for row in rows for one in _of_cause(row, known)]
    return {SLICES: shown} if shown else {}


def _of_cause(row: Mapping[str, Any], known: Mapping[str, np.ndarray]) -> Iterator[tuple[str, Picture]]:
    from weakspot.data.images import enlarged, png, strip

    rates = f"{roughly(row['error_rate'])} wrong, elsewhere {roughly(row['elsewhere'])}"
    for kind, words in _KINDS.items():
        images = [known[name] for name in example_ids(row[f"{kind}_examples"], known)]
        if not images:
            continue
        errors = row["errors"] if kind == "incorrect" else row["images"] - row["errors"]
        alike = [image for image in images if image.shape == images[0].shape]
        caption = f"{row['rule']}: {rates}. {words}: {len(alike)} of {counted(errors, 'image')}."
        picture = png(strip([enlarged(image, _LEAST) for image in alike]))
        yield f"{row['slice']} {kind}", Picture(picture, caption)


def _kept(findings: Sequence[Finding], data: object) -> dict[str, np.ndarray]:
    """The pictures of inputs that Findings over the same data keep."""
    known: dict[str, np.ndarray] = {}
    for finding in findings:
        pixels = finding.arrays.get("pixels")
        if pixels is None or finding.table is None or finding.provenance.get("data") != data:
            continue
        if "id" in finding.table.column_names and len(pixels) == len(finding.table) and pixels.ndim == 4:
            names = finding.table["id"].to_pylist()
            known.update(zip(map(str, names), pixels, strict=True))
    return known
