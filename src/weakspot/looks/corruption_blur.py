"""Common corruptions by blur: defocus, frosted glass, motion and zoom. Images from 0 to 1; a key per image."""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.stateless_random import device_words, further_keys, uniform

_TINY = 1e-9
"""Weights below this are left out."""
_AT_ONCE = 1 << 18
"""Values that are worked on at a time where that keeps them in a processor's cache."""
_SMALL = 64
"""Images up to this size are enlarged by products of matrices."""
_CUTOFF = 4
"""A bell is cut off at so many standard deviations."""


def defocus_blur(images: Tensor, keys: np.ndarray, radius: float, softness: float) -> Tensor:
    """The mean over a disc of this radius, whose edge is softened; mirrored about the border's pixels."""
    weights = disc(radius, softness)
    reach = len(weights) // 2
    rows, columns = np.nonzero(np.abs(weights).max(1) > _TINY)[0], np.nonzero(np.abs(weights).max(0) > _TINY)[0]
    reach = max(reach - rows[0], reach - columns[0]) if len(rows) else reach
    middle = len(weights) // 2
    weights = weights[middle - reach : middle + reach + 1, middle - reach : middle + reach + 1]
    framed = mirrored(mirrored(images, reach, 2), reach, 3)
    return weighted_windows(framed, weights, images.shape[-2:])


@lru_cache(maxsize=32)
def disc(radius: float, softness: float) -> np.ndarray:
    """The weights of a disc after a Gaussian of 3 × 3 (5 × 5 beyond radius 8); float64, odd sizes."""
    reach, window = (8, 1) if radius <= 8 else (math.ceil(radius), 2)
    steps = np.arange(-reach, reach + 1)
    inside = (steps[:, None] ** 2 + steps**2 <= radius**2).astype(np.float64)
    bell = np.exp(-(np.arange(-window, window + 1) ** 2) / (2 * softness**2))
    framed = np.pad(inside / inside.sum(), window, mode="reflect")
    for axis in (0, 1):
        framed = np.apply_along_axis(np.convolve, axis, framed, bell / bell.sum(), "valid")
    return framed


def weighted_windows(framed: Tensor, weights: np.ndarray, size: tuple[int, ...] | torch.Size) -> Tensor:
    """Σ w(i, j) x(· + i, · + j) for weights that are the same upside down; shape (samples, channels, *size).

    A row of weights is a sum of steps, so a row of the result is a sum of differences of running sums: as many terms as
    the row has steps, few for a disc. Rows i and −i share them.
    """
    middle = len(weights) // 2
    steps = -np.diff(weights, axis=1, prepend=0, append=0)[: middle + 1]
    running = (np.abs(steps) > _TINY).sum() < (np.abs(weights[: middle + 1]) > _TINY).sum()
    terms = steps if running else weights[: middle + 1]
    done = framed.new_empty(*framed.shape[:2], *size)
    for out, piece in zip(*(part.split(_some(framed)) for part in (done, framed)), strict=True):
        summed = F.pad(piece.cumsum(3), (1, 0)) if running else piece
        out.copy_(_mirrored_rows(summed, terms, size))
    return done


