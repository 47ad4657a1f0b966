"""A box of fixed size that volumes are cropped or padded to before the network, undone for what it gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.errors import ConfigError
from weakspot.core.tasks import Scores
from weakspot.looks.windows import check_axes, on_its_grid

_NEVER = -100.0
"""The logit of a class that a voxel outside of the box cannot have, beside 0 for the first class: e⁻¹⁰⁰ is nothing."""


@dataclass(frozen=True)
class Box:
    """The forward of a Subject whose network wants volumes of one size: cropped or padded about their centre.

    `Subject(net, forward=Box((160, 192, 160), scores="logits"))`, for a segmentation. What is missing is padded with 0
    after pre-processing. Outputs are put back onto the grid of the inputs, so places, sizes and the affine stay as they
    were. Voxels that were cropped away have the first class, the background: a lesion there is missed.

    size: along each spatial axis, in the order in which the network has them.
    scores: whether the network gives "logits" or "probabilities".
    of: another forward, such as a `SlidingWindow` within the box.
    """

    size: tuple[int, ...]
    scores: Scores
    of: Callable[[Any, Tensor], Any] | None = None

    def __post_init__(self) -> None:
        if not self.size or min(self.size) < 1 or self.scores not in ("logits", "probabilities"):
            raise ConfigError(
                f"expected box sizes of 1 or more and scores 'logits' or 'probabilities', got {self.size} and "
                f"{self.scores!r}"
            )

    def __call__(self, model: Any, inputs: Tensor) -> Tensor:
        """The model's outputs for what lies in the box, on the grid of the inputs."""
        spatial = inputs.shape[2:]
        check_axes("box", self.size, spatial)
        sides = [_side(length, side) for length, side in zip(spatial, self.size, strict=True)]
        within = [slice(side.cropped, side.cropped + side.kept) for side in sides]
        pads = [pad for side in reversed(sides) for pad in (side.before, side.after)]
        boxed = F.pad(inputs[:, :, *within], pads).contiguous()
        given = model(boxed) if self.of is None else self.of(model, boxed)
        outputs = on_its_grid(given, "box", self.size, of="a box")
        seen = outputs[:, :, *(slice(side.before, side.before + side.kept) for side in sides)]
        if seen.shape[2:] == spatial:
            return seen.contiguous()
        whole = self._background(outputs, spatial)
        whole[:, :, *within] = seen
        return whole

    def _background(self, outputs: Tensor, spatial: torch.Size) -> Tensor:
        """The first class for certain, everywhere."""
        is_first, other = (0.0, _NEVER) if self.scores == "logits" else (1.0, 0.0)
        whole = outputs.new_full((*outputs.shape[:2], *spatial), other)
        whole[:, 0] = is_first
        return whole


class _Side(NamedTuple):
    """Along one axis: voxels cropped away at the beginning, kept, and padded before and after."""

    cropped: int
    kept: int
    before: int
    after: int


def _side(length: int, side: int) -> _Side:
    """Where a box lies on an axis: its middle, counted as `length // 2`, on that of the volume, as MONAI does.

    >>> _side(4, 3), _side(3, 6)
    (_Side(cropped=1, kept=3, before=0, after=0), _Side(cropped=0, kept=3, before=1, after=2))
    """
    if side <= length:
        return _Side(length // 2 - side // 2, side, 0, 0)
    before = (side - length) // 2
    return _Side(0, length, before, side - length - before)
