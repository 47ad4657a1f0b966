"""Lesions as connected components, and how far each agrees with the truth.

Two voxels belong to the same lesion if they touch by a face, an edge or a corner: 26-connectivity in a volume, 8 in a
slice (Lambert et al. 2022). Agreement is the adjusted intersection over union of Rottmann et al. 2020, which does not
punish a prediction for a true lesion that is covered by several predicted ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from weakspot.core.errors import ConfigError, DataError

Labels = NDArray[np.int32]
Floats = NDArray[np.float64]

DIMENSIONS = (2, 3)


def lesion_components(mask: np.ndarray, *, smallest: int = 3) -> tuple[Labels, int]:
    """The lesions of a mask as labels 1 … count, 0 elsewhere, in the order of their first voxels; and their count.

    mask: boolean, a slice or a volume.
    smallest: components of fewer voxels are left out.

    >>> labels, count = lesion_components(np.eye(3, dtype=bool), smallest=1)
    >>> count, labels.diagonal().tolist()
    (1, [1, 1, 1])
    """
    if mask.ndim not in DIMENSIONS:
        raise DataError(f"a mask has 2 or 3 dimensions, got shape {mask.shape}")
    if smallest < 1:
        raise ConfigError(f"smallest is {smallest}: expected 1 voxel or more")
    labels = np.zeros(mask.shape, dtype=np.int32)
    box = _bounding_box(mask)
    if box is None:
        return labels, 0
    numbered, count = ndimage.label(mask[box], structure=np.ones((3,) * mask.ndim, dtype=bool), output=np.int32)
    keep = np.bincount(numbered[numbered > 0], minlength=count + 1) >= smallest
    keep[0] = False
    new = np.where(keep, np.cumsum(keep), 0).astype(np.int32)
    inside = numbered > 0
    numbered[inside] = new[numbered[inside]]
    labels[box] = numbered
    return labels, int(keep.sum())


def _bounding_box(mask: np.ndarray) -> tuple[slice, ...] | None:
    """The smallest box around what is true; none where nothing is."""
    places = np.nonzero(mask)
    return tuple(slice(along.min(), along.max() + 1) for along in places) if len(places[0]) else None


@dataclass(frozen=True)
class Geometry:
    """Size and place of each lesion, shape (lesions,) and (lesions, dimensions)."""

    voxels: NDArray[np.int64]
    centre: Floats
    """The centre of mass in voxels, in the order of the array's axes (z, y, x)."""


def lesion_geometry(labels: Labels, count: int) -> Geometry:
    """How many voxels each lesion has, and where its centre lies.

    >>> lesion_geometry(np.array([[1, 1], [0, 2]], dtype=np.int32), 2).centre.tolist()
    [[0.0, 0.5], [1.0, 1.0]]
    """
    places = np.nonzero(labels)
    lesion_of = labels[places]
    voxels = np.bincount(lesion_of, minlength=count + 1)[1:]
    sums = [np.bincount(lesion_of, weights=axis, minlength=count + 1)[1:] for axis in places]
    return Geometry(voxels, np.column_stack(sums).reshape(count, labels.ndim) / np.maximum(voxels, 1)[:, None])


def voxel_volume(spacing: Sequence[float]) -> float:
    """Cubic millimetres per voxel (square ones per pixel) from the spacing in mm.

    >>> voxel_volume((3.0, 0.5, 0.5))
    0.75
    """
    if not all(np.isfinite(side) and side > 0 for side in spacing):
        raise DataError(f"a spacing is positive millimetres along each axis, got {tuple(spacing)}")
    return float(np.prod(np.asarray(spacing, dtype=np.float64)))


def adjusted_iou(predicted: Labels, truth: Labels, covered: NDArray[np.bool_] | None = None) -> Floats:
    r"""IoU_adj = |k ∩ K'| / |k ∪ (K' \ Q)| of every predicted lesion k (Rottmann et al. 2020).

    K': the true lesions that meet k. Q: the other predicted lesions that meet K'. What of K' other predictions cover
    is not held against k, so the union is |k| and what of K' no prediction covers.
    predicted, truth: labels 1 … count, 0 elsewhere, of one shape; the result has shape (predicted lesions,).
    covered: what predictions cover, also those that are too small for a label; by default what is labelled.

    >>> adjusted_iou(np.array([[1, 0, 2, 2, 0, 3]]), np.array([[1, 1, 1, 1, 1, 0]])).round(3).tolist()
    [0.333, 0.5, 0.0]
    """
    if predicted.shape != truth.shape:
        raise DataError(f"prediction and truth differ in shape: {predicted.shape} and {truth.shape}")
    count, true_count = int(predicted.max(initial=0)), int(truth.max(initial=0))
    places = np.flatnonzero(predicted)
    of, meets = predicted.ravel()[places], truth.ravel()[places]
    voxels = np.bincount(of, minlength=count + 1)
    met = meets if covered is None else truth[covered]
    missed = np.bincount(truth[truth > 0], minlength=true_count + 1) - np.bincount(met, minlength=true_count + 1)
    pairs, shared = np.unique(of.astype(np.int64) * (true_count + 1) + meets, return_counts=True)
    k, g = np.divmod(pairs, true_count + 1)
    common = np.bincount(k, weights=shared * (g > 0), minlength=count + 1)
    beyond = np.bincount(k, weights=missed[g] * (g > 0), minlength=count + 1)
    return np.asarray((common / np.maximum(voxels + beyond, 1))[1:])


def true_positives(iou: Floats, *, least: float = 0.1) -> NDArray[np.bool_]:
    """A predicted lesion is a true positive if its adjusted IoU reaches ε, else a false positive (Lambert et al. 2022).

    >>> true_positives(np.array([0.0, 0.1, 0.4])).tolist()
    [False, True, True]
    """
    return np.asarray(iou >= least)
