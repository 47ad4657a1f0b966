"""Training images that look most like one to label: small pictures compared, whatever their brightness and contrast."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response
from numpy.typing import NDArray

from weakspot.causes.label_pages import Number, Of, wanted
from weakspot.viewer.columns import Places
from weakspot.viewer.library import Chosen
from weakspot.viewer.pictures import Pixels, SplitPictures, pictures_of
from weakspot.viewer.reading import RunReader
from weakspot.viewer.responses import as_json
from weakspot.viewer.sample_table import column_called, sample_table
from weakspot.viewer.splits import sampled_splits

router = APIRouter(prefix="/api/label")
TRAIN = "train"
SHOWN = 6
SIDE = 8
"""Fields along each side of a picture, whose mean colours are compared."""
_BLOCK = 4096
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class TrainingImages:
    """The pictures of the training data, as what is compared; row r is of the sample at `positions[r]`."""

    looks: Floats
    positions: Places
    pictures: SplitPictures


@router.get("/nearest/{number}", summary="The training images that look most like an image to label.")
def nearest_images(run: Chosen, number: Number, of: Of = "") -> Response:
    """With the labels that they have; null where the Run keeps no pictures of both."""
    unsafe_set = wanted(run, of)
    index = unsafe_set.index(number)
    found = None if unsafe_set.pictures is None else nearest(run, np.asarray(unsafe_set.pictures[index]))
    return as_json({"nearest": found})


def nearest(run: RunReader, pixels: Pixels) -> dict[str, Any] | None:
    """The training images most like a picture, the most alike first; None where the Run keeps none."""
    if TRAIN not in sampled_splits(run):
        return None
    trained = run.kept("training images", lambda: _looks(pictures_of(run, TRAIN)))
    if not len(trained.positions):
        return None
    table = sample_table(run, TRAIN)
    likeness = trained.looks @ appearance(pixels[None])[0]
    places = trained.positions[np.argsort(-likeness, kind="stable")[:SHOWN]]
    target = column_called(table, "target")
    labels = [None] * len(places) if target is None else target.values(places)
    together = zip(places.tolist(), table.names(places), labels, strict=True)
    images = [
        {"position": place, "id": name, "label": None if label is None else str(label)}
        for place, name, label in together
    ]
    return {"split": TRAIN, "pictures": trained.pictures.described(), "images": images}


def _looks(pictures: SplitPictures) -> TrainingImages:
    if not pictures.kept:
        return TrainingImages(np.empty((0, 0), np.float32), np.empty(0, np.int64), pictures)
    first = pictures.kept[0]
    positions = np.flatnonzero(first.rows >= 0)
    rows = first.rows[positions]
    blocks = [appearance(first.pixels[rows[start : start + _BLOCK]]) for start in range(0, len(rows), _BLOCK)]
    return TrainingImages(np.concatenate(blocks), positions, pictures)


def appearance(pictures: Pixels) -> Floats:
    """Mean colours of the fields of each picture, less their mean, of length 1: (pictures, values).

    >>> dark = np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3)
    >>> bool(np.allclose(appearance(dark), appearance(2 * dark + 10)))
    True
    """
    fields = np.asarray(pictures, dtype=np.float32)
    for axis in (1, 2):
        fields = _fields(fields, axis)
    values = fields.reshape(len(fields), -1)
    values = values - values.mean(1, keepdims=True)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.maximum(lengths, 1e-12), dtype=np.float32)


def _fields(values: Floats, axis: int) -> Floats:
    """The means of `SIDE` stretches of an axis; a shorter axis is drawn out."""
    size = values.shape[axis]
    begin = np.arange(SIDE) * size // SIDE
    if size < SIDE:
        return np.asarray(values.take(begin, axis))
    widths = np.diff(np.append(begin, size)).reshape([-1 if place == axis else 1 for place in range(4)])
    return np.asarray(np.add.reduceat(values, begin, axis=axis) / widths, dtype=np.float32)
