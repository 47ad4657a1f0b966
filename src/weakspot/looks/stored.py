"""Stored softmax volumes in place of a network, as nnU-Net writes them with `--save_probabilities`."""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from weakspot.core.digest import digest
from weakspot.core.errors import BadSample, ConfigError, DataError, SubjectError
from weakspot.core.guarded_open import open_plain
from weakspot.core.subject import Subject
from weakspot.looks.flips import are_flipped
from weakspot.looks.members import asked

KEYS = ("probabilities", "softmax")
"""What nnU-Net 2 and 1 call the array."""
_LATER_HEADER = np.lib.format.read_array_header_2_0
_SUMS_TO = 0.02
"""How far the probabilities of a voxel may be from 1 together: nnU-Net stores them in half precision."""


class StoredSamples:
    """Softmax volumes on disk, one folder per network: `folders[k]/CASE.npz`, shape (classes, z, y, x).

    Takes the place of a network; look k of `Members` is the volume of folder k. One volume is in memory at a time. The
    volumes lie on the grid of the image files, as nnU-Net writes them, so the images must be read as they are: without
    resampling, and with orientation "file".

    folders: one per fold or sample, or one alone, such as the average that nnU-Net writes for several folds: then there
        is one look, and no variance. A case is found by its id.
    classes: how many there are, background included; by default as many as the first file has.
    key: the array's name in the files; by default what nnU-Net 2 or 1 calls it.
    """

    def __init__(
        self, folders: Sequence[str | Path] | str | Path, *, classes: int | None = None, key: str | None = None
    ):
        listed = [folders] if isinstance(folders, str | Path) else list(folders)
        if not listed or (classes is not None and classes < 2):
            raise ConfigError(
                f"folders is {folders!r} and classes {classes}: expected a list of folders, one per network, and two "
                "classes or more"
            )
        self.folders = tuple(map(Path, listed))
        self._keys = KEYS if key is None else (key,)
        missing = next((folder for folder in self.folders if not folder.is_dir()), None)
        if missing is not None:
            raise DataError(f"{missing} is no folder: expected stored samples CASE.npz there")
        self.classes = self._class_count() if classes is None else classes

    def __call__(self, inputs: Tensor) -> Tensor:
        """The volumes that are asked for; NaN where no network was requested."""
        question = asked()
        if question is None:
            nothing = torch.full((), torch.nan, device=inputs.device)
            return nothing.expand(inputs.shape[0], self.classes, *inputs.shape[2:])
        if are_flipped():
            raise SubjectError(
                "stored samples are of the image as it is, so flips mean nothing: sample by members alone"
            )
        folder = self.folders[question.of(len(self.folders))]
        shape = (self.classes, *inputs.shape[2:])
        volumes = [self.volume(folder, case, shape) for case in question.ids]
        return (volumes[0][None] if len(volumes) == 1 else torch.stack(volumes)).to(inputs.device)

    def subject(self, *, names: Sequence[str] | None = None) -> Subject:
        """The stored samples as a Subject; `names` are those of the classes."""
        return Subject(
            self,
            task="segmentation",
            classes=self.classes if names is None else names,
            scores="probabilities",
            fingerprint=self.fingerprint(),
        )

    def fingerprint(self) -> str:
        """Of the content of all files, by the checksums that the archives keep."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return digest(["stored samples 1", self.classes, self._keys, [_contents(folder) for folder in self.folders]])

    def cases(self) -> tuple[str, ...]:
        """The cases that every folder has."""
        return tuple(sorted(set.intersection(*({path.stem for path in f.glob("*.npz")} for f in self.folders))))

    def _class_count(self) -> int:
        """By the first file that can be read."""
        for path in sorted(path for folder in self.folders for path in folder.glob("*.npz")):
            with suppress(BadSample):
                return max(2, self.shape(path.parent, path.stem)[0])
        return 2

    def shape(self, folder: Path, case: str) -> tuple[int, ...]:
        """Of a stored volume, by the header of its array alone: (classes, z, y, x)."""
        path = folder / f"{case}.npz"
        with _reading(path, case), open_plain(path) as file, zipfile.ZipFile(file) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            with archive.open(f"{self._key(names, path, case)}.npy") as array:
                version = np.lib.format.read_magic(array)
                header = np.lib.format.read_array_header_1_0 if version == (1, 0) else _LATER_HEADER
                return tuple(int(side) for side in header(array)[0])

    def check_case(self, case: str, shape: Sequence[int], *, whole: bool = True) -> None:
        """Refuse a case of which a folder has no volume of this shape (z, y, x).

        whole: read the volumes too; otherwise their headers alone.
        """
        expected = (self.classes, *shape)
        for folder in self.folders:
            _check_shape(self.shape(folder, case), expected, folder / f"{case}.npz", case)
            if whole:
                self.volume(folder, case, expected)

    def _key(self, names: Sequence[str], path: Path, case: str) -> str:
        key = next((key for key in self._keys if key in names), None)
        if key is None:
            raise BadSample(
                case,
                f"case {case}: {path} has {', '.join(names) or 'no array'}, expected {self._keys[0]}: give key, or "
                "predict it again",
            )
        return key

    def volume(self, folder: Path, case: str, shape: tuple[int, ...]) -> Tensor:
        """The volume of a case in one folder, in half precision where it is stored so; no softmax is refused."""
        path = folder / f"{case}.npz"
        with _reading(path, case), open_plain(path) as file, np.load(file, allow_pickle=False) as stored:
            values = stored[self._key(list(stored), path, case)]
            values = values if values.dtype == np.float16 else values.astype(np.float32)
        _check_volume(values, shape, path, case)
        return torch.from_numpy(values)


@contextmanager
def _reading(path: Path, case: str) -> Iterator[None]:
    """Errors of a file by the name of its case."""
    try:
        yield
    except FileNotFoundError as error:
        raise BadSample(
            case, f"case {case} has no stored sample {path}: predict it with --save_probabilities"
        ) from error
    except BadSample:
        raise
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise BadSample(case, f"case {case}: {path} cannot be read: {error}; copy or predict it again") from error


def _check_shape(found: tuple[int, ...], shape: tuple[int, ...], path: Path, case: str) -> None:
    if found != shape:
        raise BadSample(
            case,
            f"case {case}: {path} has shape {found}, expected {shape} (classes, z, y, x): read the images "
            "without resampling and with orientation 'file'; nnU-Net 1 may have stored a cropped volume, then predict "
            "with nnU-Net 2",
        )


def _check_volume(values: np.ndarray, shape: tuple[int, ...], path: Path, case: str) -> None:
    _check_shape(values.shape, shape, path, case)
    slices = (values[:, part].astype(np.float32) for part in range(values.shape[1]))  # a whole volume takes memory
    ends = np.array([(part.min(), (total := part.sum(0)).min(), total.max()) for part in slices])
    lowest, low, high = float(ends[:, 0].min()), float(ends[:, 1].min()), float(ends[:, 2].max())
    if not (lowest >= 0 and low >= 1 - _SUMS_TO and high <= 1 + _SUMS_TO):
        raise BadSample(
            case,
            f"case {case}: the numbers of a voxel in {path} are no probabilities that sum to 1 (least "
            f"{lowest:.3g}, largest sum {high:.3g}): store the softmax; regions that overlap have none",
        )


def _contents(folder: Path) -> list[tuple[str, int, int]]:
    contents = []
    for path in sorted(folder.glob("*.npz")):
        try:
            with open_plain(path) as file, zipfile.ZipFile(file) as archive:
                contents += [
                    (f"{path.stem}/{entry.filename}", entry.file_size, entry.CRC) for entry in archive.infolist()
                ]
        except (OSError, zipfile.BadZipFile) as error:  # reading it will name it
            contents.append((f"{path.stem}: {error}", 0, 0))
    if not contents:
        raise SubjectError(f"{folder} holds no stored samples CASE.npz: predict with nnU-Net's --save_probabilities")
    return contents
