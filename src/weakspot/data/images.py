"""Images with Pillow and numpy alone: decoding, and small pictures for reports. Never torch."""

import io
import re
import struct
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Literal

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from weakspot.core.errors import BadSample
from weakspot.data.framing import Framing, Size
from weakspot.data.names import shown

Mode = Literal["RGB", "L"]

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm"})
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
"""What those suffixes stand for; some others that Pillow knows are read by programs that it starts."""
_PNG = b"\x89PNG\r\n\x1a\n"
_FRAME_MS = 600
"""How long each image of an animation is shown: 100 a minute [fahmy2021]."""
_FRAME_SIDE = 64
_SIXTEEN_BITS = ("I;16", "I;16B", "I;16L", "I;16N")


def decode(content: bytes, *, sample: str, mode: Mode = "RGB", size: Size | Framing | None = None) -> np.ndarray:
    """An image file's content as float32, shape (channels, height, width): 8 and 16 bits in [0, 1], floats as they are.

    The picture is turned as its EXIF orientation says, then converted to `mode` as Pillow does (alpha is dropped, the
    first frame taken, palette and CMYK become RGB), then resized to `size` (height, width), bilinearly, or as a
    `Framing` says. What cannot be read, is larger than Pillow's limit against decompression bombs, or holds NaN is a
    `BadSample`.
    """
    return _scaled(pixels(content, sample=sample, mode=mode, size=size), mode)


def decoded(image: Image.Image, mode: Mode = "RGB") -> np.ndarray:
    """One of Pillow's images as `decode` gives it; it is not turned."""
    with _quiet_pillow():
        return _scaled(_pixels(image, mode, None), mode)


class OtherSizeError(ValueError):
    """An image is not of the expected size; `size` is its own."""

    def __init__(self, size: Size):
        super().__init__(f"it has {size[0]}×{size[1]} pixels")
        self.size = size


def pixels(
    content: bytes, *, sample: str, mode: Mode = "RGB", size: Size | Framing | None = None, fits: Size | None = None
) -> np.ndarray:
    """What `decode` scales: uint8 (height, width, 3) or (height, width), or float32 (height, width) of deep grey.

    fits: the size that is expected; an image of another is an `OtherSizeError`, before it is decoded.
    """
    try:
        _check_content(content)
        with _quiet_pillow(), Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            _check_size(image.size)
            _check_fits(image, fits, on_its_side=True)
            ImageOps.exif_transpose(image, in_place=True)
            _check_fits(image, fits)
            return _pixels(image, mode, size)
    except OtherSizeError:
        raise
    except Exception as error:  # Pillow raises many kinds for broken files
        reason = "it is of no kind that Pillow knows" if isinstance(error, UnidentifiedImageError) else error
        raise BadSample(sample, f"{shown(sample)} cannot be read as an image: {reason}; repair or remove it") from error


def _pixels(image: Image.Image, mode: Mode, size: Size | Framing | None) -> np.ndarray:
    return _grey(image, size) if _is_deep(image) else _bytes(image, mode, size)


def _scaled(values: np.ndarray, mode: Mode) -> np.ndarray:
    out = np.empty(planes(values, mode), dtype=np.float32)
    scale_into(values, out)
    return out


def planes(values: np.ndarray, mode: Mode) -> tuple[int, int, int]:
    """The shape that decoded pixels have as channels, height and width."""
    return (3 if mode == "RGB" else 1, *values.shape[:2])


def scale_into(values: np.ndarray, out: np.ndarray) -> None:
    """Write pixels to `out` (channels, height, width): bytes divided by 255, floats as they are."""
    moved = values.transpose(2, 0, 1) if values.ndim == 3 else values[None]
    if values.dtype == np.uint8:
        np.divide(moved, np.float32(255), out=out, dtype=np.float32)
    else:
        out[:] = moved


def _check_content(content: bytes) -> None:
    if not content:
        raise ValueError("the file is empty")
    if content.startswith(_PNG):
        _check_png(content)


def _check_png(content: bytes) -> None:
    """Pillow does not check the sums of a PNG's pixel data, and gives wrong pixels for some damaged ones."""
    offset = len(_PNG)
    while offset + 12 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, offset)
        end = offset + 8 + length
        if kind == b"IDAT" and zlib.crc32(memoryview(content)[offset + 4 : end]) != _word(content, end):
            raise ValueError("its pixel data are damaged (checksum)")
        if kind == b"IEND":
            return
        offset = end + 4


