"""Embedded: brain-like volumes with lesions and look-alikes, two sequences each, made from their id alone.

Nothing anatomical: an ellipsoid head with skull, cerebrospinal fluid, folded grey and white matter and two ventricles;
lesions are bright in the first sequence (as in FLAIR) and dark in the second (as in T1), most near the ventricles. Of
the look-alikes, vessels are bright in both, cortical spots lie outside the white matter, and veils are as faint as the
faintest lesions but have no border.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from scipy import ndimage

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError, RunError
from weakspot.core.files import whole_folder
from weakspot.core.observation import Batch
from weakspot.core.stateless_random import sample_keys
from weakspot.data.nifti_files import write_nifti

SEQUENCES = ("FLAIR", "T1")
CLASSES = ("background", "lesion")
Shape = tuple[int, int, int]
SHAPE: Shape = (24, 32, 28)
SPACING = (6.0, 5.5, 5.5)
"""Millimetres along z, y, x: a whole head in few voxels."""
_FLAIR = {"skull": 0.9, "fluid": 0.1, "grey": 0.62, "white": 0.5}
_T1 = {"skull": 0.8, "fluid": 0.15, "grey": 0.5, "white": 0.75}


@dataclass(frozen=True)
class Brain:
    """One volume with its truth; arrays are (z, y, x).

    images: (sequences, z, y, x), float32.
    lesions: 1 … n, 0 elsewhere.
    look_alikes: 1 … m likewise.
    kinds: of the look-alikes, in order.
    """

    images: np.ndarray
    lesions: np.ndarray
    look_alikes: np.ndarray
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class BrainVolumes:
    """A source of such volumes; targets are the lesion masks, metadata spacing and axes.

    split: part of the ids, so that splits differ.
    count: how many.
    shape: (z, y, x).
    """

    split: str
    count: int
    shape: Shape = SHAPE

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """One name per volume."""
        return tuple(f"{self.split}-{number:03d}" for number in range(self.count))

    def read(self, positions: np.ndarray) -> Batch:
        """The volumes at these places."""
        ids = tuple(self.ids[position] for position in positions)
        made = [brain_of(case, self.shape) for case in ids]
        spacing = {f"spacing_{axis}": np.full(len(ids), side) for axis, side in zip("zyx", SPACING, strict=True)}
        placed = {**spacing, "axes": np.full(len(ids), "RAS")}
        return Batch(
            ids=ids,
            positions=np.asarray(positions),
            inputs=torch.from_numpy(np.stack([brain.images for brain in made])),
            targets=torch.from_numpy(np.stack([brain.lesions > 0 for brain in made]).astype(np.int64)),
            metadata=placed,
        )

    def fingerprint(self) -> str:
        """Of what determines the volumes."""
        return digest(["brain volumes 1", self.split, self.count, self.shape])


def brain_of(case: str, shape: Shape = SHAPE) -> Brain:
    """The volume that belongs to an id."""
    return brain(int(sample_keys((case,))[0]), shape)


def brain(seed: int, shape: Shape = SHAPE) -> Brain:
    """A volume by its seed; at least 16 voxels along each axis."""
    if min(shape) < 16:
        raise ConfigError(f"a brain of shape {shape} has no room for its parts: expected 16 voxels or more each way")
    rng = np.random.default_rng(seed)
    tissue, depth = _tissues(rng, shape)
    flair, t1 = (_painted(tissue, values) for values in (_FLAIR, _T1))
    lesions = _lesions(rng, tissue, depth, flair, t1)
    look_alikes, kinds = _look_alikes(rng, tissue, lesions, flair, t1)
    field = 1 + 0.08 * _smooth(rng, shape, 8)
    inside = tissue > 0
    images = [(image * field + rng.normal(0, 0.035, shape)) * inside for image in (flair, t1)]
    return Brain(np.stack(images).astype(np.float32), lesions, look_alikes, kinds)


def _tissues(rng: np.random.Generator, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """0 outside, 1 skull, 2 fluid, 3 grey, 4 white; and the distance of white matter from the ventricles, in voxels."""
    grid = np.stack(np.meshgrid(*(np.linspace(-1, 1, side) for side in shape), indexing="ij"))
    turn = rng.normal(0, 0.03, 3)[:, None, None, None]
    radius = np.sqrt((((grid - turn) / np.array([0.92, 0.95, 0.9])[:, None, None, None]) ** 2).sum(0))
    folded = radius + 0.05 * _smooth(rng, shape, 1.6)
    tissue = np.select([radius < 0.86, radius < 0.93, radius < 1], [3, 2, 1], 0)
    tissue[folded < 0.72] = 4
    ventricles = _ventricles(rng, grid)
    tissue[ventricles] = 2
    return tissue, ndimage.distance_transform_edt(~ventricles)


def _ventricles(rng: np.random.Generator, grid: np.ndarray) -> np.ndarray:
    """Two curved tubes, one in each half."""
    z, y, x = grid
    size = rng.uniform(0.8, 1.2)
    apart = 0.16 + 0.12 * y**2
    inside = ((np.abs(x) - apart) / 0.09) ** 2 + (y / 0.42) ** 2 + ((z - 0.08 + 0.3 * y**2) / 0.16) ** 2 < size
    return np.asarray(inside)


def _painted(tissue: np.ndarray, values: dict[str, float]) -> np.ndarray:
    levels = np.array([0.0, values["skull"], values["fluid"], values["grey"], values["white"]])
    return np.asarray(ndimage.gaussian_filter(levels[tissue], 0.5))


def _lesions(
    rng: np.random.Generator, tissue: np.ndarray, depth: np.ndarray, flair: np.ndarray, t1: np.ndarray
) -> np.ndarray:
    """Paint up to eight lesions into white matter, rather near the ventricles; their labels."""
    labels = np.zeros(tissue.shape, dtype=np.int32)
    chance = (tissue == 4) * np.exp(-depth / 4)
    for _ in range(int(rng.integers(2, 9))):
        blob = _blob(rng, _place(rng, chance), rng.uniform(1.1, 2.6), tissue.shape) & (tissue == 4) & (labels == 0)
        if blob.sum() >= 3 and not (ndimage.binary_dilation(blob, np.ones((3, 3, 3))) & (labels > 0)).any():
            labels[blob] = labels.max() + 1
            strength = rng.uniform(0.18, 0.5)
            flair[blob] += strength
            t1[blob] -= 0.7 * strength
    return labels


def _look_alikes(
    rng: np.random.Generator, tissue: np.ndarray, lesions: np.ndarray, flair: np.ndarray, t1: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    labels, kinds = np.zeros(tissue.shape, dtype=np.int32), []
    free = ~ndimage.binary_dilation(lesions > 0, np.ones((3, 3, 3)), iterations=1)
    for kind in rng.permutation(["vessel", "vessel", "cortex", "cortex", "veil", "veil"])[: rng.integers(2, 7)]:
        matter = tissue == (3 if kind == "cortex" else 4)
        centre = _place(rng, (matter & free).astype(float))
        blob = _blob(rng, centre, rng.uniform(1.1, 2.0), tissue.shape, long=2.5 if kind == "vessel" else 1.0)
        blob &= free & (labels == 0) & (tissue >= 3)
        strength = rng.uniform(0.2, 0.5)
        if kind == "veil":
            flair += 0.8 * strength * ndimage.gaussian_filter(blob.astype(float), 1.0)
        else:
            flair[blob] += strength
            t1[blob] += strength * (0.4 if kind == "vessel" else 0.0)
        if blob.any():
            kinds.append(str(kind))
            labels[blob] = len(kinds)
    return labels, tuple(kinds)


def _place(rng: np.random.Generator, chance: np.ndarray) -> np.ndarray:
    """A voxel, drawn with these chances."""
    total = np.cumsum(chance.ravel())
    return np.array(np.unravel_index(int(np.searchsorted(total, rng.uniform(0, total[-1]))), chance.shape))


def _blob(
    rng: np.random.Generator, centre: np.ndarray, radius: float, shape: Shape, *, long: float = 1.0
) -> np.ndarray:
    """An ellipsoid in some direction, its border uneven; boolean."""
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    offsets = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1) - centre
    radii = radius * rng.uniform(0.75, 1.25, 3) * np.array([long, 1 / np.sqrt(long), 1 / np.sqrt(long)])
    distance = np.sqrt((((offsets @ axes) / radii) ** 2).sum(-1))
    return np.asarray(distance + 0.2 * _smooth(rng, shape, 1.2) < 1)


def _smooth(rng: np.random.Generator, shape: Shape, width: float) -> np.ndarray:
    """Noise without details smaller than `width`, mean 0 and standard deviation 1."""
    noise = ndimage.gaussian_filter(rng.normal(size=shape), width, mode="wrap")
    return np.asarray((noise - noise.mean()) / noise.std())


def write_data_set(folder: str | Path, cases: Sequence[str], *, shape: Shape = SHAPE) -> None:
    """Write volumes as NIfTI files in nnU-Net's layout: `imagesTr`, `labelsTr` and `dataset.json`. Needs nibabel."""
    if Path(folder).exists():
        raise RunError(f"{folder} exists already: remove it, or choose another place")
    with whole_folder(Path(folder)) as scratch:
        _write_cases(scratch, cases, shape)
        about = {
            "channel_names": dict(enumerate(SEQUENCES)),
            "labels": {name: number for number, name in enumerate(CLASSES)},
            "numTraining": len(cases),
            "file_ending": ".nii.gz",
        }
        (scratch / "dataset.json").write_text(json.dumps(about), encoding="utf-8")


def _write_cases(top: Path, cases: Sequence[str], shape: Shape) -> None:
    for name in ("imagesTr", "labelsTr"):
        (top / name).mkdir()
    affine = np.diag([*SPACING[::-1], 1.0])
    for case in cases:
        made = brain_of(case, shape)
        for number, image in enumerate(made.images):
            write_nifti(top / "imagesTr" / f"{case}_{number:04d}.nii.gz", image.transpose(2, 1, 0), affine)
        write_nifti(top / "labelsTr" / f"{case}.nii.gz", (made.lesions > 0).astype(np.uint8).transpose(2, 1, 0), affine)
