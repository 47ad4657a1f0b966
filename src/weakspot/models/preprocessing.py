"""From inputs as they are in the data to what a model wants, where a few numbers say it all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from weakspot.core.errors import ConfigError, SubjectError

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Normalise:
    """(scale · x − mean) / std per channel, dimension 1, of (samples, channels, …); then channels are arranged.

    scale: what to multiply the values by: 255 where the data are from 0 to 1 and the model wants bytes.
    mean, std: one number for all channels, or one per channel, of the scaled values.
    bgr: whether the model wants blue, green and red instead of red, green and blue; `mean` and `std` are in its order.
    channels_last: whether the model wants the channels as the last dimension.
    """

    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    bgr: bool = False
    channels_last: bool = False

    def __post_init__(self) -> None:
        if not self.mean or not self.std or any(value == 0 for value in (self.scale, *self.std)):
            raise ConfigError(f"scale and std must not be 0, and mean and std not empty, got {self}")

    def __call__(self, inputs: Tensor) -> Tensor:
        """The inputs, normalised."""
        if self.bgr:
            self._check_channels(inputs, 3)
            inputs = inputs.flip(1)
        values = inputs * self.scale
        if (self.mean, self.std) != ((0.0,), (1.0,)):  # in place: for large images fresh memory costs most
            values = values.sub_(self._per_channel(self.mean, values)).div_(self._per_channel(self.std, values))
        return values.movedim(1, -1).contiguous() if self.channels_last else values

    def entry(self) -> dict[str, Any]:
        """As `preprocess` of `weakspot.yaml` has it, without what changes nothing."""
        standard = Normalise()
        given = {name: value for name, value in vars(self).items() if value != getattr(standard, name)}
        lone = {name: value[0] for name, value in given.items() if isinstance(value, tuple) and len(value) == 1}
        return {**{name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}, **lone}

    def _per_channel(self, numbers: Sequence[float], inputs: Tensor) -> Tensor:
        if len(numbers) > 1:
            self._check_channels(inputs, len(numbers))
        shape = (1, -1, *[1] * (inputs.ndim - 2))
        return _numbers(numbers, inputs.dtype, inputs.device).view(shape)

    def _check_channels(self, inputs: Tensor, wanted: int) -> None:
        if inputs.ndim < 2 or inputs.shape[1] != wanted:
            raise SubjectError(
                f"the pre-processing is for {wanted} channels, and the inputs are of shape {tuple(inputs.shape)}"
            )


_KNOWN: dict[tuple[tuple[float, ...], torch.dtype, torch.device], Tensor] = {}


def _numbers(numbers: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """On the device, sent there once: a GPU would wait for it each time, and a recorded pass may not."""
    key = tuple(numbers), dtype, device
    if key in _KNOWN:
        return _KNOWN[key]
    made = torch.tensor(numbers, dtype=dtype, device=device)
    if type(made) is Tensor:  # not one without values, of a pass that is only traced
        _KNOWN[key] = made
    return made
