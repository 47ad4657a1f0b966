"""The grid of a NIfTI file and the one a network works on: turned, resampled, and exactly back again.

Arrays are (z, y, x) throughout, as nnU-Net has them; NIfTI files keep (x, y, z). World coordinates are millimetres,
right, anterior, superior.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import ndimage

from weakspot.core.errors import ConfigError

Orientation = Literal["file", "RAS"]
Spacing = tuple[float, float, float]
"""Millimetres between voxels along z, y and x."""


def nibabel() -> Any:
    """The library that knows the format; a message that says how to get it where it is missing."""
    try:
        import nibabel as loaded
    except ImportError as error:
        raise ConfigError("NIfTI files need nibabel: pip install 'weakspot[lesions]'") from error
    return loaded


@dataclass(frozen=True, eq=False)
class Grid:
    """Where the voxels of a file lie, and of the working grid made from it.

    shape: of the file's array, (x, y, z).
    affine: of the file, from voxels to millimetres.
    orientation: "file" leaves the axes as they are; "RAS" turns them until x points to the right, y to the front, z up.
    resampled: millimetres between voxels of the working grid along z, y, x; None for those of the file. The working
        grid has the same centre as the file's and as many voxels as come nearest to its extent.
    """

    shape: tuple[int, int, int]
    affine: np.ndarray
    orientation: Orientation = "file"
    resampled: Spacing | None = None

    @cached_property
    def axes(self) -> str:
        """Where the axes of the file point to, as "RAS" or "LPS"."""
        return "".join(nibabel().aff2axcodes(self.affine))

    @cached_property
    def spacing(self) -> Spacing:
        """Of the working grid, in millimetres along z, y, x."""
        return self.resampled or self._turned_spacing

    @cached_property
    def working_shape(self) -> tuple[int, int, int]:
        """Of arrays on the working grid, (z, y, x)."""
        extents = np.multiply(self._turned_shape, self._turned_spacing) / self.spacing
        z, y, x = np.maximum(1, np.floor(extents + 0.5)).astype(int).tolist()
        return z, y, x

    @cached_property
    def working_affine(self) -> np.ndarray:
        """From voxels (z, y, x) of the working grid to millimetres, shape (4, 4)."""
        scale, offset = self._steps(self._turned_shape, self.working_shape, self._scale)
        scaling = np.diag([*scale, 1.0])
        scaling[:3, 3] = offset
        swap = np.eye(4)[[2, 1, 0, 3]]
        return np.asarray(self._turned_affine @ swap @ scaling)

    @cached_property
    def working_axes(self) -> str:
        """Where x, y and z of the working grid point to, as "RAS" or "LPS"."""
        return "".join(nibabel().aff2axcodes(self.working_affine))[::-1]

    def millimetres(self, voxels: np.ndarray) -> np.ndarray:
        """The world coordinates of places given in voxels (z, y, x) of the working grid, both of shape (places, 3)."""
        places = np.asarray(voxels, dtype=np.float64).reshape(-1, 3)
        return np.asarray(places @ self.working_affine[:3, :3].T + self.working_affine[:3, 3])

    def to_working(self, volume: np.ndarray, *, labels: bool = False) -> np.ndarray:
        """A file's array (x, y, z) on the working grid (z, y, x), interpolated linearly; see `resampled_labels`."""
        turned = self._turn(volume, back=False).transpose(2, 1, 0)
        return self._resample(turned, self.working_shape, self._scale, labels)

    def to_file(self, volume: np.ndarray, *, labels: bool = False) -> np.ndarray:
        """An array of the working grid (z, y, x) on the grid of the file (x, y, z)."""
        if volume.shape != self.working_shape:
            raise ConfigError(f"expected an array of shape {self.working_shape} (z, y, x), got {volume.shape}")
        turned = self._resample(volume, self._turned_shape, 1 / self._scale, labels)
        return self._turn(turned.transpose(2, 1, 0), back=True)

    @cached_property
    def _turns(self) -> tuple[np.ndarray, np.ndarray]:
        """How the file's axes are turned to the working ones, and back."""
        orientations = nibabel().orientations
        file_axes = orientations.io_orientation(self.affine)
        wanted = file_axes if self.orientation == "file" else orientations.axcodes2ornt("RAS")
        return orientations.ornt_transform(file_axes, wanted), orientations.ornt_transform(wanted, file_axes)

    def _turn(self, volume: np.ndarray, *, back: bool) -> np.ndarray:
        return np.asarray(nibabel().orientations.apply_orientation(volume, self._turns[back]))

    @cached_property
    def _turned_affine(self) -> np.ndarray:
        return np.asarray(self.affine @ nibabel().orientations.inv_ornt_aff(self._turns[0], self.shape))

    @cached_property
    def _turned_shape(self) -> tuple[int, int, int]:
        """Of the turned array before resampling, (z, y, x)."""
        places = self._turns[0][:, 0].astype(int)
        x, y, z = (self.shape[int(np.flatnonzero(places == axis)[0])] for axis in range(3))
        return z, y, x

    @cached_property
    def _turned_spacing(self) -> Spacing:
        x, y, z = np.linalg.norm(self._turned_affine[:3, :3], axis=0).tolist()
        return z, y, x

    @cached_property
    def _scale(self) -> np.ndarray:
        return np.divide(self.spacing, self._turned_spacing)

    @staticmethod
    def _steps(source: Sequence[int], target: Sequence[int], scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """source voxel = scale · target voxel + offset, with the centres of both grids in one place."""
        return scale, (np.asarray(source) - 1) / 2 - scale * (np.asarray(target) - 1) / 2

    def _resample(self, volume: np.ndarray, shape: tuple[int, ...], scale: np.ndarray, labels: bool) -> np.ndarray:
        steps, offset = self._steps(volume.shape, shape, scale)
        if volume.shape == tuple(shape) and np.allclose(steps, 1, rtol=0, atol=1e-6):
            return volume
        return resampled_labels(volume, steps, offset, shape) if labels else _resampled(volume, steps, offset, shape, 1)


def _resampled(
    volume: np.ndarray, steps: np.ndarray, offset: np.ndarray, shape: tuple[int, ...], order: int
) -> np.ndarray:
    return np.asarray(ndimage.affine_transform(volume, steps, offset, shape, order=order, mode="nearest"))


def resampled_labels(labels: np.ndarray, steps: np.ndarray, offset: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Labels where at least half of a voxel's linear interpolation is labelled; there, the label of the nearest voxel.

    Small lesions keep their size better than by the nearest voxel alone.
    """
    inside = _resampled((labels > 0).astype(np.float32), steps, offset, shape, 1) >= 0.5
    near = _resampled(labels, steps, offset, shape, 0)
    around = _resampled(ndimage.maximum_filter(labels, 3), steps, offset, shape, 0)
    return np.where(inside, np.where(near > 0, near, around), 0).astype(labels.dtype)


def misplaced(grid: Grid, other: Grid) -> float:
    """How far two grids of one shape lie apart at their corners, at most, in voxels of the first.

    >>> shifted = np.diag([2.0, 2.0, 2.0, 1.0])
    >>> shifted[0, 3] = 1
    >>> misplaced(Grid((4, 4, 4), np.diag([2.0, 2.0, 2.0, 1.0])), Grid((4, 4, 4), shifted))
    0.5
    """
    ends = np.array(np.meshgrid(*((0, size - 1) for size in grid.shape))).reshape(3, -1)
    corners = np.vstack([ends, np.ones(ends.shape[1])])
    apart = np.linalg.norm(((grid.affine - other.affine) @ corners)[:3], axis=0).max()
    return float(apart / np.linalg.norm(grid.affine[:3, :3], axis=0).min())


def checked_spacing(spacing: Sequence[float] | float | None) -> Spacing | None:
    """One number for all axes, or three for z, y and x.

    >>> checked_spacing(1), checked_spacing([3, 1, 1])
    ((1.0, 1.0, 1.0), (3.0, 1.0, 1.0))
    """
    if spacing is None:
        return None
    sides = [spacing] * 3 if isinstance(spacing, int | float) else list(spacing)
    if len(sides) != 3 or not all(np.isfinite(side) and side > 0 for side in sides):
        raise ConfigError(f"spacing is {spacing!r}: expected millimetres along z, y and x, as in [1, 1, 1]")
    z, y, x = map(float, sides)
    return z, y, x
