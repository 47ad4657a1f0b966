"""Variations: how an image may differ and still mean the same. Batched, on the device, drawn without state."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.draws import draw_keys, uniform
from weakspot.core.errors import DataError
from weakspot.core.look import Forward, Look


@dataclass(frozen=True)
class Variation(ABC):
    """A family of changes to an image, from its parameters to the changed image.

    `draws` is how many uniform numbers one change takes; `parameters` turns them into numbers with a unit.
    """

    draws: ClassVar[int]

    @abstractmethod
    def parameters(self, chance: Tensor) -> Tensor:
        """From numbers uniform in [0, 1) to parameters with a unit; both of shape (samples, draws)."""

    @abstractmethod
    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """The changed images, shape (samples, channels, height, width) as before."""

    def __and__(self, other: "Variation") -> "Variation":
        """Both, one after the other."""
        return Combined((*_parts(self), *_parts(other)))


@dataclass(frozen=True)
class Geometric(Variation):
    """A change of place: an affine map of the plane about the image's centre, in pixels, y downwards."""

    @abstractmethod
    def inverse(self, parameters: Tensor) -> Tensor:
        """From a place in the changed image to the place it came from, float64, shape (samples, 3, 3)."""

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """The warped images."""
        return warp(images, self.inverse(parameters))


@dataclass(frozen=True)
class Rotate(Geometric):
    """Rotation by U(−degrees, degrees)."""

    degrees: float
    draws: ClassVar[int] = 1

    def parameters(self, chance: Tensor) -> Tensor:
        """The angle in degrees."""
        return self.degrees * (2 * chance - 1)

    def inverse(self, parameters: Tensor) -> Tensor:
        """[[cos, sin, 0], [−sin, cos, 0], [0, 0, 1]]."""
        angle = parameters[:, 0].double() * (math.pi / 180)
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
        return _affine((cos, sin, zero), (-sin, cos, zero))


@dataclass(frozen=True)
class Shift(Geometric):
    """Shift by U(−pixels, pixels) in x and in y."""

    pixels: float
    draws: ClassVar[int] = 2

    def parameters(self, chance: Tensor) -> Tensor:
        """The shift to the right and down in pixels."""
        return self.pixels * (2 * chance - 1)

    def inverse(self, parameters: Tensor) -> Tensor:
        """[[1, 0, −x], [0, 1, −y], [0, 0, 1]]."""
        x, y = parameters[:, 0].double(), parameters[:, 1].double()
        one, zero = torch.ones_like(x), torch.zeros_like(x)
        return _affine((one, zero, -x), (zero, one, -y))


@dataclass(frozen=True)
class Combined(Variation):
    """Several variations in order; neighbouring geometric ones become one map, so the image is interpolated once."""

    parts: tuple[Variation, ...]

    @property
    def draws(self) -> int:  # type: ignore[override]  # of all parts together
        """How many uniform numbers all parts take."""
        return sum(part.draws for part in self.parts)

    def parameters(self, chance: Tensor) -> Tensor:
        """The parameters of all parts side by side."""
        pieces = chance.split([part.draws for part in self.parts], 1)
        return torch.cat([part.parameters(piece) for part, piece in zip(self.parts, pieces, strict=True)], 1)

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        """All changes in order."""
        pending: Tensor | None = None
        for part, own in zip(self.parts, parameters.split([part.draws for part in self.parts], 1), strict=True):
            if isinstance(part, Geometric):
                inverse = part.inverse(own)
                pending = inverse if pending is None else pending @ inverse
                continue
            images = part.apply(images if pending is None else warp(images, pending), own)
            pending = None
        return images if pending is None else warp(images, pending)


def _parts(variation: Variation) -> tuple[Variation, ...]:
    return variation.parts if isinstance(variation, Combined) else (variation,)


def _affine(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    zero, one = torch.zeros_like(first[0]), torch.ones_like(first[0])
    return torch.stack([torch.stack(list(row), 1) for row in (first, second, (zero, zero, one))], 1)


def warp(images: Tensor, inverse: Tensor) -> Tensor:
    """Each output pixel from where `inverse` says it came from: bilinear, black outside.

    images (samples, channels, height, width); inverse (samples, 3, 3) in pixels about the centre.
    """
    if images.ndim != 4:
        raise DataError(
            f"rotation and shift need images of shape (samples, channels, height, width), got {tuple(images.shape)}"
        )
    height, width = images.shape[-2:]
    scale = torch.tensor([width / 2, height / 2, 1.0], dtype=torch.float64, device=inverse.device)
    theta = (inverse * scale / scale[:, None])[:, :2].to(images.device, images.dtype)
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


@dataclass(frozen=True)
class Neighbour(Look):
    """A look at a random neighbour of the sample: an image that a variation makes of it."""

    variation: Variation
    seed: int = 0
    plain: ClassVar[bool] = True

    def drawn(self, ids: Sequence[str], number: int) -> Tensor:
        """The parameters of look `number` at each sample: with them, any neighbour can be made again."""
        chance = uniform(draw_keys(ids, self.seed, number), self.variation.draws)
        return self.variation.parameters(torch.from_numpy(chance))

    def outputs(self, forward: Forward, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """Forward of the varied inputs."""
        return forward(self.variation.apply(inputs, self.drawn(ids, number)))
