"""Rain and fog, after the published algorithm of Automold (Saxena 2018) as the driving study used it, for any size.

There, sizes are pixels of camera images. Here they follow the image's size, so that a thumbnail and a 4K frame get the
same weather.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.stateless_random import unit_pairs
from weakspot.looks.values import grain_keys
from weakspot.looks.variations import GRAIN, Photometric, Quantity, Range, per_image

_USUAL_AREA = 640 * 480
"""Of camera images, for which the published sizes in pixels are meant."""
_STREAK = 30
_SHORTEST = 6
_COVERED = _STREAK / 600
"""Heavy rain: streaks of 30 pixels, one per 600 pixels of the image."""
_SLANT = 18
_STREAK_COLOUR = 200 / 255
_DARKER = 0.7
_BLUR = 7
_DEPTH = 1.6
_POINTS = 16
_WISPS = {3: 1.2, 5: 1.2, 9: 1.2}
"""Fog is noise on lattices of so many points along each side, with these weights."""
_VALUES_AT_ONCE = 1 << 20
"""So many of an image's values, and what is made of them on the way, stay in the cache of a CPU."""


@dataclass(frozen=True)
class Rain(Photometric):
    """Nearly upright grey streaks, everything blurred and its lightness multiplied by 0.7.

    amount: how many times as many streaks as in the published heavy rain; one number n means from 0 to n. Less than
        heavy rain also blurs and darkens less.
    """

    amount: Range = (1, 1)
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity("rain", "times heavy rain"), Quantity("slant", "degrees"), GRAIN,
    )  # fmt: skip
    limits: ClassVar[tuple[float, float]] = (0, 10)
    clipped: ClassVar[bool] = True

    def parameters(self, chance: np.ndarray) -> np.ndarray:
        """The amount; how far the streaks lean, up to 18 degrees; and the grain that places them."""
        drawn = super().parameters(chance)
        drawn[:, 1] = _SLANT * (2 * chance[:, 1] - 1)
        return drawn

    def alter(self, images: Tensor, parameters: Tensor) -> Tensor:
        """0.7 · blurred(image with streaks)."""
        height, width = images.shape[-2:]
        radius = _blur_radius(height, width)
        if self.range[0] >= 1 and radius:
            pixels = streak_pixels(parameters, self.range[1], height, width, images.device, frame=radius)
            return _piecewise(_in_heavy_rain, images, pixels)
        pixels = streak_pixels(parameters, self.range[1], height, width, images.device)
        return _piecewise(_in_rain, images, pixels, per_image(parameters[:, 0].clamp(max=1), images))


def _in_heavy_rain(out: Tensor, images: Tensor, pixels: Tensor) -> None:
    """The image is made darker while it is copied into its frame, so that blurring it is all that remains."""
    height, width = images.shape[-2:]
    radius = _blur_radius(height, width)
    share = _DARKER / _window_weight(radius) ** 2
    framed = images.new_empty(*images.shape[:2], height + 2 * radius, width + 2 * radius)
    inner = framed[..., radius:-radius, radius:-radius]
    torch.mul(images, share, out=inner)
    framed.flatten(2).scatter_(2, pixels[:, None].expand(-1, images.shape[1], -1), _STREAK_COLOUR * share)
    framed[..., :radius, :], framed[..., -radius:, :] = framed[..., radius, None, :], framed[..., -radius - 1, None, :]
    framed[..., :radius], framed[..., -radius:] = framed[..., radius, None], framed[..., -radius - 1, None]
    window_sums(window_sums(framed, radius, 2), radius, 3, out=out)


def _in_rain(out: Tensor, images: Tensor, pixels: Tensor, strength: Tensor) -> None:
    height, width = images.shape[-2:]
    radius = _blur_radius(height, width)
    opaque = 1.0 if radius else 0.5  # where nothing softens them
    covered = images.new_zeros(len(images), height * width + 1).scatter_(1, pixels, opaque)
    wet = torch.lerp(images, images.new_full((), _STREAK_COLOUR), covered[:, :-1].unflatten(1, (1, height, width)))
    soft = F.pad(wet, (radius,) * 4, mode="replicate") if radius else wet
    if radius:
        soft = window_sums(window_sums(soft, radius, 2), radius, 3).div_(_window_weight(radius) ** 2)
    torch.lerp(wet, soft, strength, out=out).mul_(1 - (1 - _DARKER) * strength)


@dataclass(frozen=True)
class Fog(Photometric):
    """Drifting white, thicker towards a band across the middle, where a camera looks farthest.

    thickness: from 0, clear, to 1, where little is to be seen; one number n means from 0 to n.
    """

    thickness: Range = (0.3, 1)
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("fog", "of 1"), GRAIN)
    limits: ClassVar[tuple[float, float]] = (0, 1)
    clipped: ClassVar[bool] = True

    def alter(self, images: Tensor, parameters: Tensor) -> Tensor:
        """x + density · (1 − x)."""
        return _piecewise(_fogged, images, fog_density(parameters, images))


def _fogged(out: Tensor, images: Tensor, lattice: Tensor) -> None:
    density = spread(lattice, *images.shape[-2:])[:, None]
    torch.lerp(images, images.new_ones(()), density, out=out)


