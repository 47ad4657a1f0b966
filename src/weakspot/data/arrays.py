"""Samples in arrays: in memory, in npy files (memory-mapped), in npz files."""

import mmap
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.guarded_open import check_fits, map_array, open_plain
from weakspot.core.observation import Batch
from weakspot.data.names import hash_names, listed, numbered, unique_ids
from weakspot.data.targets import check_classes

ChannelsAt = Literal["first", "last", "none"]


class ArraySource:
    """Samples held in arrays.

    inputs: one sample per row. Floats are taken as they are; uint8 is divided by 255, uint16 by 65535.
    targets: one per sample: class numbers, label vectors, numbers, or maps.
    channels: where image arrays keep their channels: "first" (as torch wants them), "last", or "none" for grey images
        without that dimension.
    ids: unique names; by default the row's number.
    classes: names of the classes, or how many; then targets must be whole numbers in their range.
    metadata: columns of whatever else is known of the samples.
    """

    def __init__(
        self,
        inputs: Any,
        targets: Any = None,
        *,
        ids: Sequence[str] | None = None,
        channels: ChannelsAt = "first",
        classes: Sequence[str] | int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ):
        self._inputs = _as_array(inputs, "inputs")
        self._targets = None if targets is None else _as_array(targets, "targets")
        self.metadata = {key: np.asarray(column) for key, column in (metadata or {}).items()}
        if channels not in ("first", "last", "none"):
            raise ConfigError(f"channels {channels!r} is not known: choose 'first', 'last' or 'none'")
        self._channels = channels
        self.ids: Sequence[str] = numbered(len(self._inputs)) if ids is None else unique_ids(ids)
        self.classes = None if classes is None or isinstance(classes, int) else tuple(classes)
        self._check_lengths(len(self._inputs))
        if self._targets is not None and classes is not None:
            check_classes(self._targets, self.ids, classes if isinstance(classes, int) else len(classes))

    @classmethod
    def npy(cls, inputs: str | Path, targets: str | Path | None = None, **options: Any) -> "ArraySource":
        """Arrays in npy files, memory-mapped: they may be larger than memory. `options` are those of the class."""
        return cls(_mapped(Path(inputs)), None if targets is None else _mapped(Path(targets)), **options)

    @classmethod
    def npz(
        cls,
        path: str | Path,
        *,
        inputs: str,
        targets: str | None = None,
        ids: str | None = None,
        metadata: Sequence[str] = (),
        **options: Any,
    ) -> "ArraySource":
        """Arrays in an npz file, by their names there. `options` are `channels` and `classes`."""
        named = {name for name in (inputs, targets, ids, *metadata) if name is not None}
        arrays = npz_arrays(Path(path), named)
        return cls(
            arrays[inputs],
            None if targets is None else arrays[targets],
            ids=None if ids is None else [str(name) for name in arrays[ids].tolist()],
            metadata={name: arrays[name] for name in metadata},
            **options,
        )

    def __getstate__(self) -> dict[str, Any]:
        """What is memory-mapped travels by its path: it may be larger than memory."""
        return {key: _by_path(value) for key, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({key: v.opened() if isinstance(v, _ByPath) else v for key, v in state.items()})

    def _check_lengths(self, count: int) -> None:
        lengths = {"ids": len(self.ids), **{key: len(column) for key, column in self.metadata.items()}}
        if self._targets is not None:
            lengths["targets"] = len(self._targets)
        for name, length in lengths.items():
            if length != count:
                raise DataError(f"there are {count} inputs but {length} {name}: expected one per input")

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places."""
        ids = tuple(self.ids[position] for position in positions)
        return Batch(
            ids=ids,
            positions=np.asarray(positions),
            inputs=torch.from_numpy(scaled(channels_first(self._inputs[positions], self._channels))),
            targets=None if self._targets is None else target_tensor(self._targets[positions]),
            metadata={key: column[positions] for key, column in self.metadata.items()} or None,
        )

    @cached_property
    def _fingerprint(self) -> str:
        return digest([self._inputs, self._targets, self._channels, hash_names(self.ids), self.metadata])

    def fingerprint(self) -> str:
        """Of every value, target and id."""
        return self._fingerprint


def _as_array(values: Any, what: str) -> np.ndarray:
    try:
        array: np.ndarray = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    except ValueError as error:
        raise DataError(f"the {what} are no array: {error}") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"expected an array of numbers, got type {array.dtype} for the {what}")
    if array.ndim == 0:
        raise DataError(f"the {what} are a single number: expected an array with one row per sample")
    return array


def channels_first(values: np.ndarray, channels: ChannelsAt, *, batched: bool = True) -> np.ndarray:
    """Samples, or one, as torch wants them; best before they are scaled, while bytes are a quarter of the size."""
    axis = int(batched)
    if channels == "last":
        return np.ascontiguousarray(np.moveaxis(values, -1, axis))
    return np.expand_dims(values, axis) if channels == "none" else values


def scaled(values: np.ndarray) -> np.ndarray:
    """Inputs as float32: uint8 divided by 255, uint16 by 65535, all else as it is."""
    if values.dtype in (np.uint8, np.uint16):
        wide = values.astype(np.float32)
        wide /= np.float32(np.iinfo(values.dtype).max)
        return wide
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and the frame refuses that
        return values if values.dtype == np.float32 else values.astype(np.float32)


def target_tensor(values: np.ndarray) -> torch.Tensor:
    """Targets as torch wants them: whole numbers as int64, others as float32."""
    wide = np.float32 if values.dtype.kind == "f" else np.int64
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.ascontiguousarray(values.astype(wide)))


@dataclass(frozen=True)
class _ByPath:
    """A memory-mapped npy file on its way to another process."""

    path: Path
    shape: tuple[int, ...]

    def opened(self) -> np.ndarray:
        """The array, where the file is there, too."""
        array = _mapped(self.path)
        if array.shape != self.shape:
            raise DataError(f"{self.path} has shape {array.shape} on {socket.gethostname()}, expected {self.shape}")
        return array


def _by_path(value: Any) -> Any:
    """A whole npy file that is memory-mapped by its path, anything else as it is."""
    mapped: Any = getattr(value, "base", None)
    whole = isinstance(mapped, np.memmap) and isinstance(mapped.base, mmap.mmap) and mapped.shape == value.shape
    return _ByPath(Path(str(mapped.filename)), value.shape) if whole and mapped.filename is not None else value


def _mapped(path: Path) -> np.ndarray:
    try:
        return map_array(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path} as an npy file: {reason}") from error


def npz_arrays(path: Path, names: set[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an npz file by their names there; by default all."""
    try:
        with open_plain(path) as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise DataError(f"{path} holds a single array: it is an npy file")
            names = set(stored.files) if names is None else names
            for name in sorted(names - set(stored.files)):
                raise DataError(f"{path} has no array {name!r}: it has {listed(stored.files)}")
            sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in stored.zip.infolist()}
            whole = sum(sizes[name] for name in names)
            check_fits(whole, "unpacking it", "store the arrays as npy files, which are not read at once")
            return {name: stored[name] for name in names}
    except DataError:
        raise
    except Exception as error:  # numpy and zipfile raise many kinds for broken files
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path} as an npz file: {reason}") from error
