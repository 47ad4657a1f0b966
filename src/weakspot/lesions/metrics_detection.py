"""Detected lesions against true ones, one to one: panoptic quality, surface distance, sensitivity at false positives.

A predicted and a true lesion match if their IoU is above ½, so that none matches two (Kirillov et al. 2019,
`kirillov2019`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import KDTree

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate
from weakspot.lesions.metrics_components import Labels
from weakspot.lesions.metrics_evaluation import ScoredFold

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST_IOU = 0.5
FALSE_POSITIVES = (1, 2, 4)
"""Per scan, at which sensitivity is told."""


@dataclass(frozen=True)
class Matches:
    """Of each predicted lesion the true one that it shares most voxels with, and how well the two agree.

    true_lesion: its number, 0 for none.
    iou: of the two, 0 for none.
    hd95: between the surfaces of two that match, NaN for others: the 95th percentile of the distances both ways, in mm
        where the spacing is known, else in voxels.
    """

    true_lesion: Ints
    iou: Floats
    hd95: Floats

    def panoptic_quality(self, true_count: int) -> float:
        """Σ IoU of those that match / (TP + ½ FP + ½ FN); NaN where there is no lesion at all."""
        matched = self.iou > LEAST_IOU
        total = (len(self.iou) + true_count) / 2
        return float(self.iou[matched].sum() / total) if total else float("nan")


def matches(predicted: Labels, truth: Labels, spacing: Sequence[float] | None = None) -> Matches:
    """Hold lesions 1 … count against true ones of the same grid.

    >>> found = matches(np.array([[1, 1, 0, 2]]), np.array([[1, 1, 1, 0]]))
    >>> found.true_lesion.tolist(), found.iou.round(3).tolist(), found.hd95.round(3).tolist(), found.panoptic_quality(1)
    ([1, 0], [0.667, 0.0], [0.8, nan], 0.4444444444444444)
    """
    if predicted.shape != truth.shape:
        raise DataError(f"prediction and truth differ in shape: {predicted.shape} and {truth.shape}")
    sizes, true_sizes = (np.bincount(labels[labels > 0], minlength=1) for labels in (predicted, truth))
    both = np.flatnonzero((predicted > 0) & (truth > 0))
    pairs, common = np.unique(
        predicted.ravel()[both].astype(np.int64) * len(true_sizes) + truth.ravel()[both], return_counts=True
    )
    one, other = np.divmod(pairs, len(true_sizes))
    order = np.lexsort(
        (-other, common)
    )  # the last of a lesion's pairs shares most, of equal ones the first true lesion
    true_lesion, iou = np.zeros(len(sizes), dtype=np.int64), np.zeros(len(sizes))
    true_lesion[one[order]] = other[order]
    iou[one[order]] = (common / (sizes[one] + true_sizes[other] - common))[order]
    hd95 = np.full(len(sizes), np.nan)
    steps = np.ones(predicted.ndim) if spacing is None else np.asarray(spacing, dtype=np.float64)
    boxes, true_boxes = ndimage.find_objects(predicted), ndimage.find_objects(truth)
    for number in np.flatnonzero(iou > LEAST_IOU).tolist():
        true_number = int(true_lesion[number])
        surfaces = (
            _surface(predicted, boxes[number - 1], number),
            _surface(truth, true_boxes[true_number - 1], true_number),
        )
        hd95[number] = surface_distance(*(surface * steps for surface in surfaces))
    return Matches(true_lesion[1:], iou[1:], hd95[1:])


def _surface(labels: Labels, box: tuple[slice, ...], number: int) -> Floats:
    """The places of a lesion's voxels that have a face outside of it; shape (voxels, dimensions)."""
    inside = np.pad(labels[box] == number, 1)
    edge = inside & ~ndimage.binary_erosion(inside)
    return np.asarray(np.argwhere(edge) - 1.0 + [side.start for side in box])


