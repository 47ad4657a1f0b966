"""Volumes as NIfTI files, laid out as nnU-Net wants them: several sequences per case, and masks. Needs nibabel."""

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from weakspot.core.digest import digest, digest_file
from weakspot.core.errors import BadSample, ConfigError, DataError
from weakspot.core.guarded_open import read_json
from weakspot.core.observation import Batch
from weakspot.data.bids import bids_layout, is_bids, named_sequences
from weakspot.data.links import check_link
from weakspot.data.names import hash_names, listed, readable, shown, unique_ids
from weakspot.data.nifti_files import SUFFIXES, grid_of, header_grid, is_empty, read_voxels
from weakspot.data.nifti_grid import Grid, Orientation, checked_spacing, misplaced, nibabel

Normalise = Literal["none", "volume", "nonzero"]
_SEQUENCE = re.compile(r"(?P<case>.+)_(?P<number>\d{4})(?P<suffix>\.nii(?:\.gz)?)")
_ADD = "add it, or leave the case out"
_APART = 0.1
"""Corners further apart than this, in voxels, are another place."""


class NiftiFolder:
    """Volumes of one case after another from a folder in nnU-Net's layout; one case is in memory at a time.

    folder: a data set with `imagesTr/CASE_0000.nii.gz` … and, where masks are known, `labelsTr/CASE.nii.gz`; its folder
        of images itself (`imagesTs` finds its masks in `labelsTs`); or a BIDS data set, with masks (`_mask`, `_dseg`)
        beside the images or below `derivatives`.
    spacing: millimetres along z, y, x that every case is resampled to, linearly; masks where half of a voxel is
        covered. Without it each case keeps its own.
    orientation: "file" leaves the axes as the files have them and refuses cases that differ from the first; "RAS" turns
        all of them to right, anterior, superior.
    normalise: "volume" gives each sequence of a case mean 0 and standard deviation 1 over all voxels, "nonzero" over
        those that are not 0; "none" leaves intensities as they are.
    sequences: which ones, by their number in the file names, or in BIDS in the order of their names; by default
        all that the data set has, in BIDS those that all cases have.
    cases: which ones; all by default.
    follow_links: whether links may lead out of the folder; those that stay in it are followed in any case.
    mixed: whether cases may be oriented differently, where no network sees them, as with stored samples.

    Inputs are float32 (cases, sequences, z, y, x), targets the masks (cases, z, y, x). Metadata: `spacing_z`,
    `spacing_y`, `spacing_x` in millimetres; `axes`, where x, y and z point to, as "RAS"; and `mask_voxels`, 0 where a
    mask is empty. Cases of different shapes cannot share a batch: unless told otherwise, a batch holds one.
    """

    batch_limit = 1

    def __init__(
        self,
        folder: str | Path,
        *,
        spacing: Sequence[float] | float | None = None,
        orientation: Orientation = "file",
        normalise: Normalise = "none",
        sequences: Sequence[int] | None = None,
        cases: Sequence[str] | None = None,
        follow_links: bool = False,
        mixed: bool = False,
    ):
        nibabel()
        if orientation not in get_args(Orientation) or normalise not in get_args(Normalise):
            raise ConfigError(
                f"orientation is {orientation!r} and normalise {normalise!r}: expected one of "
                f"{', '.join(get_args(Orientation))}, and one of {', '.join(get_args(Normalise))}"
            )
        self._mixed = mixed
        self._spacing, self._orientation, self._normalise = checked_spacing(spacing), orientation, normalise
        self.folder = images_folder(Path(folder))
        bids = bids_layout(self.folder) if is_bids(self.folder) else None
        self._labels = _labels_folder(self.folder) if bids is None else None
        self._masks = None if bids is None else bids.masks
        files = _sequence_files(self.folder) if bids is None else bids.files
        if not follow_links:
            _check_links(Path(folder), self.folder, self._labels, files, list((self._masks or {}).values()))
        self.ids = _chosen_cases(unique_ids(sorted(files)), cases, self.folder)
        about = _about(self.folder)
        common = sorted(set.intersection(*(set(files[case]) for case in self.ids)))
        self.sequences = _chosen_sequences(sequences, {} if bids else about, common if bids else files[self.ids[0]])
        self._names = () if bids is None else bids.names
        self._files = {case: files[case] for case in self.ids}
        self.classes = _class_names(about)
        self._unused = _unused_masks(files, self._labels)

    def read(self, positions: np.ndarray) -> Batch:
        """The cases at these places."""
        ids = tuple(self.ids[position] for position in positions)
        volumes = [self._volume(case) for case in ids]
        masks = [self.mask(case) for case in ids] if self.labelled else None
        _check_one_shape(ids, volumes)
        return Batch(
            ids=ids,
            positions=np.asarray(positions),
            inputs=torch.from_numpy(np.stack(volumes)),
            targets=None if masks is None else torch.from_numpy(np.stack(masks)),
            metadata=self._metadata(ids, masks),
        )

    @property
    def labelled(self) -> bool:
        """Whether there are masks."""
        return self._labels is not None or self._masks is not None

    def grid(self, case: str) -> Grid:
        """Where the voxels of a case lie, in its files and on the working grid."""
        return self._placed(grid_of(self._file(case, self.sequences[0]), case, **self._how), case)

    def mask(self, case: str) -> np.ndarray:
        """The mask of a case on the working grid, int64 (z, y, x)."""
        path = self._mask_file(case)
        voxels, header = read_voxels(path, case)
        grid = self.grid(case)
        _check_same_place(grid, header_grid(header, path, case), self._file(case, self.sequences[0]), path, case)
        if not np.isfinite(voxels).all() or (voxels < 0).any() or (voxels != np.floor(voxels)).any():
            raise BadSample(
                case, f"case {case}: the mask {path.name} holds other values than 0, 1, 2 …: write it again"
            )
        return np.ascontiguousarray(grid.to_working(voxels.astype(np.int64), labels=True))

    def check_files(self, case: str) -> None:
        """Refuse a case of which a file is missing, or lies on no grid; its voxels are not read."""
        for number in self.sequences:
            grid_of(self._file(case, number), case)
        self.grid(case)
        if self.labelled:
            self._mask_file(case)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What the user should know: masks without a case, and cases whose mask is empty."""
        named = [named_sequences(self._names, self.sequences)] if self._names else []
        remarks = [f"{len(self._unused)} masks belong to no case: {listed(self._unused)}"] if self._unused else []
        with ThreadPoolExecutor() as pool:
            empty_masks = [
                case for case, empty in zip(self.ids, pool.map(self._has_empty_mask, self.ids), strict=True) if empty
            ]
        empty = [f"{len(empty_masks)} cases have an empty mask: {listed(empty_masks)}"] if empty_masks else []
        return (*named, *remarks, *empty)

    def _has_empty_mask(self, case: str) -> bool:
        try:
            return self.labelled and is_empty(self._mask_file(case))
        except BadSample:  # reading will name it
            return False

    def fingerprint(self) -> str:
        """Of every file's content and of the options."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        with ThreadPoolExecutor() as pool:
            contents = list(pool.map(self._content_digest, self.ids))
        options = [self._spacing, self._orientation, self._normalise, self.sequences]
        return digest(["nifti 1", hash_names(self.ids), hash_names(contents), options])

    def _content_digest(self, case: str) -> str:
        try:
            paths = [self._file(case, number) for number in self.sequences]
            paths += [self._mask_file(case)] if self.labelled else []
            return digest([digest_file(path, links=True) for path in paths])
        except (BadSample, OSError) as error:  # reading will name it, or leave it out where that is asked for
            return str(error)

    @property
    def _how(self) -> dict[str, Any]:
        return {"orientation": self._orientation, "resampled": self._spacing}

    @cached_property
    def _expected(self) -> tuple[str, str]:
        """The first case whose header can be read, and where its axes point to."""
        for case in self.ids:
            with suppress(BadSample):
                return case, grid_of(self._file(case, self.sequences[0]), case).axes
        raise DataError(f"none of the {len(self.ids)} cases in {self.folder} can be read, beginning with {self.ids[0]}")

    def _placed(self, grid: Grid, case: str) -> Grid:
        """The grid, if it is oriented as it must be."""
        first, axes = (case, grid.axes) if self._mixed else self._expected
        if self._orientation == "file" and grid.axes != axes:
            raise BadSample(
                case,
                f"case {case} is oriented {grid.axes}, the first case {first} {axes}: a network would see it turned; "
                "set orientation 'RAS' to turn all cases the same way",
            )
        return grid

    def _volume(self, case: str) -> np.ndarray:
        """All sequences of a case on the working grid, float32 (sequences, z, y, x)."""
        first: Grid | None = None
        volumes = []
        for number in self.sequences:
            path = self._file(case, number)
            voxels, header = read_voxels(path, case)
            grid = header_grid(header, path, case, **self._how)
            first = first or self._placed(grid, case)
            _check_same_place(first, grid, self._file(case, self.sequences[0]), path, case)
            wrong = int((~np.isfinite(voxels)).sum()) if voxels.dtype.kind == "f" else 0
            if wrong:
                raise BadSample(case, f"case {case}: {wrong} voxels of {path.name} are NaN or infinite: correct them")
            volumes.append(first.to_working(normalised(voxels.astype(np.float32), self._normalise)))
        return np.stack(volumes)

    def _file(self, case: str, number: int) -> Path:
        if case not in self._files:
            raise DataError(f"{self.folder} has no case {case!r}: it has {listed(self.ids)}")
        if number not in self._files[case]:
            there = ", ".join(f"{other:04d}" for other in sorted(self._files[case]))
            raise BadSample(
                case,
                f"case {case} has no sequence {number:04d} in {self.folder} (it has {there}): add {case}_{number:04d}"
                f"{SUFFIXES[0]}, or choose the sequences that all cases have",
            )
        return self._files[case][number]

    def _mask_file(self, case: str) -> Path:
        if self._masks is not None:
            if case not in self._masks:
                raise BadSample(case, f"case {case} has no mask {case}_…_mask.nii.gz or _dseg: {_ADD}")
            return self._masks[case]
        if self._labels is None:
            raise DataError(f"{self.folder} has no masks beside it: expected a folder {_labels_name(self.folder)}")
        for suffix in SUFFIXES:
            if (self._labels / f"{case}{suffix}").is_file():
                return self._labels / f"{case}{suffix}"
        raise BadSample(case, f"case {case} has no mask {self._labels / case}{SUFFIXES[0]}: {_ADD}")

    def _metadata(self, ids: Sequence[str], masks: Sequence[np.ndarray] | None) -> dict[str, np.ndarray]:
        grids = [self.grid(case) for case in ids]
        spacings = np.array([grid.spacing for grid in grids], dtype=np.float64).reshape(-1, 3)
        columns = dict(zip(("spacing_z", "spacing_y", "spacing_x"), spacings.T, strict=True))
        columns["axes"] = np.array([grid.working_axes for grid in grids], dtype=np.str_)
        return columns if masks is None else {**columns, "mask_voxels": np.array([int((m > 0).sum()) for m in masks])}


