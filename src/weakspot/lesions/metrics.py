"""The uncertainty of a segmentation at each voxel, over T looks of which only running sums are kept.

Entropy and mutual information as in Gal, Islam and Ghahramani 2017, variance as in Kendall et al. 2017, predicted
confidence score as in Zhang et al. 2020; which of them say something about lesions: Lambert et al. 2022.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weakspot.core.errors import ConfigError, DataError, SubjectError


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
        sample = probabilities.float()
        before = self._of_lesion(sample).sub_(self._of_lesion(self._mean))
        self._mean += (sample - self._mean).div_(self.count)
        after = self._of_lesion(sample).sub_(self._of_lesion(self._mean))
        self._squares += before.mul_(after)
        self._entropy += entropy(sample).sub_(self._entropy).div_(self.count)

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
        """The probability of the lesion classes together; a new tensor."""
        return probabilities[:, self._lesion].sum(1)

    def maps(self) -> VoxelMaps:
        """The maps over all looks so far."""
        if self.count == 0:
            raise DataError("no look was added: there is nothing to measure")
        total = entropy(self._mean)
        return VoxelMaps(
            lesion=self._of_lesion(self._mean),
            entropy=total,
            variance=(self._squares / self.count).clamp_min_(0),
            pcs=predicted_confidence_score(self._mean),
            mutual_information=(total - self._entropy).clamp_min_(0),
        )


def entropy(probabilities: Tensor) -> Tensor:
    """−Σ p log p over the classes (dimension 1), in nats; a class of probability 0 adds nothing.

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]])).numpy().round(4).tolist()
    [0.6930999755859375, 0.0]
    """
    total: Tensor = torch.special.xlogy(probabilities, probabilities).sum(1)
    return total.abs_()  # every term is at most 0, and none shall be −0


def predicted_confidence_score(mean: Tensor) -> Tensor:
    """PCS: the largest less the second largest mean probability over the classes; |2p − 1| of two (Zhang et al. 2020).

    >>> predicted_confidence_score(torch.tensor([[0.2, 0.5, 0.3]])).numpy().round(3).tolist()
    [0.20000000298023224]
    """
    top = mean.topk(2, dim=1).values
    return top[:, 0] - top[:, 1]
