"""A sliding window over images or volumes that are too large for one forward pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.errors import ConfigError, SubjectError


@dataclass(frozen=True)
class SlidingWindow:
    """The forward of a Subject that runs the model window by window and joins the outputs, weighted by a Gaussian.

    `Subject(net, forward=SlidingWindow((32, 128, 128)))`. Windows are spread evenly, as nnU-Net does (Isensee et al.
    2021); an image smaller than the window is padded with 0, and the padding cut off again. Under Monte-Carlo dropout
    each window draws masks of its own.

    size: of the window, along each spatial axis.
    overlap: the least share of a window that the next one covers again.
    sigma: of the Gaussian, in sizes of the window; a window's border counts less than its centre.
    """

    size: tuple[int, ...]
    overlap: float = 0.5
    sigma: float = 0.125

    def __post_init__(self) -> None:
        if not self.size or min(self.size) < 1 or not 0 <= self.overlap < 1 or not self.sigma > 0:
            raise ConfigError(
                f"expected window sizes of 1 or more, an overlap from 0 to below 1 and a sigma above 0, got "
                f"{self.size}, {self.overlap} and {self.sigma}"
            )

    def __call__(self, model: Any, inputs: Tensor) -> Tensor:
        """The model's outputs for all of the inputs, on their grid."""
        spatial = inputs.shape[2:]
        check_axes("window", self.size, spatial)
        padded = _padded(inputs, self.size)
        weight = _gaussian(self.size, self.sigma).to(inputs.device, inputs.dtype)
        total: Tensor | None = None
        share = torch.zeros(padded.shape[2:], device=inputs.device, dtype=inputs.dtype)
        for corner in product(*map(self._starts, padded.shape[2:], self.size)):
            where = [slice(start, start + side) for start, side in zip(corner, self.size, strict=True)]
            outputs = on_its_grid(model(padded[:, :, *where].contiguous()), "window", self.size, of="a sliding window")
            if total is None:
                total = outputs.new_zeros((*outputs.shape[:2], *padded.shape[2:]))
            total[:, :, *where] += outputs * weight
            share[*where] += weight
        assert total is not None
        return total.div_(share)[:, :, *(slice(0, side) for side in spatial)]

    def _starts(self, length: int, side: int) -> list[int]:
        """Where windows begin along one axis: the fewest that overlap enough, spread evenly.

        >>> SlidingWindow((64,))._starts(110, 64)
        [0, 23, 46]
        """
        step = max(1.0, side * (1 - self.overlap))
        count = int(np.ceil((length - side) / step)) + 1
        return [round(index * (length - side) / max(1, count - 1)) for index in range(count)]


def check_axes(name: str, size: Sequence[int], spatial: Sequence[int]) -> None:
    """Refuse a size, such as a window's, that has other axes than the inputs."""
    if len(spatial) != len(size):
        raise SubjectError(f"the {name} {size} has {len(size)} axes, the inputs {len(spatial)} spatial ones")


def on_its_grid(outputs: Any, name: str, size: Sequence[int], *, of: str) -> Tensor:
    """The outputs for an input of this size, if they are on its grid.

    name: what has the size, such as "window".
    of: the same in the advice, such as "a sliding window".
    """
    if not isinstance(outputs, Tensor) or tuple(outputs.shape[2:]) != tuple(size):
        got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise SubjectError(
            f"a {name} of size {size} gave {got}, expected a tensor (samples, classes, *{name}): {of} needs a "
            "segmentation on the grid of its input"
        )
    return outputs


def _padded(inputs: Tensor, size: Sequence[int]) -> Tensor:
    missing = [max(0, side - length) for side, length in zip(size, inputs.shape[2:], strict=True)]
    return F.pad(inputs, [pad for amount in reversed(missing) for pad in (0, amount)]) if any(missing) else inputs


@cache
def _gaussian(size: tuple[int, ...], sigma: float) -> Tensor:
    """exp(−½ Σ ((i − centre) / (sigma · size))²), never below a thousandth, so that corners that only one window
    reaches are not lost to rounding.
    """
    weight = torch.ones(())
    for side in size:
        places = (torch.arange(side, dtype=torch.float64) - (side - 1) / 2) / (sigma * side)
        weight = weight[..., None] * torch.exp(-places.square() / 2)
    return weight.clamp_min(1e-3)
