"""The fifteen common corruptions of ImageNet-C and CIFAR-10-C, made on the device (Hendrycks and Dietterich 2019)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.options import nearest
from weakspot.looks import corruption_blur as blur
from weakspot.looks import corruption_digital as digital
from weakspot.looks import corruption_noise as noise
from weakspot.looks import corruption_weather as weather
from weakspot.looks.corruption_severities import KINDS, SEVERITIES, SMALL, Sizes, strength
from weakspot.looks.values import grain_keys
from weakspot.looks.variations import GRAIN, Photometric, Quantity, Range

_MODULES = (noise, blur, weather, digital)
_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    kind: next(getattr(module, kind) for module in _MODULES if hasattr(module, kind)) for kind in KINDS
}


@dataclass(frozen=True)
class Corruption(Photometric):
    """One of the fifteen common corruptions.

    severity: from 1 to 5, whole numbers; one number n means exactly n.
    kind: which corruption, such as "fog".
    sizes: whose severities: "large" of ImageNet-C, "small" of CIFAR-10-C, "auto" those of CIFAR-10-C where the shorter
        side has fewer than 64 pixels.
    """

    severity: Range = 3
    kind: str = "gaussian_noise"
    sizes: Sizes = "auto"
    quantities: ClassVar[tuple[Quantity, ...]] = (Quantity("severity", "of 5"), GRAIN)
    limits: ClassVar[tuple[float, float]] = (1, 5)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds([self.kind])
        if self.sizes not in get_args(Sizes):
            raise ConfigError(f"sizes is {self.sizes!r}: expected one of {', '.join(get_args(Sizes))}")

    @property
    def range(self) -> tuple[float, float]:
        """From the lowest to the highest severity."""
        low, high = self.severity if isinstance(self.severity, tuple) else (self.severity, self.severity)
        return float(low), float(high)

    def parameters(self, chance: np.ndarray) -> np.ndarray:
        """The severity, every whole number of the range equally often; and the grain."""
        drawn = super().parameters(chance)
        low, high = np.ceil(self.range[0]), np.floor(self.range[1])
        drawn[:, 0] = low + np.floor(chance[:, 0] * (high - low + 1))
        return drawn

    def alter(self, images: Tensor, parameters: Tensor) -> Tensor:
        """The corrupted images, those of one severity at once."""
        severities, keys = parameters[:, 0].cpu().numpy().astype(int), grain_keys(parameters[:, 1])
        small = self.sizes == "small" or (self.sizes == "auto" and min(images.shape[-2:]) < SMALL)
        made, found = torch.empty_like(images), np.unique(severities)
        for severity in found.tolist():
            rows = np.flatnonzero(severities == severity)
            some = images if len(found) == 1 else images[torch.from_numpy(rows).to(images.device)]
            changed = _FUNCTIONS[self.kind](some, keys[rows], *strength(self.kind, severity, small=small))
            if len(found) == 1:
                return changed
            made[torch.from_numpy(rows).to(images.device)] = changed
        return made


def check_kinds(kinds: Iterable[Any]) -> None:
    """Refuse what is no common corruption."""
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"{kind!r} is no common corruption: {nearest(kind, KINDS)}there are {', '.join(KINDS)}")


def check_severities(severities: Iterable[Any]) -> None:
    """Refuse what is no severity."""
    for severity in severities:
        if severity not in SEVERITIES:
            raise ConfigError(f"severity {severity!r} is not known: expected whole numbers from 1, mild, to 5")
