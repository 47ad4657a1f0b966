"""Sources: arrays and image folders, with stable ids."""

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from weakspot.core.digest import digest, digest_file
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.observation import Batch
from weakspot.data.images import SUFFIXES, decode

ChannelsAt = Literal["first", "last", "none"]


class ArraySource:
    """Samples held in arrays.

    inputs: one sample per row. Floats are taken as they are; uint8 is divided by 255.
    targets: one per sample: class numbers, label vectors, numbers, or maps.
    channels: where image arrays keep their channels: "first" (as torch wants them), "last", or "none" for grey
        images without that dimension.
    ids: unique names; by default the row's number.
    metadata: columns of whatever else is known of the samples.
    """

    def __init__(
        self,
        inputs: Any,
        targets: Any = None,
        *,
        ids: Sequence[str] | None = None,
        channels: ChannelsAt = "first",
        metadata: Mapping[str, Any] | None = None,
    ):
        self._inputs = _as_array(inputs)
        self._targets = None if targets is None else _as_array(targets)
        self._metadata = {key: np.asarray(column) for key, column in (metadata or {}).items()}
        if channels not in ("first", "last", "none"):
            raise ConfigError(f"channels {channels!r} is not known: choose 'first', 'last' or 'none'")
        self._channels = channels
        count = len(self._inputs)
        width = len(str(max(count - 1, 0)))
        self.ids: Sequence[str] = tuple(ids) if ids is not None else tuple(f"{i:0{width}d}" for i in range(count))
        if not all(isinstance(name, str) for name in self.ids):
            raise DataError(f"ids must be text, got {next(n for n in self.ids if not isinstance(n, str))!r}: use str()")
        self._check_lengths(count)

    def _check_lengths(self, count: int) -> None:
        lengths = {"ids": len(self.ids), **{key: len(column) for key, column in self._metadata.items()}}
        if self._targets is not None:
            lengths["targets"] = len(self._targets)
        for name, length in lengths.items():
            if length != count:
                raise DataError(f"there are {count} inputs but {length} {name}: they must be as many")

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places."""
        inputs = self._inputs[positions]
        if inputs.dtype == np.uint8:
            inputs = inputs.astype(np.float32) / 255
        if self._channels == "last":
            inputs = np.ascontiguousarray(np.moveaxis(inputs, -1, 1))
        elif self._channels == "none":
            inputs = inputs[:, None]
        return Batch(
            ids=tuple(self.ids[position] for position in positions),
            positions=np.asarray(positions),
            inputs=torch.from_numpy(inputs if inputs.dtype == np.float32 else inputs.astype(np.float32)),
            targets=None if self._targets is None else _target_tensor(self._targets[positions]),
            metadata={key: column[positions] for key, column in self._metadata.items()} or None,
        )

    @cached_property
    def _fingerprint(self) -> str:
        return digest([self._inputs, self._targets, self._channels, hash_names(self.ids), self._metadata])

    def fingerprint(self) -> str:
        """Of every value, target and id."""
        return self._fingerprint


class ImageFolder:
    """Images in one folder per class, `folder/class/image.png`, or in one folder without targets.

    classes: names in the order of the model's outputs; by default the folders' names in alphabetical order.
    mode: "RGB" or "L" for grey. size: (height, width) to resize to; without it all images must be of one size.
    An image's id is its path below the folder.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        classes: Sequence[str] | None = None,
        mode: Literal["RGB", "L"] = "RGB",
        size: tuple[int, int] | None = None,
    ):
        self._folder, self._mode, self._size = Path(folder), mode, size
        if not self._folder.is_dir():
            raise DataError(f"{folder} is no folder: give the folder that holds the images")
        files = (path for path in self._folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        self.ids: Sequence[str] = tuple(sorted(path.relative_to(self._folder).as_posix() for path in files))
        if not self.ids:
            raise DataError(f"{folder} holds no images ({', '.join(sorted(SUFFIXES))})")
        labels = [name.partition("/")[0] if "/" in name else None for name in self.ids]
        self.classes = tuple(classes or sorted({label for label in labels if label is not None}))
        self._targets = self._numbered(labels)

    def _numbered(self, labels: Sequence[str | None]) -> np.ndarray | None:
        if all(label is None for label in labels):
            return None
        number = {name: index for index, name in enumerate(self.classes)}
        for name, label in zip(self.ids, labels, strict=True):
            if label not in number:
                raise DataError(
                    f"{name} is in no folder of a known class: expected one of {', '.join(self.classes[:8])}"
                    f"{' …' if len(self.classes) > 8 else ''}; move it, or add the class"
                )
        return np.array([number[label] for label in labels if label is not None], dtype=np.int64)

    def read(self, positions: np.ndarray) -> Batch:
        """The images at these places, decoded."""
        names = tuple(self.ids[position] for position in positions)
        images = [decode(self._folder / name, mode=self._mode, size=self._size) for name in names]
        for name, image in zip(names, images, strict=True):
            if image.shape != self._shape:
                raise DataError(
                    f"{name} is {image.shape[1]}×{image.shape[2]}, {self.ids[0]} is {self._shape[1]}×{self._shape[2]}: "
                    "give size=(height, width) to resize them all"
                )
        targets = None if self._targets is None else _target_tensor(self._targets[positions])
        return Batch(names, np.asarray(positions), torch.from_numpy(np.stack(images)), targets)

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """Of the first image, and so of all: what fits must not depend on the batch."""
        return decode(self._folder / self.ids[0], mode=self._mode, size=self._size).shape

    @cached_property
    def _fingerprint(self) -> str:
        with ThreadPoolExecutor() as pool:
            contents = list(pool.map(lambda name: digest_file(self._folder / name), self.ids))
        return digest([hash_names(self.ids), hash_names(contents), self._targets, self._mode, self._size])

    def fingerprint(self) -> str:
        """Of every file's content and name."""
        return self._fingerprint


def hash_names(names: Sequence[str]) -> str:
    """One digest for many names."""
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()


def _as_array(values: Any) -> np.ndarray:
    array: np.ndarray = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise DataError(f"expected an array of numbers, got type {array.dtype}")
    return array


def _target_tensor(values: np.ndarray) -> torch.Tensor:
    wide = np.float32 if values.dtype.kind == "f" else np.int64
    return torch.from_numpy(np.ascontiguousarray(values.astype(wide)))