def surface_distance(one: Floats, other: Floats, *, percentile: float = 95) -> float:
    """A percentile of the distances of each surface's points to the other surface (Hausdorff distance for 100)."""
    to_other, to_one = KDTree(other).query(one)[0], KDTree(one).query(other)[0]
    return float(np.percentile(np.concatenate([to_other, to_one]), percentile))


@dataclass(frozen=True)
class Froc:
    """Free-response ROC: as lesions are dropped, the most uncertain first, false positives per scan and sensitivity."""

    false_positives: Floats
    sensitivity: Floats

    def at(self, per_scan: float) -> float:
        """The largest sensitivity with at most so many false positives per scan."""
        return float(self.sensitivity[self.false_positives <= per_scan].max())


def froc(
    uncertainty: np.ndarray, false_positive: np.ndarray, found: np.ndarray, *, scans: int, true_lesions: int
) -> Froc:
    """From all lesions dropped to none.

    found: of each lesion which true one it finds, a number of its own over all cases; negative for none.
    scans, true_lesions: how many there are, also those without any prediction.
    """
    if scans < 1 or true_lesions < 1:
        raise DataError(f"{scans} scans with {true_lesions} true lesions: sensitivity takes some of both")
    order = np.argsort(uncertainty, kind="stable")
    last = np.flatnonzero(np.append(np.diff(np.asarray(uncertainty)[order]) > 0, True)) if len(order) else order
    false = np.cumsum(np.asarray(false_positive, dtype=np.int64)[order])[last]
    hits = np.where(np.asarray(false_positive), -1, found)[order]
    _, first = np.unique(hits, return_index=True)
    new = np.zeros(len(order), dtype=np.int64)
    new[first] = hits[first] >= 0
    return Froc(np.append(0.0, false / scans), np.append(0.0, np.cumsum(new)[last] / true_lesions))


def detected(table: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> tuple[Ints | None, int, int]:
    """Of each lesion in a table which true one it finds, over all cases; the scans; the true lesions."""
    cases = np.asarray(arrays["cases"])
    if "true_lesion" not in table:
        return None, len(cases), 0
    numbers, order = np.asarray(table["true_lesion"], dtype=np.int64), np.argsort(cases)
    of = order[np.searchsorted(cases[order], np.asarray(table["case"], dtype=np.str_))]
    found = np.where(numbers > 0, of * (numbers.max(initial=0) + 1) + numbers, -1)
    return found, len(cases), int(np.asarray(arrays["case_true_lesions"]).sum())


def sensitivities(folds: Sequence[ScoredFold], method: str) -> dict[int, float]:
    """Sensitivity at so many false positives per scan, the mean of the folds; empty where it is not known."""
    if any(fold.found is None or not fold.true_lesions for fold in folds):
        return {}
    curves = [
        froc(
            fold.uncertainty[method],
            fold.false_positive,
            np.asarray(fold.found),
            scans=fold.scans,
            true_lesions=fold.true_lesions,
        )
        for fold in folds
    ]
    return {number: float(np.mean([curve.at(number) for curve in curves])) for number in FALSE_POSITIVES}


def sensitivity_estimates(folds: Sequence[ScoredFold], method: str) -> dict[str, Estimate]:
    """The sensitivities of a method as numbers of a summary."""
    about = (
        "share of the true lesions that a kept lesion finds, where the most uncertain by {} are dropped until {} false"
    )
    return {
        f"sensitivity_{number}": Estimate(value, about=f"{about.format(method, number)} positives a scan are left")
        for number, value in sensitivities(folds, method).items()
    }


def sensitivity_columns(folds: Sequence[ScoredFold]) -> dict[str, np.ndarray]:
    """The sensitivities of every method as columns of a table."""
    by_method = [sensitivities(folds, name) for name in folds[0].uncertainty]
    return {f"sensitivity_{n}": np.array([own[n] for own in by_method]) for n in by_method[0]}
