"""Images with Pillow and numpy alone: decoding, and small pictures for reports. Never torch."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.errors import DataError

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"})


def decode(path: Path, *, mode: str, size: tuple[int, int] | None = None) -> np.ndarray:
    """An image file as float32 in [0, 1], shape (channels, height, width); `size` is (height, width)."""
    try:
        with Image.open(path) as opened:
            image = opened.convert(mode)
    except Exception as error:  # Pillow raises many kinds for broken files
        raise DataError(f"{path} cannot be read as an image: {error}; repair or remove it") from error
    if size is not None and (image.height, image.width) != size:
        image = image.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    pixels = np.asarray(image, dtype=np.float32) / 255
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def to_uint8(image: np.ndarray, bounds: tuple[float, float] | None = None) -> np.ndarray:
    """Any (channels, height, width) or (height, width) array as uint8 (height, width, 3), for showing.

    Without bounds the values are stretched from their smallest to their largest.
    """
    array = np.asarray(image, dtype=np.float64)
    array = array[None] if array.ndim == 2 else array
    if array.shape[0] != 3:
        array = np.repeat(array[:1], 3, axis=0)
    low, high = bounds or (np.nanmin(array), np.nanmax(array))
    scaled = (array - low) / (high - low) if high > low else np.zeros_like(array)
    return (np.clip(np.nan_to_num(scaled), 0, 1) * 255 + 0.5).astype(np.uint8).transpose(1, 2, 0)


def enlarged(pixels: np.ndarray, least: int) -> np.ndarray:
    """The picture with each pixel repeated until its shorter side has at least `least` pixels."""
    factor = max(1, -(-least // min(pixels.shape[:2])))
    return pixels.repeat(factor, 0).repeat(factor, 1)


def png(pixels: np.ndarray) -> bytes:
    """A uint8 picture as PNG; equal pixels give equal bytes."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=False)
    return buffer.getvalue()


def strip(pictures: Sequence[np.ndarray], *, gap: int = 4) -> np.ndarray:
    """Pictures of one size side by side on white."""
    height, width = pictures[0].shape[:2]
    sheet = np.full((height, len(pictures) * (width + gap) - gap, 3), 255, dtype=np.uint8)
    for index, picture in enumerate(pictures):
        sheet[:, index * (width + gap) : index * (width + gap) + width] = picture
    return sheet
