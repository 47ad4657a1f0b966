"""Changes of values: brightness, contrast, noise and blur."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from weakspot.core.stateless_random import mix, standard_normal
from weakspot.looks.variations import GRAIN, Photometric, Quantity, Range, per_image


@dataclass(frozen=True)
class Brightness(Photometric):
    """Something is added to every value.

    share: how much, as a share of the way from black to white; one number n means from −n to n.
    """

    share: Range = 0.2
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("brightness", "share of black to white"),)
    limits: ClassVar[tuple[float, float]] = (-1, 1)

    def alter(self, images: Tensor, parameters: Tensor) -> Tensor:
        """x + share."""
        return images + per_image(parameters[:, 0], images)


@dataclass(frozen=True)
class Contrast(Photometric):
    """Values move away from, or towards, the image's mean.

    factor: how many times as far from it; one number n means from 1 − n to 1 + n.
    """

    factor: Range = 0.3
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("contrast", "times"),)
    limits: ClassVar[tuple[float, float]] = (0, 100)
    neutral: ClassVar[float] = 1.0

    def alter(self, images: Tensor, parameters: Tensor) -> Tensor:
        """mean + factor · (x − mean), with the mean over all pixels and channels."""
        mean = images.mean((1, 2, 3), keepdim=True)
        return torch.lerp(mean, images, per_image(parameters[:, 0], images))


@dataclass(frozen=True)
class Noise(Photometric):
    """Gaussian noise on every value.

    deviation: its standard deviation as a share of the way from black to white; one number n means from 0 to n.
    """

    deviation: Range = 0.1
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("noise", "share of black to white"), GRAIN)
    limits: ClassVar[tuple[float, float]] = (0, 10)

    def alter(self, images: Tensor, parameters: Tensor) -> Tensor:
        """x + deviation · z, z standard normal."""
        drawn = standard_normal(grain_keys(parameters[:, 1]), images[0].numel(), images.device)
        return torch.addcmul(images, drawn.view_as(images).to(images.dtype), per_image(parameters[:, 0], images))


@dataclass(frozen=True)
class Blur(Photometric):
    """Gaussian blur; beyond the border the border's values are repeated.

    sigma: standard deviation of the bell in pixels; one number n means from 0 to n.
    """

    sigma: Range = 1.5
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("blur", "pixels"),)
    limits: ClassVar[tuple[float, float]] = (0, 1000)

    def alter(self, images: Tensor, parameters: Tensor) -> Tensor:
        """Σ w(i) x(·+i) along rows and then columns, w a bell cut off at four times the largest sigma."""
        radius = math.ceil(4 * self.range[1])
        sigma = parameters[:, 0].double().clamp(min=1e-3)
        steps = torch.arange(-radius, radius + 1, dtype=torch.float64)
        bells = torch.exp(-((steps / sigma[:, None].cpu()) ** 2) / 2)
        bells = bells / bells.sum(1, keepdim=True)
        return _along(_along(images, bells, 3), bells, 2)


def _along(images: Tensor, weights: Tensor, dim: int) -> Tensor:
    """Weighted sum over neighbours along one dimension; weights of shape (samples, 2·radius + 1)."""
    radius, size = weights.shape[1] // 2, images.shape[dim]
    source = torch.arange(-radius, size + radius, device=images.device).clamp(0, size - 1)
    padded = images.index_select(dim, source)
    summed = torch.zeros_like(images)
    for step, weight in enumerate(weights.unbind(1)):
        summed.addcmul_(padded.narrow(dim, step, size), per_image(weight, images))
    return summed


def grain_keys(grain: Tensor) -> np.ndarray:
    """A word per sample from the number of its grain; uint64, shape (samples,)."""
    return mix((grain.double().cpu().numpy() * 2.0**53).astype(np.uint64))