def normalised(volume: np.ndarray, how: Normalise) -> np.ndarray:
    """Mean 0 and standard deviation 1 over all voxels or those that are not 0; a constant volume becomes 0.

    >>> normalised(np.array([0.0, 1.0, 3.0], dtype=np.float32), "nonzero").tolist()
    [0.0, -1.0, 1.0]
    """
    if how == "none":
        return volume
    inside = volume != 0 if how == "nonzero" else np.ones(volume.shape, dtype=bool)
    values = volume[inside].astype(np.float64)
    scale = float(values.std()) if values.size else 0.0
    out = np.zeros_like(volume)
    if scale > 0:
        out[inside] = ((values - values.mean()) / scale).astype(np.float32)
    return out


def images_folder(folder: Path) -> Path:
    """Where the images of a data set lie: `imagesTr` inside it, or the folder itself."""
    if not folder.is_dir():
        raise DataError(
            f"{folder} is not a folder: give a data set with imagesTr and labelsTr, its folder of images, or a BIDS "
            "data set"
        )
    return folder / "imagesTr" if (folder / "imagesTr").is_dir() else folder


def is_nifti_folder(folder: Path) -> bool:
    """Whether a folder is laid out as nnU-Net (imagesTr inside, or volumes CASE_0000.nii.gz) or BIDS lay out data."""
    if not folder.is_dir():
        return False
    return (
        (folder / "imagesTr").is_dir()
        or is_bids(folder)
        or any(_SEQUENCE.fullmatch(path.name) for path in folder.iterdir())
    )