def _some(images: Tensor) -> int:
    """So many images at once stay in the cache of a processor."""
    return len(images) if images.device.type != "cpu" else max(1, _AT_ONCE // max(1, images[0].numel()))


def _mirrored_rows(values: Tensor, terms: np.ndarray, size: tuple[int, ...] | torch.Size) -> Tensor:
    """Σ terms(i, j) (values(· + i, · + j) + values(· + last − i, · + j)); the last row of the terms stands alone."""
    height, width = size
    total = values.new_zeros(*values.shape[:2], height, width)
    last = 2 * (len(terms) - 1)
    for row, own in enumerate(terms):
        columns = np.flatnonzero(np.abs(own) > _TINY).tolist()
        if not columns:
            continue
        rows = values[:, :, row : row + height]
        if last - row != row:
            rows = rows + values[:, :, last - row : last - row + height]
        for column in columns:
            total.add_(rows[..., column : column + width], alpha=float(own[column]))
    return total


def mirrored(images: Tensor, reach: int, dim: int) -> Tensor:
    """A frame of `reach` values on both sides, mirrored about the outermost ones, for any size."""
    size = images.shape[dim]
    period = max(1, 2 * (size - 1))
    place = torch.arange(-reach, size + reach, device=images.device).remainder(period)
    return images.index_select(dim, torch.minimum(place, period - place))


def repeated(images: Tensor, reach: int) -> Tensor:
    """A frame of `reach` values on all sides that repeats the outermost ones."""
    for dim in (-2, -1):
        place = torch.arange(-reach, images.shape[dim] + reach, device=images.device)
        images = images.index_select(dim, place.clamp_(0, images.shape[dim] - 1))
    return images


def bell_blur(
    images: Tensor,
    sigma: float,
    *,
    cutoff: float = _CUTOFF,
    half_mirror: bool = False,
    dims: tuple[int, ...] = (2, 3),
) -> Tensor:
    """Gaussian blur along rows and columns; the border is repeated, or mirrored with its own pixel twice."""
    radius = int(cutoff * sigma + 0.5)
    if not radius:
        return images
    bell = np.exp(-(np.arange(-radius, radius + 1) ** 2) / (2 * sigma**2))
    for dim in dims:
        size = images.shape[dim]
        place = torch.arange(-radius, size + radius, device=images.device)
        if half_mirror:
            place = place.remainder(2 * size)
            place = torch.minimum(place, 2 * size - 1 - place)
        framed = images.index_select(dim, place.clamp_(0, size - 1))
        images = torch.zeros_like(images)
        for step, weight in enumerate((bell / bell.sum()).tolist()):
            images.add_(framed.narrow(dim, step, size), alpha=weight)
    return images


def glass_blur(images: Tensor, keys: np.ndarray, sigma: float, reach: int, rounds: int) -> Tensor:
    """Blurred, every pixel replaced by a random one nearby, and blurred again.

    The published images were made so: the code that made them means to swap two pixels, and copies one.
    """
    soft = (bell_blur(images, sigma) * 255 + 1e-3).floor_().div_(255)
    height, width = images.shape[-2:]
    place = copied_places(keys, height, width, reach, rounds, images.device)
    shuffled = soft.flatten(2).gather(2, place[:, None].expand(-1, images.shape[1], -1)).view_as(images)
    return bell_blur(shuffled, sigma)


def copied_places(keys: np.ndarray, height: int, width: int, reach: int, rounds: int, device: torch.device) -> Tensor:
    """Where each pixel came from after the copies; int64, shape (samples, height · width).

    From the bottom right to the top left, each pixel becomes the one dy rows and dx columns on, both from −reach to
    reach − 1. A copy reaches no further than `reach`, so copies that lie 2 · reach + 1 columns apart from row to row
    touch different pixels and are done at once.
    """
    place = torch.arange(height * width, device=device).repeat(len(keys), 1)
    waves = _waves(height, width, reach)
    for number in range(rounds):
        words = device_words(further_keys(keys, number), height * width, device)
        down = (words & 0xFFFFFF).mul_(2 * reach).bitwise_right_shift_(24).sub_(reach)
        across = ((words >> 32) & 0xFFFFFF).mul_(2 * reach).bitwise_right_shift_(24).sub_(reach)
        partner = down.mul_(width).add_(across)
        for wave in (wave.to(device) for wave in waves):
            place[:, wave] = place.gather(1, wave + partner[:, wave])
    return place


@lru_cache(maxsize=16)
def _waves(height: int, width: int, reach: int) -> tuple[Tensor, ...]:
    """The pixels that are replaced at once, wave after wave; numbers row by row."""
    rows, columns = np.meshgrid(
        np.arange(height - reach, reach, -1), np.arange(width - reach, reach, -1), indexing="ij"
    )
    time = ((height - rows) * (2 * reach + 1) + width - columns).ravel()
    order = np.argsort(time, kind="stable")
    cuts = np.flatnonzero(np.diff(time[order])) + 1
    parts = np.split((rows * width + columns).ravel()[order], cuts)
    return tuple(torch.from_numpy(part) for part in parts if len(part))


def motion_blur(images: Tensor, keys: np.ndarray, radius: int, sigma: float) -> Tensor:
    """Smeared in a direction up to 45 degrees from level, with half a bell for weights."""
    return smeared(images, 90 * uniform(keys, 1)[:, 0] - 45, radius, sigma)


def smeared(images: Tensor, degrees: np.ndarray, radius: int, sigma: float) -> Tensor:
    """Σ w(i) x(· + i steps in this direction), i = 0 … 2 · radius, each step rounded to whole pixels.

    Images whose steps round alike are smeared together.
    """
    height, width = images.shape[-2:]
    steps = np.arange(2 * radius + 1)
    bell = np.exp(-(steps**2) / (2 * sigma**2))
    bell /= bell.sum()
    angle = np.deg2rad(degrees)[:, None]
    down, across = (np.ceil(steps * part(angle) - 0.5).astype(int) for part in (np.sin, np.cos))
    framed, done = repeated(images, 2 * radius), torch.zeros_like(images)
    ways, members = np.unique(np.concatenate([down, across], 1), axis=0, return_inverse=True)
    for number, way in enumerate(ways):
        rows = torch.from_numpy(np.flatnonzero(members.reshape(-1) == number)).to(images.device)
        alike, total = framed[rows], torch.zeros_like(images[rows])
        for weight, row, column in zip(bell.tolist(), *way.reshape(2, -1).tolist(), strict=True):
            if abs(row) >= height or abs(column) >= width:
                break  # as in the original: what has left the image adds nothing
            top, left = row + 2 * radius, column + 2 * radius
            total.add_(alike[..., top : top + height, left : left + width], alpha=weight)
        done[rows] = total
    return done


def zoom_blur(images: Tensor, keys: np.ndarray, most: float, step: float) -> Tensor:
    """The mean of the image and of what zooming in up to `most` shows of it."""
    zooms = np.arange(1, most, step)
    if max(images.shape[-2:]) <= _SMALL:
        return _zoomed_by_matrices(images, (1.0, *zooms.tolist())).div_(len(zooms) + 1)
    total = images.clone()
    for zoom in zooms.tolist():
        total += zoomed(images, zoom)
    return total.div_(len(zooms) + 1)


def _zoomed_by_matrices(images: Tensor, zooms: tuple[float, ...]) -> Tensor:
    """Σ over the zooms of D(zoom) · image · Aᵀ(zoom), D downwards and A across; all zooms in two products per plane."""
    (height, width), planes = images.shape[-2:], images.flatten(0, 1)
    down, across = (_zooming(side, zooms).to(images) for side in (height, width))
    enlarged_down = torch.bmm(down.flatten(0, 1).expand(len(planes), -1, -1), planes)
    beside = enlarged_down.view(-1, len(zooms), height, width).transpose(1, 2).flatten(2)
    return torch.bmm(beside, across.transpose(1, 2).flatten(0, 1).expand(len(planes), -1, -1)).view_as(images)


@lru_cache(maxsize=32)
def _zooming(side: int, zooms: tuple[float, ...]) -> Tensor:
    """What `zoomed` does along one side, as a matrix for each zoom; shape (zooms, side, side)."""
    plane = torch.eye(side, dtype=torch.float64).unsqueeze(1)  # one image per pixel that is lit, a single row high
    return torch.stack([zoomed(plane.unsqueeze(2).expand(-1, -1, side, -1), zoom)[:, 0, 0].T for zoom in zooms])


def zoomed(images: Tensor, zoom: float) -> Tensor:
    """The middle of the image, enlarged linearly from corner to corner to the image's size and cut to it."""
    size = images.shape[-2:]
    cut = [math.ceil(side / zoom) for side in size]
    top, left = ((side - part) // 2 for side, part in zip(size, cut, strict=True))
    large = enlarged(images[..., top : top + cut[0], left : left + cut[1]], zoom)
    trim = [(there - side) // 2 for there, side in zip(large.shape[-2:], size, strict=True)]
    return large[..., trim[0] : trim[0] + size[0], trim[1] : trim[1] + size[1]]


def enlarged(images: Tensor, zoom: float) -> Tensor:
    """Linear interpolation, corners on corners."""
    target = [round(side * zoom) for side in images.shape[-2:]]
    return F.interpolate(images, target, mode="bilinear", align_corners=True)
