"""Thousands of small images as a few WebP sheets in one archive: a tenth of the size, for a machine that is far away.

The compression is lossy; what is trained on packed images says so.
"""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

ACROSS = 32
"""Images in a row of a sheet, and rows of a sheet."""


def pixels(content: bytes, mode: str) -> np.ndarray:
    """An image file, as "RGB" (height, width, 3) or as "L" (height, width)."""
    return np.asarray(Image.open(io.BytesIO(content)).convert(mode))


def pack(images: np.ndarray, tables: Mapping[str, bytes], path: Path, *, quality: int) -> None:
    """Square images (images, side, side, …) on sheets, in their order, and the tables as they are."""
    side, rest = images.shape[1], images.shape[3:]
    empty = np.zeros((-len(images) % ACROSS**2, side, side, *rest), dtype=np.uint8)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in tables.items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
        sheets = np.concatenate([images, empty]).reshape(-1, ACROSS, ACROSS, side, side, *rest)
        for number, sheet in enumerate(sheets):
            file = io.BytesIO()
            flat = sheet.swapaxes(1, 2).reshape(ACROSS * side, ACROSS * side, *rest)
            Image.fromarray(flat).save(file, "WEBP", quality=quality)
            archive.writestr(f"sheet-{number:04d}.webp", file.getvalue())


def unpacked(archive: zipfile.ZipFile, count: int, mode: str) -> np.ndarray | None:
    """The images of an archive that `pack` wrote; none where it has no sheets."""
    names = sorted(name for name in archive.namelist() if name.endswith(".webp"))
    if not names:
        return None
    cut = []
    for name in names:
        sheet = pixels(archive.read(name), mode)
        side, rest = sheet.shape[0] // ACROSS, sheet.shape[2:]
        cut.append(sheet.reshape(ACROSS, side, ACROSS, side, *rest).swapaxes(1, 2).reshape(-1, side, side, *rest))
    return np.concatenate(cut)[:count]
