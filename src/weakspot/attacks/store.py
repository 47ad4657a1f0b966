"""Where the attacked parts of a data set are kept: in memory, or in a folder so that a killed run resumes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from zipfile import BadZipFile

import numpy as np

from weakspot.core.errors import RunError
from weakspot.core.files import whole_folder, writing
from weakspot.core.guarded_open import map_array, open_plain
from weakspot.core.sealed import damage, seal

Arrays = Mapping[str, np.ndarray]


class Store(Protocol):
    """Keeps numbered parts: the changed inputs, and the columns of their outcome."""

    def has(self, number: int) -> bool:
        """Whether the part is there, and so whole."""

    def put(self, number: int, inputs: np.ndarray, columns: Arrays) -> None:
        """Keep a part."""

    def inputs(self, number: int) -> np.ndarray:
        """The inputs of a part."""

    def columns(self, number: int) -> Arrays:
        """The columns of a part."""


class MemoryStore:
    """Parts in memory."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[np.ndarray, Arrays]] = {}

    def has(self, number: int) -> bool:
        """Whether the part was put."""
        return number in self._parts

    def put(self, number: int, inputs: np.ndarray, columns: Arrays) -> None:
        """Keep a part."""
        self._parts[number] = inputs, columns

    def inputs(self, number: int) -> np.ndarray:
        """The inputs of a part."""
        return self._parts[number][0]

    def columns(self, number: int) -> Arrays:
        """The columns of a part."""
        return self._parts[number][1]


class FolderStore:
    """Parts as folders `part-000000`, each written whole or not at all; inputs are memory-mapped."""

    def __init__(self, folder: Path):
        self._folder = folder

    def has(self, number: int) -> bool:
        """Whether the part's folder is there."""
        return self._part(number).is_dir()

    def put(self, number: int, inputs: np.ndarray, columns: Arrays) -> None:
        """Write a part."""
        with whole_folder(self._part(number)) as scratch, writing(scratch):
            np.save(scratch / "inputs.npy", inputs, allow_pickle=False)
            np.savez(scratch / "outcome.npz", **columns)  # type: ignore[arg-type]
            seal(scratch)

    def inputs(self, number: int) -> np.ndarray:
        """The inputs of a part, not yet read."""
        with _reading(self._part(number)) as part:
            return map_array(part / "inputs.npy", links=False)

    def columns(self, number: int) -> Arrays:
        """The columns of a part."""
        with (
            _reading(self._part(number)) as part,
            open_plain(part / "outcome.npz", links=False) as file,
            np.load(file, allow_pickle=False) as stored,
        ):
            return dict(stored)

    def _part(self, number: int) -> Path:
        return self._folder / f"part-{number:06d}"


def damaged_parts(folder: Path) -> Iterator[tuple[Path, str]]:
    """The parts of a set that are not as they were written, each with what is wrong."""
    for part in sorted(folder.glob("part-*")):
        reason = damage(part)
        if reason:
            yield part, reason


@contextmanager
def _reading(part: Path) -> Iterator[Path]:
    """Name the part that cannot be read, and say what to do."""
    try:
        yield part
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise RunError(f"{part} is damaged: {error}; delete that folder, and the part is made again") from error
