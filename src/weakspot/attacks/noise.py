"""Gaussian noise on some pixels of an image: random ones (U_S), or the most relevant ones (U_DI)."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import DataError
from weakspot.core.stateless_random import draw_keys, draw_words, uniform

_PIXELS, _NOISE = 0, 1
"""Places in the draw, so that which pixels and how much are independent."""


def noisy(inputs: Tensor, pixels: Tensor, noise: Tensor, bounds: tuple[float, float]) -> Tensor:
    """x′ = clip(x + noise) at the chosen pixels, in all their channels; elsewhere x.

    inputs: shape (samples, channels, positions …).
    pixels: numbers of positions, shape (samples, k).
    noise: shape (samples, channels, k).
    """
    flat = inputs.flatten(2)
    places = pixels[:, None].expand(-1, flat.shape[1], -1)
    values = (flat.gather(2, places) + noise.to(flat)).clamp_(*bounds)
    return flat.scatter(2, places, values).view_as(inputs)


def random_pixels(ids: Sequence[str], positions: int, count: int, *, seed: int) -> Tensor:
    """`count` different positions per sample, drawn from (seed, id) alone; shape (samples, count)."""
    words = draw_words(draw_keys(ids, seed, _PIXELS), positions)
    return torch.from_numpy(np.argsort(words, axis=1, kind="stable")[:, :count].copy())


def relevant_pixels(relevance: Tensor, count: int) -> Tensor:
    """The `count` positions of highest relevance, summed over channels; shape (samples, count)."""
    per_pixel = relevance.flatten(2).sum(1)
    return per_pixel.argsort(dim=1, descending=True, stable=True)[:, :count]


def gaussian(ids: Sequence[str], channels: int, count: int, *, sigma: float, seed: int) -> Tensor:
    """N(0, σ²) from (seed, id) alone, by the method of Box and Muller; float64, shape (samples, channels, count)."""
    numbers = channels * count
    chance = uniform(draw_keys(ids, seed, _NOISE), 2 * numbers)
    radius = np.sqrt(-2 * np.log1p(-chance[:, :numbers]))
    drawn = sigma * radius * np.cos(2 * np.pi * chance[:, numbers:])
    return torch.from_numpy(drawn.reshape(len(drawn), channels, count))


def pixel_count(inputs: Tensor, share: float) -> int:
    """How many pixels a share is, rounded down as in the paper (2 % of 784 are 15), at least one."""
    if inputs.ndim < 3:
        raise DataError(f"noise on pixels needs images (samples, channels, positions …), got {tuple(inputs.shape)}")
    return max(1, math.floor(share * math.prod(inputs.shape[2:])))
