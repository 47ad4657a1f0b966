"""JPEG compression on the device: what storing an image as JPEG loses, without a file."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.errors import ConfigError, DataError
from weakspot.looks.variations import Photometric, Quantity, Range
from weakspot.looks.warping import to_device

_LUMINANCE = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
_CHROMINANCE = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)
"""Steps of the coefficients at quality 50 (ITU-T T.81, tables K.1 and K.2)."""


@dataclass(frozen=True)
class Jpeg(Photometric):
    """What is left of an image that was stored as JPEG.

    quality: from 1 to 100 as libjpeg counts, whole numbers; one number n means from n to 100.
    halved_colour: whether colour is kept at half the resolution (4:2:0), as most programs do.
    """

    quality: Range = 30
    halved_colour: bool = True
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("JPEG quality", "of 100"),)
    limits: ClassVar[tuple[float, float]] = (1, 100)
    neutral: ClassVar[float] = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.halved_colour, bool):
            raise ConfigError(f"halved_colour of Jpeg is {self.halved_colour!r}: expected true or false")

    @property
    def range(self) -> tuple[float, float]:
        """From the lowest to the highest quality."""
        low, high = self.quality if isinstance(self.quality, tuple) else (self.quality, 100)
        return float(low), float(high)

    def parameters(self, chance: np.ndarray) -> np.ndarray:
        """The quality, every whole number of the range equally often."""
        low, high = math.ceil(self.range[0]), math.floor(self.range[1])
        drawn: np.ndarray = low + np.floor(chance * (high - low + 1))
        return drawn

    def alter(self, images: Tensor, parameters: Tensor) -> Tensor:
        """Brightness and colour apart, in blocks of 8 × 8: cosine transform, rounding, and back."""
        if images.shape[1] not in (1, 3):
            raise DataError(f"JPEG knows images of one or three channels, got {images.shape[1]}")
        bytes_ = (images * 255).round_()
        if images.shape[1] == 1:
            return _through(bytes_, _steps(_LUMINANCE, parameters, images)).clamp_(0, 255).round_().div_(255)
        bright, colour = _to_luminance(bytes_)
        bright = _through(bright, _steps(_LUMINANCE, parameters, images))
        colour = self._colour_through(colour, _steps(_CHROMINANCE, parameters, images))
        return _to_rgb(bright.round_(), colour.round_()).clamp_(0, 255).round_().div_(255)

    def _colour_through(self, colour: Tensor, steps: Tensor) -> Tensor:
        if not self.halved_colour:
            return _through(colour, steps)
        height, width = colour.shape[-2:]
        even = _filled_up(colour, 2)
        half = _through(F.avg_pool2d(even, 2), steps)
        return F.interpolate(half, even.shape[-2:], mode="bilinear", align_corners=False)[..., :height, :width]


def quality_scale(quality: Tensor) -> Tensor:
    """By how much the steps of quality 50 are multiplied, in per cent, as libjpeg does."""
    return torch.where(quality < 50, (5000 / quality.clamp(min=1)).floor(), 200 - 2 * quality)


def _steps(table: tuple[tuple[int, ...], ...], parameters: Tensor, images: Tensor) -> Tensor:
    """The steps of each sample's coefficients, whole numbers from 1 to 255, shape (samples, 1, 1, 8, 1, 8)."""
    scale = quality_scale(parameters[:, 0].double().cpu().round())
    steps = ((torch.tensor(table, dtype=torch.float64) * scale[:, None, None] + 50) / 100).floor().clamp(1, 255)
    return to_device(steps.to(images.dtype), images.device)[:, None, None, :, None, :]


def _through(plane: Tensor, steps: Tensor) -> Tensor:
    """To rounded coefficients and back; values from 0 to 255."""
    height, width = plane.shape[-2:]
    filled = _filled_up(plane, 8)
    samples, channels, high, wide = filled.shape
    cosines = to_device(_cosines().to(plane.dtype), plane.device)
    blocks = (filled - 128).view(samples, channels, high // 8, 8, wide // 8, 8)
    coefficients = _nearest(_both_ways(blocks, cosines).div_(steps)).mul_(steps)
    back = _both_ways(coefficients, cosines.T).reshape(samples, channels, high, wide)
    return back[..., :height, :width].add(128).clamp_(0, 255)


def _nearest(values: Tensor) -> Tensor:
    """The nearest whole number, halves away from zero as libjpeg has it: sums of bytes often end on a half."""
    return values.add_(torch.copysign(torch.full_like(values, 0.5), values)).trunc_()


def _both_ways(blocks: Tensor, matrix: Tensor) -> Tensor:
    """matrix · block · matrixᵀ for blocks of shape (…, 8, blocks across, 8)."""
    across = blocks @ matrix.T
    return (matrix @ across.flatten(-2)).view_as(blocks)


@lru_cache(maxsize=1)
def _cosines() -> Tensor:
    """The orthonormal cosine transform of eight values, shape (8, 8)."""
    index = torch.arange(8, dtype=torch.float64)
    matrix = torch.cos((2 * index + 1) * index[:, None] * math.pi / 16) / 2
    matrix[0] /= math.sqrt(2)
    return matrix


def _filled_up(plane: Tensor, multiple: int) -> Tensor:
    """Repeat the last row and column until both sizes are multiples."""
    height, width = plane.shape[-2:]
    missing = (0, -width % multiple, 0, -height % multiple)
    return F.pad(plane, missing, mode="replicate") if any(missing) else plane


def _to_luminance(rgb: Tensor) -> tuple[Tensor, Tensor]:
    """Y, and Cb with Cr, whole numbers from 0 to 255 (JFIF)."""
    red, green, blue = rgb.unbind(1)
    bright = (0.299 * red + 0.587 * green + 0.114 * blue).round_()
    cb = (128 - 0.168735892 * red - 0.331264108 * green + 0.5 * blue).round_()
    cr = (128 + 0.5 * red - 0.418687589 * green - 0.081312411 * blue).round_()
    return bright[:, None], torch.stack([cb, cr], 1).clamp_(0, 255)


def _to_rgb(bright: Tensor, colour: Tensor) -> Tensor:
    y, (cb, cr) = bright[:, 0], (colour - 128).unbind(1)
    return torch.stack([y + 1.402 * cr, y - 0.344136286 * cb - 0.714136286 * cr, y + 1.772 * cb], 1)
