"""Warping: every pixel of the result from where an affine map says it came from, with few passes over memory."""

from collections.abc import Callable
from functools import lru_cache, partial

import torch
from torch import Tensor
from torch.nn import functional as F

_VALUES_AT_ONCE = {"cpu": 1 << 20, "cuda": 1 << 28}
"""Values of images, places and results that a thread has at a time: they stay in a core's cache, or fill a GPU."""


def warp(images: Tensor, inverse: Tensor, *, fill: float = 0.0) -> Tensor:
    """Each output pixel from where `inverse` says it came from: bilinear, `fill` outside.

    images: shape (samples, channels, height, width), float32 or float64.
    inverse: shape (samples, 3, 3), in pixels about the centre.
    """
    channels, height, width = images.shape[1:]
    framed = bool(fill) or images.device.type == "cpu"
    kind = torch.complex128 if images.dtype == torch.float64 else torch.complex64
    maps = _normalised(inverse, height, width, frame=int(framed)).to(kind)
    sampled = partial(_sampled_framed, fill=fill) if framed else _sampled
    threads = torch.get_num_threads() if images.device.type == "cpu" else 1  # each takes whole images
    each = (2 * channels + 2) * height * width
    some = threads * max(1, _VALUES_AT_ONCE.get(images.device.type, 1 << 28) // each)
    return _piecewise(sampled, images, to_device(maps, images.device), some)


def _piecewise(sampled: Callable[[Tensor, Tensor], Tensor], images: Tensor, maps: Tensor, some: int) -> Tensor:
    if some >= len(images):
        return sampled(images, maps)
    warped = torch.empty_like(images)
    for target, piece, piece_maps in zip(warped.split(some), images.split(some), maps.split(some), strict=True):
        target.copy_(sampled(piece, piece_maps))
    return warped


def _sampled(images: Tensor, maps: Tensor) -> Tensor:
    """The values at the places that the maps give, 0 outside."""
    places = _places(maps, *images.shape[-2:])
    return F.grid_sample(images, places, mode="bilinear", padding_mode="zeros", align_corners=False)


def _sampled_framed(images: Tensor, maps: Tensor, *, fill: float) -> Tensor:
    """The same with `fill` outside: a frame of one pixel of it, which places outside are moved to.

    On a CPU this is faster than to ask of every pixel whether it lies outside.
    """
    places = _places(maps, *images.shape[-2:])
    framed = F.pad(images, (1, 1, 1, 1), value=fill)
    return F.grid_sample(framed, places, mode="bilinear", padding_mode="border", align_corners=False)


def to_device(numbers: Tensor, device: torch.device) -> Tensor:
    """A few numbers on their way to the device, without waiting for what it is doing."""
    if device.type == "cuda" and numbers.device.type == "cpu":
        return numbers.pin_memory().to(device, non_blocking=True)
    return numbers.to(device)


def _normalised(inverse: Tensor, height: int, width: int, *, frame: int) -> Tensor:
    """The maps as torch's grid_sample counts: a complex number x + iy per column, −1 … 1 from border to border.

    What is looked at is the image with a frame of so many pixels.
    """
    across = inverse[:, 0] * (2 / (width + 2 * frame))
    down = inverse[:, 1] * (2 / (height + 2 * frame))
    return torch.complex(across, down) * _half_sizes(height, width, inverse.dtype, inverse.device)


def _places(maps: Tensor, height: int, width: int) -> Tensor:
    """Where each output pixel comes from, shape (samples, height, width, 2).

    An affine map is a sum of a function of the column and one of the row, so that one broadcast addition of complex
    numbers makes all places: a tenth of the time of torch's affine_grid.
    """
    across, down, start = maps.unsqueeze(-1).unbind(1)
    columns = across * _centres(width, maps.real.dtype, maps.device) + start
    rows = down * _centres(height, maps.real.dtype, maps.device)
    return torch.view_as_real(columns[:, None, :] + rows[:, :, None])


@lru_cache(maxsize=16)
def _half_sizes(height: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What the columns of a map in pixels are multiplied with where the image goes from −1 to 1."""
    return torch.tensor([width / 2, height / 2, 1.0], dtype=dtype, device=device)


@lru_cache(maxsize=16)
def _centres(count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The centres of `count` pixels between −1 and 1."""
    return (2 * torch.arange(count, dtype=dtype, device=device) + 1) / count - 1
