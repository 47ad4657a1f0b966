"""Thousands of small images as a few WebP sheets in one archive: a tenth of the size, for a machine that is far away.

The compression is lossy; what is trained on packed images says so.
"""

import argparse
import csv
import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

ACROSS = 32
"""Images in a row of a sheet, and rows of a sheet."""


def table(archive: zipfile.ZipFile, name: str) -> list[dict[str, str]]:
    """The rows of a CSV in an archive."""
    return list(csv.DictReader(io.StringIO(archive.read(name).decode())))


def images_of(archive: zipfile.ZipFile, mode: str) -> np.ndarray:
    """All images of manifest.csv, in its order, from sheets or from files of their own.

    mode: "RGB" (images, height, width, 3) or "L" (images, height, width).
    """
    entries = table(archive, "manifest.csv")
    sheets = sorted(name for name in archive.namelist() if name.endswith(".webp"))
    if not sheets:
        return np.stack([_pixels(archive.read(entry["path"]), mode) for entry in entries])
    return np.concatenate([_cut(_pixels(archive.read(name), mode)) for name in sheets])[: len(entries)]


def _pixels(content: bytes, mode: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert(mode))


def _cut(sheet: np.ndarray) -> np.ndarray:
    side, rest = sheet.shape[0] // ACROSS, sheet.shape[2:]
    return sheet.reshape(ACROSS, side, ACROSS, side, *rest).swapaxes(1, 2).reshape(-1, side, side, *rest)


def pack(given: zipfile.ZipFile, path: Path, mode: str, *, quality: int) -> None:
    """All images of an archive, which are square, on sheets in the order of its manifest; its tables as they are."""
    images = images_of(given, mode)
    side, rest = images.shape[1], images.shape[3:]
    empty = np.zeros((-len(images) % ACROSS**2, side, side, *rest), dtype=np.uint8)
    with zipfile.ZipFile(path, "w") as archive:
        for name in (name for name in given.namelist() if name.endswith(".csv")):
            archive.writestr(name, given.read(name), zipfile.ZIP_DEFLATED)
        sheets = np.concatenate([images, empty]).reshape(-1, ACROSS, ACROSS, side, side, *rest)
        for number, sheet in enumerate(sheets):
            file = io.BytesIO()
            flat = sheet.swapaxes(1, 2).reshape(ACROSS * side, ACROSS * side, *rest)
            Image.fromarray(flat).save(file, "WEBP", quality=quality)
            archive.writestr(f"sheet-{number:04d}.webp", file.getvalue())


def pack_option(asked: argparse.ArgumentParser) -> None:
    """What a script asks for to pack its images."""
    asked.add_argument("--pack", type=Path)
    asked.add_argument("--quality", type=int, default=80)
