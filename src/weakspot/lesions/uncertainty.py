"""Lesions and how sure the network is of each: from samples of a segmentation to one row per lesion.

Lambert et al. 2022. A sample's looks are draws of Monte-Carlo dropout; only running sums over them are kept.
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.looks.dropout import McDropout

MEASURES = ("entropy", "variance", "one_minus_pcs")


class LesionUncertainty(Probe):
    """Every lesion a segmentation finds, with its size and three measures of uncertainty averaged over its voxels.

    Over T samples of the softmax: entropy of the mean; variance over the samples; 1 − PCS, where the predicted
    confidence score is the difference of the two largest mean probabilities. A lesion is a 26-connected component of
    the mean foreground above the threshold.

    samples: T, how many draws of dropout.
    foreground: the class that is a lesion.
    threshold: above which a voxel's mean probability makes it part of a lesion.
    least_voxels: smaller components are left out.
    seed: of the dropout masks.
    """

    tasks = ("segmentation",)

    samples: int = 20
    foreground: int = 1
    threshold: float = 0.5
    least_voxels: int = 3
    seed: int = 0

    lesions = Rows()
    volumes = Rows()

    def __post_init__(self) -> None:
        if self.samples < 2 or self.foreground < 0 or self.least_voxels < 1:
            raise ConfigError(
                f"expected samples ≥ 2, foreground ≥ 0 and least_voxels ≥ 1, got {self.samples}, {self.foreground} and "
                f"{self.least_voxels}"
            )

    @property
    def needs(self) -> Needs:
        """T looks with dropout on."""
        return Needs(looks={McDropout(self.seed): self.samples})

    def observe(self, seen: Observation) -> None:
        """Add one draw to the running sums; the first look at a batch begins them."""
        probability = seen.probabilities.double()
        if seen.number == 1:
            self._sum, self._squares = torch.zeros_like(probability), torch.zeros_like(probability)
        self._sum += probability
        self._squares += probability.square()

    def close(self, ids: Sequence[str]) -> None:
        """One row per lesion of each volume of the batch."""
        mean = self._sum / self.samples
        maps = uncertainty_maps(mean, self._squares / self.samples, self.foreground).cpu().numpy()
        foreground = (mean[:, self.foreground] > self.threshold).cpu().numpy()
        del self._sum, self._squares
        found = [describe_lesions(mask, own, self.least_voxels) for mask, own in zip(foreground, maps, strict=True)]
        self.volumes.append(ids, lesions=np.array([len(rows) for rows in found]))
        of = [name for name, rows in zip(ids, found, strict=True) for _ in rows]
        joined = np.concatenate(found)
        measured = 1 + len(MEASURES)
        columns = dict(zip(("voxels", *MEASURES), joined[:, :measured].T, strict=True))
        self.lesions.append(of, centre=joined[:, measured:], **columns)

    def finish(self) -> Finding:
        """The lesions of all volumes."""
        rows, volumes = self.lesions.read(), self.volumes.read()
        per_volume = np.asarray(volumes["lesions"])
        number = np.concatenate([np.arange(count) for count in per_volume]) if len(per_volume) else per_volume
        columns = {name: np.asarray(rows[name]) for name in MEASURES}
        table = {"id": rows.ids, "lesion": number, "voxels": rows["voxels"].astype(np.int64), **columns}
        return self.finding(
            summary={
                "lesions": Estimate(rows.count, about="lesions found"),
                "volumes": Estimate(volumes.count, about="volumes examined"),
                "without_lesion": Estimate(int((per_volume == 0).sum()), about="volumes without a lesion"),
            },
            table=table,
            arrays={"centre": np.asarray(rows["centre"])},
        )


def uncertainty_maps(mean: Tensor, mean_square: Tensor, foreground: int) -> Tensor:
    """Entropy of the mean, variance of the foreground over the samples, 1 − PCS; shape (samples, 3, …voxels).

    mean and mean_square: of the class probabilities over the draws, shape (samples, classes, …voxels).
    """
    entropy = -torch.special.xlogy(mean, mean).sum(1)
    variance = (mean_square[:, foreground] - mean[:, foreground].square()).clamp_min(0)
    top = mean.topk(2, dim=1).values
    return torch.stack([entropy, variance, 1 - (top[:, 0] - top[:, 1])], 1)


def describe_lesions(foreground: np.ndarray, maps: np.ndarray, least_voxels: int) -> np.ndarray:
    """A row per connected component (all neighbours, diagonals too): voxels, mean of each map, centre.

    foreground (…voxels), boolean; maps (measures, …voxels); rows in the order of the components' first voxels.
    """
    dims = foreground.ndim
    labels, count = ndimage.label(foreground, structure=np.ones((3,) * dims, dtype=bool))
    voxels = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    keep = np.flatnonzero(voxels >= least_voxels) + 1
    if not len(keep):
        return np.empty((0, 1 + len(maps) + dims))
    means = [ndimage.mean(own, labels, keep) for own in maps]
    centres = np.array(ndimage.center_of_mass(foreground, labels, keep)).reshape(len(keep), dims)
    return np.column_stack([voxels[keep - 1], *means, centres])
