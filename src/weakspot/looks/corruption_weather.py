"""Common corruptions by weather: snow, frost, fog and brightness. Images from 0 to 1; a key per image."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.stateless_random import further_keys, standard_normal, uniform, unit_numbers
from weakspot.looks.corruption_blur import enlarged, smeared

_GREY = (0.299, 0.587, 0.114)
_LAYER, _ANGLE, _TINT = 0, 1, 2
"""Places in the draw."""
_RIDGES = {4: 0.35, 8: 0.3, 16: 0.2, 32: 0.15}
"""Points along a side, and the weights of the ridges between them."""
_ICE = (0.57, 0.66, 0.70)
_PANES, _ROUGHNESS = 0.2, 0.13
"""The mean colour of the five textures that the published frost is made of, how much one pane is brighter than
another, and how much brightness varies within a pane."""


def snow(
    images: Tensor, keys: np.ndarray, mean: float, deviation: float, zoom: float, least: float,
    radius: int, sigma: float, kept: float,
) -> Tensor:  # fmt: skip
    """Flakes that fall slantingly, twice, over an image that is made paler."""
    height, width = images.shape[-2:]
    cut = [math.ceil(side / zoom) for side in (height, width)]
    drawn = standard_normal(further_keys(keys, _LAYER), cut[0] * cut[1], images.device)
    layer = drawn.mul_(deviation).add_(mean).to(images.dtype).view(-1, 1, *cut)
    layer = enlarged(layer, zoom)
    layer = torch.where(layer < least, 0, layer).clamp_(0, 1)
    layer = smeared(layer, -135 + 90 * uniform(further_keys(keys, _ANGLE), 1)[:, 0], radius, sigma)
    layer = (layer[..., :height, :width] * 255).round_().div_(255)
    pale = torch.maximum(images, luminance(images) * 1.5 + 0.5)
    return images * kept + pale * (1 - kept) + layer + layer.flip((2, 3))


def luminance(images: Tensor) -> Tensor:
    """0.299 red + 0.587 green + 0.114 blue; of other numbers of channels the mean. Shape (samples, 1, …)."""
    if images.shape[1] != 3:
        return images.mean(1, keepdim=True)
    weights = images.new_tensor(_GREY).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def frost(images: Tensor, keys: np.ndarray, kept: float, ice: float) -> Tensor:
    """kept · x + ice · texture; the texture is made here, since the published ones are photographs."""
    return images * kept + frost_texture(keys, images) * ice


def frost_texture(keys: np.ndarray, like: Tensor) -> Tensor:
    """Ridges of several sizes where noise crosses zero, like needles of ice, bluish white; the shape of `like`.

    Mean colour and spread are those of the photographs that ImageNet-C uses.
    """
    height, width = like.shape[-2:]
    sizes = [points**2 for points in _RIDGES]
    drawn = standard_normal(further_keys(keys, _LAYER), sum(sizes), like.device).to(like.dtype)
    texture = like.new_zeros(len(like), 1, height, width)
    for (points, weight), values in zip(_RIDGES.items(), drawn.split(sizes, 1), strict=True):
        lattice = values.reshape(-1, 1, points, points)
        noise = F.interpolate(lattice, (height, width), mode="bicubic", align_corners=True)
        texture.add_(1 - noise.abs(), alpha=weight)
    pane = torch.from_numpy(2 * uniform(further_keys(keys, _TINT), 1) - 1).to(texture).view(-1, 1, 1, 1)
    texture = (texture - 0.3).mul_(_ROUGHNESS / 0.3).add_(pane * _PANES)
    tint = [_ICE[channel] for channel in range(3)] if like.shape[1] == 3 else [sum(_ICE) / 3]
    return (texture + texture.new_tensor(tint).view(1, -1, 1, 1)).clamp_(0, 1)


def fog(images: Tensor, keys: np.ndarray, thickness: float, decay: float) -> Tensor:
    """Drifts of white, and the whole darkened so that the brightest value stays."""
    height, width = images.shape[-2:]
    brightest = images.amax((1, 2, 3), keepdim=True)
    drifts = plasma(keys, 1 << (max(height, width) - 1).bit_length(), decay, images.device)
    white = drifts[:, None, :height, :width].to(images.dtype)
    return images.add(white, alpha=thickness).mul_(brightest / (brightest + thickness))


def plasma(keys: np.ndarray, size: int, decay: float, device: torch.device) -> Tensor:
    """A plasma fractal from 0 to 1 by diamonds and squares, round at the borders; float32, (samples, size, size).

    Each point is the mean of four points around it and noise, whose amplitude 100² falls by decay² with every halving
    of the distance between points.
    """
    grid = torch.zeros(len(keys), size, size, device=device)
    step, wibble, level = size, 100.0, 0
    while step >= 2:
        half = step // 2
        corners = grid[:, ::step, ::step]
        grid[:, half::step, half::step] = _mean(
            corners, corners.roll(-1, 1), corners.roll(-1, 2), corners.roll((-1, -1), (1, 2))
        ) + _noise(keys, corners, level, wibble)
        centres = grid[:, half::step, half::step]
        grid[:, ::step, half::step] = _mean(centres, centres.roll(1, 1), corners, corners.roll(-1, 2)) + _noise(
            keys, corners, level + 1, wibble
        )
        grid[:, half::step, ::step] = _mean(centres, centres.roll(1, 2), corners, corners.roll(-1, 1)) + _noise(
            keys, corners, level + 2, wibble
        )
        step, wibble, level = half, wibble / decay, level + 3
    grid -= grid.amin((1, 2), keepdim=True)
    return grid / grid.amax((1, 2), keepdim=True).clamp(min=torch.finfo(grid.dtype).tiny)


def _mean(*points: Tensor) -> Tensor:
    first, second, third, fourth = points
    return (first + second + third + fourth) / 4


def _noise(keys: np.ndarray, like: Tensor, level: int, wibble: float) -> Tensor:
    drawn = unit_numbers(further_keys(keys, level), like[0].numel(), like.device)
    return drawn.view_as(like).mul_(2).sub_(1).mul_(wibble * wibble)


def brightness(images: Tensor, keys: np.ndarray, more: float) -> Tensor:
    """Something is added to every colour's value (its largest channel), up to 1; hue and saturation stay."""
    value = images.amax(1, keepdim=True)
    raised = (value + more).clamp_(max=1)
    factor = raised / value.clamp(min=torch.finfo(images.dtype).tiny)
    return torch.where(value > 0, images * factor, raised)
