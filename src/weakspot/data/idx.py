"""IDX files, the format of MNIST and its successors: an image file and a label file, plain or gzipped."""

import gzip
import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weakspot.core.errors import DataError
from weakspot.data.arrays import ArraySource, ChannelsAt

_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class IdxSource(ArraySource):
    """Samples in IDX files (LeCun et al. 1998), plain or `.gz`: images (samples, height, width), labels (samples,).

    images: the file with the images; a channel dimension is added where there is none.
    labels: the file with the labels, or None.
    ids: unique names; by default the row's number. classes: names or how many; then labels must be in their range.
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
            raise DataError(f"{images} holds single numbers, no images: is it the file of the labels?")
        targets = None if labels is None else read_idx(Path(labels))
        channels: ChannelsAt = "none" if inputs.ndim == 3 else "first"
        super().__init__(inputs, targets, ids=ids, channels=channels, classes=classes)


def read_idx(path: Path) -> np.ndarray:
    """The array in an IDX file: two zero bytes, a type, the number of dimensions, their sizes, the values."""
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES or not content[3]:
        raise DataError(f"{path} is no IDX file: it begins with {content[:4].hex(' ') or 'nothing'}")
    dtype, start = np.dtype(_TYPES[content[2]]), 4 + 4 * content[3]
    shape = tuple(np.frombuffer(content[4 : min(start, len(content) // 4 * 4)], dtype=">u4").tolist())
    expected = start + math.prod(shape) * dtype.itemsize
    if len(shape) < content[3] or len(content) != expected:
        raise DataError(
            f"{path} is cut short or damaged: its header says {'×'.join(map(str, shape))} values and so {expected} "
            f"bytes, it has {len(content)}; get it again"
        )
    array = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
