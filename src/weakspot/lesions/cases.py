"""One case: from its maps to one record per lesion and one per node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.lesions.graphs import LesionNodes, lesion_nodes, node_features
from weakspot.lesions.metrics_components import (
    Labels,
    adjusted_iou,
    lesion_components,
    lesion_geometry,
    true_positives,
    voxel_volume,
)
from weakspot.lesions.metrics_detection import matches
from weakspot.lesions.structural import SampledMasks, structural_uncertainty

Floats = NDArray[np.float64]

MEASURES = ("entropy", "variance", "pcs", "mutual_information")
LOGSUMS = ("entropy", "variance", "pcs")
AXES = {2: ("y", "x"), 3: ("z", "y", "x")}


@dataclass(frozen=True)
class LesionDefinition:
    """What counts as a lesion, and how it is described.

    threshold: a voxel whose mean lesion probability is above this belongs to a lesion.
    smallest: the fewest voxels of a lesion.
    dilation: how many voxels around a lesion its graph takes in.
    least_iou: ε, the adjusted IoU from which on a lesion is a true positive.
    log_epsilon: what is added to a measure before its logarithm is taken.
    small_cover: whether components that are too small for a lesion still cover the truth in adjusted IoU and Dice.
    """

    threshold: float = 0.5
    smallest: int = 3
    dilation: int = 1
    least_iou: float = 0.1
    log_epsilon: float = 1e-6
    small_cover: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1 or self.smallest < 1 or self.dilation < 0:
            raise ConfigError(
                "expected a threshold from 0 to 1, smallest ≥ 1 and dilation ≥ 0, got "
                f"{self.threshold}, {self.smallest} and {self.dilation}"
            )
        if not 0 < self.least_iou <= 1 or self.log_epsilon <= 0:
            raise ConfigError(
                f"expected 0 < least_iou ≤ 1 and log_epsilon > 0, got {self.least_iou} and {self.log_epsilon}"
            )


@dataclass(frozen=True)
class CaseLesions:
    """The lesions of a case: columns by lesion, their nodes with features, and figures of the case as a whole."""

    columns: Mapping[str, np.ndarray]
    nodes: LesionNodes
    features: NDArray[np.float32]
    whole: Mapping[str, float]
    masks: SampledMasks | None = None


def case_lesions(
    maps: Mapping[str, Any],
    intensities: Any,
    truth: np.ndarray | None,
    definition: LesionDefinition,
    *,
    spacing: tuple[float, ...] | None = None,
    sampled: Sequence[NDArray[np.uint8]] = (),
) -> CaseLesions:
    """Cut a case into lesions and describe each.

    maps: `lesion` (mean probability) and the measures, each (…voxels).
    intensities: of each sequence, (sequences, …voxels).
    truth: the true lesions, boolean, where they are known.
    definition: what counts as a lesion.
    spacing: mm per voxel along each axis, where it is known.
    sampled: the mask of each look, flat and packed, for structural uncertainty.
    """
    foreground = maps["lesion"] > definition.threshold
    labels, count = lesion_components(foreground, smallest=definition.smallest)
    geometry = lesion_geometry(labels, count)
    volume = np.nan if spacing is None else voxel_volume(spacing)
    columns: dict[str, np.ndarray] = dict(zip(AXES[labels.ndim], geometry.centre.T, strict=True))
    columns |= {"voxels": geometry.voxels, "volume_mm3": geometry.voxels * volume}
    columns |= lesion_measures(labels, count, maps, log_epsilon=definition.log_epsilon)
    whole: dict[str, float] = {"lesions": count}
    masks = SampledMasks.of(sampled, foreground) if sampled else None
    if masks is not None:
        columns["structural"], whole["structural"] = structural_uncertainty(
            masks, labels, count, smallest=definition.smallest
        )
    if truth is not None:
        covered = foreground if definition.small_cover else labels > 0
        agreement, figures = _compared(labels, covered, truth, definition, spacing)
        columns, whole = columns | agreement, whole | figures
    nodes = lesion_nodes(labels, count, dilation=definition.dilation)
    features = node_features(nodes, intensities, foreground, [maps[name] for name in ("entropy", "variance", "pcs")])
    return CaseLesions({**columns, "nodes": np.diff(nodes.starts)}, nodes, features, whole, masks)


def lesion_measures(
    labels: Labels, count: int, maps: Mapping[str, Any], *, log_epsilon: float = 1e-6
) -> dict[str, Floats]:
    """Mean of each measure over a lesion's voxels, and Σ log(u + ε) of the uncertainties (Nair et al. 2018).

    The uncertainty u of the predicted confidence score is 1 − PCS.
    """
    places = np.flatnonzero(labels)
    of = labels.ravel()[places]
    voxels = np.maximum(np.bincount(of, minlength=count + 1)[1:], 1)

    def summed(values: np.ndarray) -> Floats:
        return np.asarray(np.bincount(of, weights=values, minlength=count + 1)[1:], dtype=np.float64)

    inside = {name: maps[name].ravel()[places].astype(np.float64) for name in MEASURES}
    means = {name: summed(values) / voxels for name, values in inside.items()}
    unsure = {**inside, "pcs": 1 - inside["pcs"]}
    return {**means, **{f"{name}_logsum": summed(np.log(unsure[name] + log_epsilon)) for name in LOGSUMS}}


def _compared(
    labels: Labels,
    covered: NDArray[np.bool_],
    truth: np.ndarray,
    definition: LesionDefinition,
    spacing: tuple[float, ...] | None,
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    if truth.shape != labels.shape:
        raise DataError(f"the truth has shape {truth.shape}, the prediction {labels.shape}: they must lie on one grid")
    true_labels, true_count = lesion_components(truth, smallest=1)
    iou = adjusted_iou(labels, true_labels, covered)
    met = np.unique(true_labels[labels > 0])
    found = matches(labels, true_labels, spacing)
    figures = {
        "dice": dice(covered, truth),
        "true_lesions": true_count,
        "missed_lesions": true_count - int((met > 0).sum()),
        "panoptic_quality": found.panoptic_quality(true_count),
    }
    true = true_positives(iou, least=definition.least_iou)
    return {"adjusted_iou": iou, "true_positive": true, **vars(found)}, figures


def dice(predicted: np.ndarray, truth: np.ndarray) -> float:
    """2 |P ∩ T| / (|P| + |T|); NaN where both are empty, since there is nothing to agree on.

    >>> dice(np.array([True, True, False]), np.array([True, False, False])).__round__(3)
    0.667
    """
    total = int(predicted.sum()) + int(truth.sum())
    return 2 * int((predicted & truth).sum()) / total if total else float("nan")


def near(mask: np.ndarray, steps: int) -> NDArray[np.int64]:
    """The places, in C order, of a mask's voxels and of those within so many steps of them, corners included.

    >>> near(np.array([[True, False, False], [False, False, False]]), 1).tolist()
    [0, 1, 3, 4]
    """
    voxels = np.stack(np.unravel_index(np.flatnonzero(mask), mask.shape), 1)
    reached = np.zeros(mask.size, dtype=np.bool_)
    for shift in product(range(-steps, steps + 1), repeat=mask.ndim):
        moved = voxels + shift
        inside = ((moved >= 0) & (moved < mask.shape)).all(1)
        reached[np.ravel_multi_index(tuple(moved[inside].T), mask.shape)] = True
    return np.flatnonzero(reached)


@dataclass(frozen=True)
class SparseVolume:
    """A volume of which only the values at some places are kept, and can be asked for.

    places: in C order, rising.

    >>> volume = SparseVolume(np.array([0.5, 0.7]), np.array([1, 5]), (2, 3))
    >>> volume.ravel()[np.array([5])].tolist(), volume[np.array([0]), np.array([1])].tolist()
    ([0.7], [0.5])
    """

    values: np.ndarray
    places: NDArray[np.int64]
    shape: tuple[int, ...]

    def ravel(self) -> "SparseVolume":
        """The same, asked by places."""
        return self

    def __getitem__(self, at: Any) -> np.ndarray:
        """The values at places, or at coordinates given as a tuple of arrays."""
        places = np.ravel_multi_index(at, self.shape) if isinstance(at, tuple) else at
        return np.asarray(self.values[np.searchsorted(self.places, places)])


def z_scored_at(volume: np.ndarray, places: NDArray[np.int64]) -> list[SparseVolume]:
    """As `z_scored`, at some places alone: a sequence each."""
    found = []
    for sequence in volume:
        mean, spread = _mean_and_spread(sequence)
        inside = sequence.reshape(-1)[places].astype(np.float64)
        standard = (inside - mean) / spread if spread > 0 else np.zeros(len(places))
        found.append(SparseVolume(standard.astype(np.float32), places, sequence.shape))
    return found


def _mean_and_spread(sequence: np.ndarray) -> tuple[float, float]:
    """Over the voxels that are not 0, slice by slice: in float64 the whole would take much memory."""
    count = total = squares = 0.0
    for part in sequence:
        inside = part[part != 0].astype(np.float64)
        count, total = count + inside.size, total + inside.sum()
    mean = total / count if count else 0.0
    for part in sequence:
        squares += ((part[part != 0].astype(np.float64) - mean) ** 2).sum()
    return float(mean), float(np.sqrt(squares / count)) if count else 0.0


def z_scored(volume: np.ndarray) -> NDArray[np.float32]:
    """Each sequence less its mean and divided by its spread over the voxels that are not 0; (sequences, …voxels)."""
    standardised = np.zeros(volume.shape, dtype=np.float32)
    for sequence, out in zip(volume.astype(np.float64), standardised, strict=True):
        inside = sequence[sequence != 0]
        spread = inside.std() if inside.size else 0.0
        if spread > 0:
            out[...] = (sequence - inside.mean()) / spread
    return standardised