def _sequence_files(images: Path) -> dict[str, dict[int, Path]]:
    """The files of every case, by the number of the sequence."""
    files: dict[str, dict[int, Path]] = {}
    for path in sorted(images.iterdir()):
        match = _SEQUENCE.fullmatch(path.name)
        if match and not path.name.startswith("."):
            files.setdefault(readable(match["case"]), {}).setdefault(int(match["number"]), path)
    if not files:
        raise DataError(f"{images} holds no volumes: expected files such as CASE_0000.nii.gz, one per sequence")
    return files


def _check_links(
    root: Path, images: Path, labels: Path | None, files: Mapping[str, Mapping[int, Path]], masks: Sequence[Path]
) -> None:
    """Refuse links that lead out of the folders; that of the given one is the user's word."""
    folders = [] if labels is None else [labels]
    for folder in folders if images == root else [images, *folders]:
        check_link(folder, root, follow=False)
    volumes = [path for of_case in files.values() for path in of_case.values()]
    for path in (*volumes, *masks, *(path for folder in folders for path in folder.iterdir())):
        check_link(path, root, *folders, follow=False)


def _labels_name(images: Path) -> str:
    return images.name.replace("images", "labels") if "images" in images.name else "labelsTr"


def _labels_folder(images: Path) -> Path | None:
    beside = images.parent / _labels_name(images)
    return beside if beside.is_dir() and beside != images else None


