"""IDX files, the format of MNIST and its successors: an image file and a label file, plain or gzipped."""

import gzip
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from weakspot.core.errors import DataError
from weakspot.core.guarded_open import check_fits, check_unpacked, open_plain
from weakspot.data.arrays import ArraySource, ChannelsAt

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class IdxSource(ArraySource):
    """Samples in IDX files (LeCun et al. 1998), plain or `.gz`: images (samples, height, width), labels (samples,).

    images: the file with the images; a channel dimension is added where there is none.
    labels: the file with the labels, or None.
    ids: unique names; by default the row's number.
    classes: names or how many; then labels must be in their range.
    """

    def __init__(
        self,
        images: str | Path,
        labels: str | Path | None = None,
        *,
        ids: Sequence[str] | None = None,
        classes: Sequence[str] | int | None = None,
    ):
        inputs = read_idx(Path(images))
        if inputs.ndim < 2:
            raise DataError(f"{images} holds single numbers, not images: is it the file of the labels?")
        targets = None if labels is None else read_idx(Path(labels))
        channels: ChannelsAt = "none" if inputs.ndim == 3 else "first"
        super().__init__(inputs, targets, ids=ids, channels=channels, classes=classes)


def read_idx(path: Path) -> np.ndarray:
    """The array in an IDX file: two zero bytes, a type, the number of dimensions, their sizes, the values."""
    try:
        with open_plain(path) as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            content: Any = gzip.GzipFile(fileobj=file) if packed else file
            return _array(content, path)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def _array(content: IO[bytes], path: Path) -> np.ndarray:
    """Read no further than the header says: few bytes can unpack to any size."""
    start = content.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or not start[3]:
        raise DataError(f"{path} is not an IDX file: it begins with {start.hex(' ') or 'nothing'}")
    dtype, sizes = np.dtype(_TYPES[start[2]]), content.read(4 * start[3])
    shape = tuple(np.frombuffer(sizes[: len(sizes) // 4 * 4], dtype=">u4").tolist())
    expected = math.prod(shape) * dtype.itemsize
    try:
        check_fits(expected, f"{path}, of {'×'.join(map(str, shape))} values by its header,", "is it damaged?")
        check_unpacked(path, 4 + len(sizes) + expected)
    except ValueError as error:
        raise DataError(str(error)) from error
    values = content.read(expected) if len(shape) == start[3] else b""
    if len(shape) < start[3] or len(values) != expected or content.read(1):
        has = "more" if len(values) == expected else str(4 + len(sizes) + len(values))
        raise DataError(
            f"{path} is cut short or damaged: its header says {'×'.join(map(str, shape))} values and so "
            f"{4 + 4 * start[3] + expected} bytes, it has {has}; get it again"
        )
    return np.frombuffer(values, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
