"""Holes of importance-driven coverage, for the viewer."""

from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response

from weakspot.viewer.finding_access import array_in
from weakspot.viewer.library import Chosen
from weakspot.viewer.media import media_of
from weakspot.viewer.pictures import pictures_of
from weakspot.viewer.reading import RunReader
from weakspot.viewer.responses import as_json, numbers
from weakspot.viewer.sample_table import sample_table
from weakspot.viewer.splits import sampled_splits

router = APIRouter(prefix="/api")
HOLES = "coverage.importance_driven_coverage"


@router.get("/holes")
def holes(run: Chosen) -> Response:
    """Combinations that training inputs reach and no test input does, with the training inputs that show them."""
    finding = run.finding(HOLES)
    media = media_of(finding)
    page: dict[str, Any] = {"about": finding.about, "finding": HOLES, "split": None, "pictures": None, "holes": []}
    if "hole_combination" not in finding.arrays:
        return as_json(page)
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
    return as_json({**page, "split": split, "pictures": pictures, "holes": listed})


def _nearest(ids: np.ndarray, far: np.ndarray, places: np.ndarray) -> list[dict[str, Any]]:
    together = zip(ids.tolist(), numbers(far), places.tolist(), strict=True)
    return [
        {"id": name, "distance": distance, "position": None if position < 0 else position}
        for name, distance, position in together
        if name
    ]


def _where(run: RunReader, ids: np.ndarray) -> tuple[str | None, np.ndarray]:
    """The split that holds these inputs, and their positions in it."""
    best: str | None = None
    places = np.full(ids.shape, -1)
    for split in sampled_splits(run):
        positions = sample_table(run, split).places(ids.ravel()).reshape(ids.shape)
        if (positions >= 0).sum() > (places >= 0).sum():
            best, places = split, positions
    return best, places