def _about(images: Path) -> Mapping[str, Any]:
    """What `dataset.json`, in the folder or above it, says."""
    paths = (folder / "dataset.json" for folder in (images, images.parent))
    path = next((path for path in paths if path.exists() or path.is_symlink()), None)
    if path is None:
        return {}
    try:
        said = read_json(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} cannot be read as JSON: {reason}; correct or remove it") from error
    if not isinstance(said, Mapping):
        raise DataError(f"{path} holds {type(said).__name__}, expected a mapping with channel_names and labels")
    return said


def _chosen_cases(cases: tuple[str, ...], wanted: Sequence[str] | None, images: Path) -> tuple[str, ...]:
    if wanted is None:
        return cases
    lost = sorted(set(wanted) - set(cases))
    if lost or not wanted:
        trouble = f"{images} has no case {listed(lost)}" if lost else "cases is empty"
        raise DataError(f"{trouble}: expected some of {listed(cases)}")
    return unique_ids(wanted)


def _chosen_sequences(wanted: Sequence[int] | None, about: Mapping[str, Any], first: Iterable[int]) -> tuple[int, ...]:
    """By choice, by `dataset.json` (nnU-Net 2 says channel_names, 1 says modality), or what the first case has."""
    if wanted is not None:
        if not wanted or len(set(wanted)) != len(wanted):
            raise ConfigError(f"sequences is {list(wanted)}: expected different numbers, as in [0, 1]")
        return tuple(wanted)
    names = about.get("channel_names") or about.get("modality") or {}
    return tuple(range(len(names))) or tuple(sorted(first))


def _class_names(about: Mapping[str, Any]) -> tuple[str, ...] | None:
    """nnU-Net 2 keeps {name: number}, 1 {number: name}; regions of several labels have no one number."""
    labels = about.get("labels")
    if not isinstance(labels, Mapping) or not labels:
        return None
    numbers = {str(k): v for k, v in labels.items()}
    if all(isinstance(value, str) for value in numbers.values()):
        numbers = {name: int(number) for number, name in numbers.items()}
    if sorted(map(str, numbers.values())) != sorted(map(str, range(len(numbers)))):
        return None
    return tuple(sorted(numbers, key=lambda name: int(numbers[name])))


def _unused_masks(files: Mapping[str, Any], labels: Path | None) -> list[str]:
    if labels is None:
        return []
    names = [path.name for path in labels.iterdir() if path.name.endswith(SUFFIXES)]
    return sorted({name.removesuffix(".gz").removesuffix(".nii") for name in names} - set(files))


def _check_same_place(first: Grid, grid: Grid, path: Path, other: Path, case: str) -> None:
    if grid.shape != first.shape:
        raise BadSample(
            case,
            f"case {case}: {other.name} has shape {grid.shape}, {path.name} {first.shape} (x, y, z): bring them onto "
            "one grid",
        )
    apart = misplaced(first, grid)
    if apart > _APART:
        raise BadSample(
            case,
            f"case {case}: {other.name} lies {apart:.3g} voxels from {path.name} by their affines (axes {grid.axes} "
            f"and {first.axes}): register them, or copy the right affine",
        )


def _check_one_shape(ids: Sequence[str], volumes: Sequence[np.ndarray]) -> None:
    for case, volume in zip(ids, volumes, strict=True):
        if volume.shape != volumes[0].shape:
            raise DataError(
                f"case {shown(case)} has shape {volume.shape[1:]}, case {shown(ids[0])} {volumes[0].shape[1:]} "
                "(z, y, x): cases of different shapes cannot share a batch; use batches of 1"
            )
