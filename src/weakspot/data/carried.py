"""Where the voxels of an array lie that carries its affine, as MONAI's MetaTensor does."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weakspot.data.nifti_grid import Grid
from weakspot.data.parts import number_array

_SWAP = np.eye(4)[[2, 1, 0, 3]]


def carried_grid(value: Any) -> Grid | None:
    """The grid of a volume (channels, i, j, k) whose `affine` leads from voxels (i, j, k) to millimetres; else None.

    Its axes are read as z, y and x, whatever they are: the affine says where they point to, so that lengths, letters
    and places in the patient are right.
    """
    affine = getattr(value, "affine", None)
    if affine is None or getattr(value, "ndim", 0) != 4:
        return None
    matrix = number_array(affine).astype(np.float64)
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all() or abs(np.linalg.det(matrix[:3, :3])) < 1e-9:
        return None
    z, y, x = (int(side) for side in value.shape[1:])
    return Grid((x, y, z), matrix @ _SWAP)


def placed_metadata(values: Sequence[Any]) -> dict[str, np.ndarray]:
    """`spacing_z`, `spacing_y`, `spacing_x` and `axes` of volumes that carry their affines; else nothing."""
    grids = [carried_grid(value) for value in values]
    known = [grid for grid in grids if grid is not None]
    if not known or len(known) < len(grids):
        return {}
    spacings = np.array([grid.spacing for grid in known], dtype=np.float64)
    columns = dict(zip(("spacing_z", "spacing_y", "spacing_x"), spacings.T, strict=True))
    return {**columns, "axes": np.array([_letters(grid) for grid in known], dtype=np.str_)}


def _letters(grid: Grid) -> str:
    """Where x, y and z point to, as "RAS", without nibabel: the largest part of each axis."""
    letters = []
    for column in grid.affine[:3, :3].T:
        along = int(np.abs(column).argmax())
        letters.append(("RL", "AP", "SI")[along][int(column[along] < 0)])
    return "".join(letters)
