"""The uncertainty of a segmentation at each voxel, over T looks of which only running sums are kept.

Entropy and mutual information as in Gal, Islam and Ghahramani 2017, variance as in Kendall et al. 2017, predicted
confidence score as in Zhang et al. 2020; which of them say something about lesions: Lambert et al. 2022.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weakspot.core.errors import ConfigError, DataError, SubjectError

_AT_ONCE = 1 << 23
"""Probabilities that are added at once."""


@dataclass(frozen=True)
class VoxelMaps:
    """What T looks say of each voxel; every map has the shape (cases, …voxels), in float32."""

    lesion: Tensor
    """Mean probability of the lesion classes together."""
    entropy: Tensor
    variance: Tensor
    pcs: Tensor
    mutual_information: Tensor


class RunningSamples:
    """The sums over looks from which every map follows; memory does not grow with their number.

    lesion_classes: the classes that make a lesion; their probabilities are added.
    """

    def __init__(self, lesion_classes: Sequence[int]):
        self.count = 0
        self._lesion = list(lesion_classes)

    def add(self, probabilities: Tensor) -> None:
        """Add the class probabilities of one look, shape (cases, classes, …voxels).

        Means and squares are updated as by Welford (1962), so that float32 is enough even where the spread is small.
        """
        if self.count == 0:
            self._begin(probabilities)
        self.count += 1
        for part in _slabs(probabilities):  # what is in between takes little memory
            of_voxel = part[:1] + part[2:]
            self._add(probabilities[part].float(), self._mean[part], self._squares[of_voxel], self._entropy[of_voxel])

    def _add(self, sample: Tensor, mean: Tensor, squares: Tensor, spread: Tensor) -> None:
        before = self._of_lesion(sample) - self._of_lesion(mean)
        mean += (sample - mean).div_(self.count)
        squares += before.mul_(self._of_lesion(sample) - self._of_lesion(mean))
        spread += entropy(sample).sub_(spread).div_(self.count)

    def _begin(self, probabilities: Tensor) -> None:
        classes = probabilities.shape[1]
        if classes < 2:
            raise SubjectError(
                f"the model gives {classes} class per voxel, expected background and lesion: give the probability of "
                "both, for instance with output= as torch.cat([1 - p, p], 1)"
            )
        if not all(0 <= number < classes for number in self._lesion):
            raise ConfigError(f"the lesion classes are {self._lesion}, and the model knows 0 to {classes - 1}")
        self._mean = torch.zeros_like(probabilities, dtype=torch.float32)
        self._squares = torch.zeros_like(self._mean[:, 0])
        self._entropy = torch.zeros_like(self._squares)

    def _of_lesion(self, probabilities: Tensor) -> Tensor:
        """The probability of the lesion classes together; of one class alone a view."""
        total = probabilities[:, self._lesion[0]]
        for number in self._lesion[1:]:
            total = total + probabilities[:, number]
        return total

    def maps(self) -> VoxelMaps:
        """The maps over all looks so far."""
        if self.count == 0:
            raise DataError("no look was added: there is nothing to measure")
        return self._measured(self._mean, self._squares, self._entropy)

    def lesion(self, case: int) -> Tensor:
        """The mean probability of the lesion classes together, of one case."""
        return self._of_lesion(self._mean[case : case + 1])[0].clone()

    def entropy(self, case: int) -> Tensor:
        """The entropy of the mean at every voxel of one case, in nats."""
        mean = self._mean[case : case + 1]
        return torch.cat([entropy(mean[part])[0] for part in _slabs(mean)])

    def maps_at(self, case: int, places: Tensor) -> VoxelMaps:
        """The maps of one case at some voxels, by their places in C order; each of shape (voxels,)."""
        sums = (self._mean[case].flatten(1), self._squares[case].flatten(), self._entropy[case].flatten())
        mean, squares, spread = (values[..., places.to(values.device)][None] for values in sums)
        return VoxelMaps(*(values[0] for values in vars(self._measured(mean, squares, spread)).values()))

    def classes_at(self, case: int, places: Tensor) -> Tensor:
        """The mean probability of each lesion class of one case at some voxels; shape (lesion classes, voxels)."""
        there = places.to(self._mean.device)
        return torch.stack([self._mean[case, number].flatten()[there] for number in self._lesion])

    def forget(self) -> None:
        """Give the memory back; nothing can be added or asked afterwards."""
        self.count = 0
        del self._mean, self._squares, self._entropy

    def _measured(self, mean: Tensor, squares: Tensor, spread: Tensor) -> VoxelMaps:
        total = entropy(mean)
        return VoxelMaps(
            lesion=self._of_lesion(mean),
            entropy=total,
            variance=(squares / self.count).clamp_min_(0),
            pcs=predicted_confidence_score(mean),
            mutual_information=(total - spread).clamp_min_(0),
        )


def _slabs(values: Tensor) -> Iterator[tuple[slice, ...]]:
    """Parts along the first axis of the voxels, each of a bounded size."""
    if values.ndim < 3:
        yield (slice(None), slice(None))
        return
    step = max(1, _AT_ONCE // max(1, values[:, :, :1].numel()))
    for start in range(0, values.shape[2], step):
        yield (slice(None), slice(None), slice(start, start + step))


def entropy(probabilities: Tensor) -> Tensor:
    """−Σ p log p over the classes (dimension 1), in nats; a class of probability 0 adds nothing.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]])).numpy().round(4).tolist()
    [0.6930999755859375, 0.0]
    """
    total: Tensor = torch.special.xlogy(probabilities[:, 0], probabilities[:, 0])
    for number in range(1, probabilities.shape[1]):
        total += torch.special.xlogy(probabilities[:, number], probabilities[:, number])
    return total.abs_()  # every term is at most 0, and none shall be −0


def predicted_confidence_score(mean: Tensor) -> Tensor:
    """PCS: the largest less the second largest mean probability over the classes; |2p − 1| of two (Zhang et al. 2020).

    >>> predicted_confidence_score(torch.tensor([[0.2, 0.5, 0.3]])).numpy().round(3).tolist()
    [0.20000000298023224]
    """
    if mean.shape[1] == 2:
        apart: Tensor = (mean[:, 0] - mean[:, 1]).abs_()
        return apart
    top = mean.topk(2, dim=1).values
    return top[:, 0] - top[:, 1]
