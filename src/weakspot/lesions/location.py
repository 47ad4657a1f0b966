"""Where a lesion lies in the head: its place within what is imaged, and its distance to the border of that."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import KDTree

from weakspot.lesions.volumes import known_axes, turns

Floats = NDArray[np.float64]
POSITION = ("position_up", "position_front", "position_right")
BORDER = "border_distance"
LOCATION = (*POSITION, BORDER)
_MOST = 1 << 22
"""Voxels of the mask whose border is looked for; of larger ones every second, third … voxel along each axis."""


def location_columns(
    image: np.ndarray, centres: Floats, *, spacing: Sequence[float] | None = None, axes: str = ""
) -> dict[str, Floats]:
    """Of each lesion its place from 0 to 1 in the box around what is imaged, and the distance to its border in mm.

    What is imaged are voxels of the first sequence that differ from the one in the corner, the background.

    image: (sequences, z, y, x).
    centres: (lesions, 3), in voxels.
    spacing: mm along z, y, x; without it distances are in voxels.
    axes: where x, y and z point to, as "RAS"; without it up, front and right are z, y and x as they are.
    """
    first = image[0]
    step = max(1, int(np.ceil((first.size / _MOST) ** (1 / 3))))
    mask = first[::step, ::step, ::step] != first[0, 0, 0]
    if not mask.any():
        mask = np.ones(mask.shape, dtype=np.bool_)
    places = np.nonzero(mask)
    low, high = (np.array([end(along) for along in places]) * step for end in (np.min, np.max))
    share = np.clip((centres - low) / np.maximum(high - low, 1), 0, 1)
    order, turned = turns(known_axes(axes))
    share = np.where(turned, 1 - share[:, order], share[:, order])
    sides = np.ones(3) if spacing is None else np.asarray(spacing, dtype=np.float64)
    inside = np.pad(mask, 1)
    border = np.argwhere(inside & ~ndimage.binary_erosion(inside)) - 1
    distance = KDTree(border * step * sides).query(centres * sides)[0] if len(centres) else np.zeros(0)
    return {**dict(zip(POSITION, share.T, strict=True)), BORDER: np.asarray(distance, dtype=np.float64)}