def _word(content: bytes, offset: int) -> int:
    return int.from_bytes(content[offset : offset + 4], "big")


def _check_size(size: tuple[int, int]) -> None:
    most = Image.MAX_IMAGE_PIXELS
    if most is not None and size[0] * size[1] > most:
        raise ValueError(
            f"{size[1]}×{size[0]} pixels are more than the {most} that PIL.Image.MAX_IMAGE_PIXELS allows against "
            "decompression bombs"
        )


def _check_fits(image: Image.Image, fits: Size | None, *, on_its_side: bool = False) -> None:
    """Whether it is of the expected size; before it is decoded nobody knows whether it will be turned."""
    if fits is not None and (image.height, image.width) != fits and not (on_its_side and image.size == fits):
        raise OtherSizeError((image.height, image.width))


def _is_deep(image: Image.Image) -> bool:
    if image.mode == "I" and image.format not in ("PNG", "PPM"):  # those two keep 16 bits in 32
        raise ValueError("whole numbers of 32 bits have no known range: save 8 or 16 bits, or give an array")
    return image.mode in (*_SIXTEEN_BITS, "I", "F")


def _grey(image: Image.Image, size: Size | Framing | None) -> np.ndarray:
    values = np.asarray(image, dtype=np.float32) / np.float32(1 if image.mode == "F" else 65535)
    if not np.isfinite(values).all():
        raise ValueError("it holds NaN or infinite pixels")
    if size is None or values.shape == size:
        return values
    return np.asarray(_resized(Image.fromarray(values), size))


def _bytes(image: Image.Image, mode: Mode, size: Size | Framing | None) -> np.ndarray:
    return np.asarray(_resized(image if image.mode == mode else image.convert(mode), size))


def _resized(image: Image.Image, size: Size | Framing | None) -> Image.Image:
    if size is None:
        return image
    return (size if isinstance(size, Framing) else Framing(size)).applied(image)


_FILTER = ("ignore", None, Warning, re.compile(r"PIL\b"), 0)
_filter_lock = Lock()
_filter_users = 0


@contextmanager
def _quiet_pillow() -> Iterator[None]:
    """No warnings from Pillow while any thread is inside: what matters is raised.

    `warnings.catch_warnings` is not for threads: it would undo what others change meanwhile.
    """
    global _filter_users  # noqa: PLW0603 - the filters are the process's too
    filters: list[object] = warnings.filters  # type: ignore[assignment]
    with _filter_lock:
        _filter_users += 1
        if _FILTER not in filters:
            filters.insert(0, _FILTER)
    try:
        yield
    finally:
        with _filter_lock:
            _filter_users -= 1
            if not _filter_users:
                with suppress(ValueError):
                    warnings.filters.remove(_FILTER)  # type: ignore[attr-defined]


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


def pixels_of(image: np.ndarray) -> np.ndarray:
    """An input as a picture, uint8 (height, width, 3): values from 0 to 1 as they are, others stretched."""
    within = image.min() >= 0 and image.max() <= 1
    return to_uint8(image, (0.0, 1.0) if within else None)


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


def contact_sheet(pictures: Sequence[np.ndarray], *, columns: int = 10, gap: int = 4) -> np.ndarray:
    """Pictures of one size row by row on white, uint8 (height, width, 3).

    >>> contact_sheet([np.zeros((8, 8, 3), dtype=np.uint8)] * 3, columns=2).shape
    (20, 20, 3)
    """
    height, width = pictures[0].shape[:2]
    columns = min(columns, len(pictures))
    rows = -(-len(pictures) // columns)
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), 255, dtype=np.uint8)
    for number, picture in enumerate(pictures):
        top, left = number // columns * (height + gap), number % columns * (width + gap)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def animation(pictures: Iterable[np.ndarray]) -> bytes:
    """Pictures one after another as an animated GIF, 100 a minute, without end."""
    frames = (Image.fromarray(np.ascontiguousarray(enlarged(picture, _FRAME_SIDE))) for picture in pictures)
    buffer = io.BytesIO()
    next(frames).save(buffer, format="GIF", save_all=True, append_images=frames, duration=_FRAME_MS, loop=0)
    return buffer.getvalue()
