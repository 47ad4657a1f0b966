"""Common corruptions by digital processing: contrast, elastic deformation, pixels, JPEG. Images from 0 to 1."""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.stateless_random import further_keys, uniform, unit_pairs
from weakspot.looks.corruption_blur import bell_blur
from weakspot.looks.jpeg import Jpeg

_MOVES, _CORNERS = 0, 1
"""Places in the draw."""


def contrast(images: Tensor, keys: np.ndarray, factor: float) -> Tensor:
    """mean + factor · (x − mean), with the mean of each channel."""
    mean = images.mean((2, 3), keepdim=True, dtype=torch.float64).to(images.dtype)
    return torch.lerp(mean, images, factor)


def elastic_transform(images: Tensor, keys: np.ndarray, *strength: float) -> Tensor:
    """Pixels are moved by smooth noise; images of CIFAR-10-C's severities also by a random affine map.

    strength: α alone, with the sizes of ImageNet-C; or α, σ and how far corners move, as shares of the image's side.
    """
    height, width = images.shape[-2:]
    if len(strength) == 1:
        moves = smooth_noise(keys, images, (0.01 * height, 0.01 * width)).mul_(0.005 * height)
        return resampled(images, moves.mul_(strength[0]))
    alpha, sigma, corners = (part * min(height, width) for part in strength)
    images = affine(images, keys, corners)
    if not alpha:
        return images
    return resampled(images, smooth_noise(keys, images, (sigma, sigma)).mul_(alpha))


def smooth_noise(keys: np.ndarray, like: Tensor, sigmas: tuple[float, float]) -> Tensor:
    """Numbers uniform in −1 to 1, blurred by a bell that is cut off at 3 σ; shape (samples, 2, height, width)."""
    size = like.shape[-2:]
    drawn = torch.stack(unit_pairs(further_keys(keys, _MOVES), math.prod(size), like.device), 1)
    noise = drawn.mul_(2).sub_(1).to(like.dtype).view(-1, 2, *size)
    if sigmas[0] == sigmas[1]:
        return bell_blur(noise, sigmas[0], cutoff=3, half_mirror=True)
    down = bell_blur(noise, sigmas[0], cutoff=3, half_mirror=True, dims=(2,))
    return bell_blur(down, sigmas[1], cutoff=3, half_mirror=True, dims=(3,))


def resampled(images: Tensor, moves: Tensor) -> Tensor:
    """x at the place of each pixel plus its move in pixels (across, down), linear; borders are mirrored."""
    height, width = images.shape[-2:]
    down, across = (torch.arange(side, dtype=moves.dtype, device=moves.device) for side in (height, width))
    column, row = moves[:, 0] + across, moves[:, 1] + down[:, None]
    grid = torch.stack([(2 * column + 1) / width - 1, (2 * row + 1) / height - 1], -1)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def affine(images: Tensor, keys: np.ndarray, farthest: float) -> Tensor:
    """The affine map that moves three corners of a square in the middle by up to so many pixels each way."""
    height, width = images.shape[-2:]
    middle, side = np.array([height // 2, width // 2], float), min(height, width) // 3
    square = np.array([middle + side, [middle[0] + side, middle[1] - side], middle - side])
    moved = square + farthest * (2 * uniform(further_keys(keys, _CORNERS), 6).reshape(-1, 3, 2) - 1)
    ones = np.ones((len(moved), 3, 1))
    back = np.linalg.solve(np.concatenate([moved, ones], 2), np.broadcast_to(square, moved.shape))  # (samples, 3, 2)
    down, across = np.mgrid[:height, :width]
    places = np.stack([across, down, np.ones_like(down)], -1) @ back[:, None]
    grid = torch.from_numpy(2 * places / (np.array([width, height]) - 1) - 1).to(images)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=True)


def pixelate(images: Tensor, keys: np.ndarray, share: float) -> Tensor:
    """Reduced to this share of the pixels by means over blocks, and enlarged by repeating."""
    for dim in (2, 3):
        size = images.shape[dim]
        taps, weights, back = _blocks(size, max(1, int(size * share)))
        small = torch.zeros_like(images.narrow(dim, 0, taps.shape[1]))
        shape = [-1 if axis == dim else 1 for axis in range(4)]
        for tap, weight in zip(taps, weights, strict=True):
            small.addcmul_(images.index_select(dim, tap.to(images.device)), weight.to(images).view(shape))
        images = small.index_select(dim, back.to(images.device))
    return images


@lru_cache(maxsize=32)
def _blocks(size: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which pixels each of `count` blocks is the mean of, with weights, (taps, count); and the block of each pixel.

    A pixel belongs to a block if its middle lies within half a block of the block's middle.
    """
    scale = size / count
    middles = (np.arange(count) + 0.5) * scale
    first = np.maximum((middles - scale / 2 + 0.5).astype(int), 0)
    taps = first + np.arange(math.ceil(scale) + 1)[:, None]
    place = (taps - middles + 0.5) / scale
    inside = (place > -0.5) & (place <= 0.5) & (taps < size)
    back = ((np.arange(size) + 0.5) * count / size).astype(int)
    weights = inside / inside.sum(0)
    return torch.from_numpy(np.minimum(taps, size - 1)), torch.from_numpy(weights), torch.from_numpy(back)


def jpeg_compression(images: Tensor, keys: np.ndarray, quality: int) -> Tensor:
    """What is left after JPEG of this quality, colour at half the resolution."""
    qualities = torch.full((len(images), 1), float(quality), dtype=torch.float64)
    return Jpeg((quality, quality)).alter(images, qualities)