def _piecewise(function: Callable[..., None], images: Tensor, *others: Tensor) -> Tensor:
    """What `function` writes to its first argument; on a CPU some images at a time, so that they stay in its cache."""
    done = torch.empty_like(images)
    some = len(images) if images.device.type != "cpu" else max(1, _VALUES_AT_ONCE // images[0].numel())
    for pieces in zip(*(whole.split(some) for whole in (done, images, *others)), strict=True):
        function(*pieces)
    return done


def streak_pixels(
    parameters: Tensor, most: float, height: int, width: int, device: torch.device, *, frame: int = 0
) -> Tensor:
    """The pixels that streaks cover, counted row by row; int64, shape (samples, as many as there may be).

    parameters: amount, slant and grain of each sample.
    most: the largest amount that there may be; streaks beyond a sample's own amount cover the pixel below the first
        column, which is no part of the image.
    frame: so many pixels about the image are counted too.
    """
    unit = _unit(height, width)
    length, thick = max(_SHORTEST, round(_STREAK * unit)), max(1, round(unit))
    heavy = _COVERED * height * width / (length * thick)
    drops = math.ceil(heavy * most)
    x, y = unit_pairs(grain_keys(parameters[:, 2]), drops, device)
    lean = per_image(parameters[:, 1].deg2rad().tan(), x)[..., 0]
    step, beside = (torch.arange(count, device=device) for count in (length, thick))
    row = ((y * height).long()[..., None] + step) % height
    column = ((x * width)[..., None] + lean * step).floor_().long()
    column = (column[..., None] + beside) % width  # what leaves on one side comes in on the other
    pixel = (row[..., None] + frame) * (width + 2 * frame) + column + frame
    falls = torch.arange(drops, device=device) < per_image(parameters[:, 0] * heavy, x)[..., 0, 0]
    outside = (height + frame) * (width + 2 * frame) + frame
    return torch.where(falls[..., None, None], pixel, outside).flatten(1)


def _unit(height: int, width: int) -> float:
    """One pixel of a usual image, in pixels of this one."""
    return math.sqrt(height * width / _USUAL_AREA)


def _blur_radius(height: int, width: int) -> int:
    return math.floor(_BLUR * _unit(height, width) / 2)


def fog_density(parameters: Tensor, like: Tensor) -> Tensor:
    """How much white hides of the image at the points of a lattice, 1 − exp(−thickness² · depth).

    The depth of the fog is noise of several scales, larger towards a band across the middle, where a camera sees the
    horizon. Shape (samples, points, points).
    """
    sizes = [count**2 for count in _WISPS]
    drawn = unit_pairs(grain_keys(parameters[:, 1]), sum(sizes), like.device)[0].to(like.dtype)
    wisps = torch.ones((), dtype=like.dtype, device=like.device)
    for (count, weight), values in zip(_WISPS.items(), (drawn - 0.5).split(sizes, 1), strict=True):
        wisps = wisps + weight * spread(values.unflatten(1, (count, count)), _POINTS, _POINTS)
    from_middle = torch.linspace(-1, 1, _POINTS, dtype=like.dtype, device=like.device) ** 2
    middle = 0.5 + 0.5 * torch.exp(-0.5 * from_middle - 2 * from_middle[:, None])
    thickness = per_image(parameters[:, 0], like)[:, 0]
    return 1 - torch.exp(-_DEPTH * thickness**2 * middle * wisps.clamp(min=0.1))


def spread(lattice: Tensor, height: int, width: int) -> Tensor:
    """A smooth surface (cubic B-splines) over a lattice from border to border; shape (samples, height, width)."""
    down, across = (
        _spline(points, size, lattice.dtype, lattice.device)
        for points, size in zip(lattice.shape[1:], (height, width), strict=True)
    )
    return (down @ lattice) @ across.T


@lru_cache(maxsize=64)
def _spline(points: int, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The weights of `points` values, evenly spaced from border to border, at each pixel; shape (size, points)."""
    position = (torch.arange(size, dtype=torch.float64) + 0.5) / size * (points - 1)
    apart = (position[:, None] - torch.arange(-1, points + 1)).abs()
    weights = torch.where(apart < 1, 2 / 3 - apart**2 + apart**3 / 2, (2 - apart).clamp(min=0) ** 3 / 6)
    weights[:, 1] += weights[:, 0]
    weights[:, -2] += weights[:, -1]
    return weights[:, 1:-1].to(device, dtype).contiguous()


def window_sums(framed: Tensor, radius: int, dim: int, *, out: Tensor | None = None) -> Tensor:
    """Sums over 2·radius + 1 neighbours along a dimension, the middle counting more; a frame of `radius` is used up.

    Two windows of a power of two, the widest that fits, one at either end: where they meet, values count twice. So a
    few additions do for any width.
    """
    window, size, length = framed, 1, framed.shape[dim] - 2 * radius
    while 2 * size <= 2 * radius + 1:
        shorter = window.shape[dim] - size
        window, size = window.narrow(dim, 0, shorter) + window.narrow(dim, size, shorter), 2 * size
    return torch.add(window.narrow(dim, 0, length), window.narrow(dim, 2 * radius + 1 - size, length), out=out)


def _window_weight(radius: int) -> int:
    """The sum of the weights of `window_sums`: twice the widest window that fits."""
    return int(2 ** (2 * radius + 1).bit_length())
