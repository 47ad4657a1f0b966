"""What all sources of image files have in common: decoding, one size for all, targets, metadata, fingerprints."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from weakspot.core.digest import digest, digest_bytes
from weakspot.core.errors import BadSample, ConfigError, DataError
from weakspot.core.guarded_open import check_fits, read_plain
from weakspot.core.observation import Batch
from weakspot.data.arrays import target_tensor
from weakspot.data.framing import Framing, Size, check_size
from weakspot.data.images import Mode, OtherSizeError, pixels, planes, scale_into
from weakspot.data.names import hash_names, shown

MOST_BYTES = 512 << 20
"""Of an image file: one of as many pixels as Pillow allows is no larger."""


class ImageSource(ABC):
    """Image files with ids. A kind of source says where the content of each file comes from (`content`).

    ids: the samples' names.
    classes: names in the order of the model's outputs, or None.
    targets: one row per sample, or None.
    metadata: one array per column.
    remarks: sentences about what was left out or looks odd, for the user to read.
    """

    ids: tuple[str, ...]
    classes: tuple[str, ...] | None
    remarks: tuple[str, ...]

    def __init__(
        self,
        ids: tuple[str, ...],
        *,
        classes: tuple[str, ...] | None,
        targets: np.ndarray | None,
        mode: Mode,
        size: Size | Framing | None,
        metadata: Mapping[str, np.ndarray] | None = None,
        remarks: Sequence[str] = (),
    ):
        self.ids, self.classes, self.targets, self.metadata = ids, classes, targets, dict(metadata or {})
        self.remarks = tuple(remarks)
        self._mode, self._size = _known_mode(mode), _checked_size(size)

    @abstractmethod
    def content(self, position: int) -> bytes:
        """The bytes of one image file; a `BadSample` where they cannot be had."""

    def read(self, positions: np.ndarray) -> Batch:
        """The images at these places, decoded one after another; one of another size is not decoded at all."""
        if len(positions) and "_shape" not in vars(self):
            self._pixels(int(positions[0]))  # where it cannot be read it is named, whatever becomes of the others
        shape = self._shape if len(positions) else (0, 0, 0)
        inputs = np.empty(self._checked_batch(len(positions), shape), dtype=np.float32)
        for position, out in zip(positions, inputs, strict=True):
            scale_into(self._pixels(int(position), fits=shape[1:] if self._size is None else None), out)
        return Batch(
            ids=tuple(self.ids[position] for position in positions),
            positions=np.asarray(positions),
            inputs=torch.from_numpy(inputs),
            targets=None if self.targets is None else target_tensor(self.targets[positions]),
            metadata={key: column[positions] for key, column in self.metadata.items()} or None,
        )

    def _pixels(self, position: int, *, fits: Size | None = None) -> np.ndarray:
        name = self.ids[position]
        try:
            return pixels(self.content(position), sample=name, mode=self._mode, size=self._size, fits=fits)
        except OtherSizeError as error:
            raise self._misfit(name, error.size) from error

    @staticmethod
    def _checked_batch(count: int, shape: tuple[int, int, int]) -> tuple[int, int, int, int]:
        size = f"{shape[1]}×{shape[2]}"
        try:
            advice = "give size=(height, width), or take smaller batches"
            check_fits(4 * count * math.prod(shape), f"a batch of {count} images of {size}", advice, share=0.25)
        except ValueError as error:
            raise DataError(str(error)) from error
        return (count, *shape)

    def _misfit(self, name: str, size: Size) -> BadSample:
        came, expected = (f"{height}×{width}" for height, width in (size, self._shape[1:]))
        first = shown(self.ids[self._first_readable])
        message = f"{shown(name)} is {came}, {first} is {expected}: give size=(height, width) to resize them all"
        return BadSample(name, message)

    @cached_property
    def _shape(self) -> tuple[int, int, int]:
        """Of all images, by the first that can be read: what fits must not depend on the batch."""
        if self._size is not None:
            framed = self._size.result if isinstance(self._size, Framing) else self._size
            return (3 if self._mode == "RGB" else 1, *framed)
        return planes(self._pixels(self._first_readable), self._mode)

    @cached_property
    def _first_readable(self) -> int:
        for position in range(len(self.ids)):
            with suppress(BadSample):
                self._pixels(position)
                return position
        raise DataError(f"none of the {len(self.ids)} images can be read, beginning with {shown(self.ids[0])}")

    @cached_property
    def _fingerprint(self) -> str:
        with ThreadPoolExecutor() as pool:
            contents = list(pool.map(self._content_digest, range(len(self.ids))))
        described = [self.targets, self.metadata, self._mode, self._size]
        return digest([hash_names(self.ids), hash_names(contents), described])

    def _content_digest(self, position: int) -> str:
        try:
            return digest_bytes(self.content(position))
        except BadSample as error:  # reading will name it, or leave it out where that is asked for
            return str(error)

    def fingerprint(self) -> str:
        """Of every file's content and name, of targets, metadata and options."""
        return self._fingerprint


def read_file(path: Path, sample: str, *, most: int = MOST_BYTES) -> bytes:
    """The content of a plain file; a `BadSample` where it cannot be read, or has more than `most` bytes."""
    try:
        return read_plain(path, most=most)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadSample(sample, f"{shown(sample)} cannot be read: {reason}; restore or remove it") from error


def _known_mode(mode: Mode) -> Mode:
    if mode not in ("RGB", "L"):
        raise ConfigError(f"mode {mode!r} is not known: choose 'RGB', or 'L' for grey")
    return mode


def _checked_size(size: Size | Framing | None) -> Size | Framing | None:
    if size is None or isinstance(size, Framing):
        return size
    check_size("size", size)
    return (size[0], size[1])
