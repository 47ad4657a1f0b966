"""One case: from its maps to one record per lesion and one per node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    maps: Mapping[str, np.ndarray],
    intensities: np.ndarray,
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
    labels: Labels, count: int, maps: Mapping[str, np.ndarray], *, log_epsilon: float = 1e-6
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


def z_scored(volume: np.ndarray) -> NDArray[np.float32]:
    """Each sequence less its mean and divided by its spread over the voxels that are not 0; (sequences, …voxels)."""
    standardised = np.zeros(volume.shape, dtype=np.float32)
    for sequence, out in zip(volume.astype(np.float64), standardised, strict=True):
        inside = sequence[sequence != 0]
        spread = inside.std() if inside.size else 0.0
        if spread > 0:
            out[...] = (sequence - inside.mean()) / spread
    return standardised
