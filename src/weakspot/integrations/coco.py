"""COCO: its boxes as images to classify, and what a Run knows of them back into the file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.errors import DataError
from weakspot.core.files import write_text
from weakspot.core.groups import Groups
from weakspot.core.guarded_open import open_plain
from weakspot.core.run import Run
from weakspot.data.image_source import ImageSource
from weakspot.data.images import png
from weakspot.integrations.sample_tables import ID, sample_columns

KEY = "weakspot"
"""What is written into an annotation stands under this."""
_MOST = 1 << 30
Json = dict[str, Any]


class CocoCrops(ImageSource):
    """The boxes of a COCO file, cut out of their images: a sample per annotation, its category as target.

    annotations: the JSON file.
    root: the folder of the images.
    size: height and width of all crops.
    mode: "RGB" or "L".

    Crops of one image belong together (`groups`), so intervals go by image. Crowds and boxes without area are left out,
    and `remarks` says how many. Ids are those of the annotations.
    """

    def __init__(self, annotations: str | Path, root: str | Path, *, size: tuple[int, int], mode: Any = "RGB"):
        stored = read_coco(annotations)
        images = {image["id"]: Path(root) / _inside(image["file_name"]) for image in stored["images"]}
        names = {category["id"]: str(category["name"]) for category in stored["categories"]}
        used = [one for one in stored["annotations"] if not one.get("iscrowd") and min(one["bbox"][2:]) >= 1]
        lost = next((one for one in used if one["image_id"] not in images or one["category_id"] not in names), None)
        if lost is not None:
            raise DataError(f"{annotations}: annotation {lost['id']} names an image or category that the file lacks")
        numbers = {category: number for number, category in enumerate(sorted(names))}
        owners = np.array([str(one["image_id"]) for one in used], dtype=np.str_)
        self._boxes = [(images[one["image_id"]], tuple(float(v) for v in one["bbox"])) for one in used]
        super().__init__(
            tuple(str(one["id"]) for one in used),
            classes=tuple(names[category] for category in sorted(names)),
            targets=np.array([numbers[one["category_id"]] for one in used], dtype=np.int64),
            mode=mode,
            size=size,
            metadata={"area": np.array([float(np.prod(one["bbox"][2:])) for one in used]), "image_id": owners},
        )
        self.groups = Groups("image_id", owners)
        left = len(stored["annotations"]) - len(used)
        self.remarks = (f"{left} annotations that are crowds or have no area are left out",) if left else ()

    def content(self, position: int) -> bytes:
        """The crop as PNG."""
        path, (x, y, width, height) = self._boxes[position]
        with open_plain(path) as file, Image.open(file) as image:
            box = (int(x), int(y), max(int(x) + 1, round(x + width)), max(int(y) + 1, round(y + height)))
            return png(np.asarray(image.convert("RGB").crop(box)))


def read_coco(path: str | Path) -> Json:
    """A COCO file with images, categories and boxes; what it lacks is an error."""
    with open_plain(path, most=_MOST) as file:
        try:
            stored = json.load(file)
        except ValueError as error:
            raise DataError(f"{path} is no JSON: {error}") from error
    lost = [part for part in ("images", "annotations", "categories") if not isinstance(_part(stored, part), list)]
    if lost:
        raise DataError(f"{path} is no COCO file of objects: it has no list {lost[0]!r}")
    unboxed = [one.get("id") for one in stored["annotations"] if len(one.get("bbox", ())) != 4]
    if unboxed:
        raise DataError(f"{path}: annotation {unboxed[0]} has no bbox of four numbers")
    return dict(stored)


def write_coco(run: Run, annotations: str | Path, output: str | Path, *, split: str = "test") -> Path:
    """The same COCO file with what the Run knows of each annotation, under its key "weakspot"."""
    stored = read_coco(annotations)
    rows = {row[ID]: row for row in sample_columns(run, split=split).to_pylist()}
    if not any(str(one["id"]) in rows for one in stored["annotations"]):
        raise DataError(f"{run.folder} knows none of the annotations of {annotations}: examine its crops")
    for one in stored["annotations"]:
        known = rows.get(str(one["id"]))
        if known is not None:
            one[KEY] = {name: value for name, value in known.items() if name != ID and _plain(value)}
    write_text(Path(output), json.dumps(stored) + "\n")
    return Path(output)


def _part(stored: Any, name: str) -> Any:
    return stored.get(name) if isinstance(stored, Mapping) else None


def _plain(value: Any) -> bool:
    return value is not None and value == value  # noqa: PLR0124 - NaN, which JSON has not, is not equal to itself


def _inside(name: str) -> str:
    """The name of an image file, which must not lead out of the folder."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise DataError(f"the image {name!r} lies outside the folder of the images: expected a path below it")
    return name
