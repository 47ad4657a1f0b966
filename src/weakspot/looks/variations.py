"""Variations: how an image may differ and still mean the same. Batched, on the device, drawn without state.

A variation is a few lines: a range, the name and unit of what is drawn from it, and what that does to images.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from math import isfinite, lcm, prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weakspot.core.digest import canonical, class_code
from weakspot.core.errors import ConfigError, DataError
from weakspot.looks.warping import to_device, warp

Bounds = tuple[float, float]
"""The smallest and the largest value of an input: black and white."""
Range = float | tuple[float, float]
"""From where to where a quantity is drawn; one number n means as far as n from what changes nothing, on both sides."""
_WIDE = frozenset({torch.float32, torch.float64})


class Quantity(NamedTuple):
    """What one number of a variation's parameters means."""

    name: str
    unit: str


GRAIN = Quantity("grain", "of 1")
"""A number in [0, 1) whose digits decide everything that is drawn pixel by pixel or drop by drop."""


@dataclass(frozen=True)
class Variation(ABC):
    """A family of changes to an image. Its first field is the range that its quantities are drawn from.

    quantities: what each of its parameters means, in which unit.
    limits: between which values the range must lie.
    neutral: the value that changes nothing.
    needs_bounds: whether it must know what black and white are.
    """

    quantities: ClassVar[tuple[Quantity, ...]]
    limits: ClassVar[tuple[float, float]] = (-float("inf"), float("inf"))
    neutral: ClassVar[float] = 0.0
    needs_bounds: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field in fields(self)[:1]:
            value = getattr(self, field.name)
            object.__setattr__(self, field.name, tuple(value) if isinstance(value, list) else value)
            check_range(self, field.name)

    @property
    def range(self) -> tuple[float, float]:
        """From where to where its quantities are drawn."""
        value = getattr(self, fields(self)[0].name)
        if isinstance(value, tuple):
            return float(value[0]), float(value[1])
        least, most = self.limits
        low = least if self.neutral == least else self.neutral - value
        return float(low), float(most if self.neutral == most else self.neutral + value)

    @property
    def draws(self) -> int:
        """How many uniform numbers one change takes."""
        return len(self.quantities)

    @property
    def alternatives(self) -> int:
        """After so many looks the same variation has its turn again."""
        return 1

    def at(self, turn: int) -> "Variation":
        """The variation whose turn it is, counted from 0; itself where there is no choice."""
        return self

    def parameters(self, chance: np.ndarray) -> np.ndarray:
        """From numbers uniform in [0, 1) to parameters with a unit; both float64 of shape (samples, draws)."""
        low, high = self.range
        drawn = chance * (high - low) + low
        for column, quantity in enumerate(self.quantities):
            if quantity is GRAIN:
                drawn[:, column] = chance[:, column]
        return drawn

    def apply(self, images: Tensor, parameters: Tensor, bounds: Bounds | None = None) -> Tensor:
        """The changed images, shape (samples, channels, height, width) and type as before.

        parameters: shape (samples, draws).
        bounds: what is black and what is white; results keep to them.
        """
        if images.ndim != 4:
            raise DataError(
                "variations need images of shape (samples, channels, height, width), got "
                f"{tuple(images.shape)}: volumes and tables cannot be varied like this"
            )
        self.check_bounds(bounds)
        if not images.numel():
            return images.clone()
        changed = self.change(images if images.dtype in _WIDE else images.float(), parameters, bounds)
        whole = not images.dtype.is_floating_point
        return (changed.round_() if whole else changed).to(images.dtype)

    def check_bounds(self, bounds: Bounds | None) -> None:
        """Refuse missing bounds where they are needed."""
        if bounds is None and self.needs_bounds:
            raise ConfigError(
                f"{_name(self)} must know the smallest and largest value of an input: give the subject bounds, such as "
                "[0, 1], [0, 255] or whatever black and white are (in the file `subject: {bounds: [0, 1]}`)"
            )

    @abstractmethod
    def change(self, images: Tensor, parameters: Tensor, bounds: Bounds | None) -> Tensor:
        """The changed images; `images` are float32 or float64 and must not be written to."""

    def __and__(self, other: "Variation") -> "Combined":
        """Both, one after the other."""
        return Combined((*_parts(self, Combined), *_parts(other, Combined)))

    def __or__(self, other: "Variation") -> "OneOf":
        """One or the other in turn: of an even number of looks exactly half."""
        return OneOf((*_parts(self, OneOf), *_parts(other, OneOf)))

    def __canonical__(self) -> dict[str, Any]:
        """As a Finding records it; with the code, so that a variation whose code changed is not taken for it."""
        options = {field.name: canonical(getattr(self, field.name)) for field in fields(self)}
        return {"is": canonical(type(self)), "code": class_code(type(self)), **options}


@dataclass(frozen=True)
class Geometric(Variation):
    """A change of place: an affine map of the plane about the image's centre, in pixels, y downwards."""

    @abstractmethod
    def inverse(self, parameters: Tensor) -> Tensor:
        """From a place in the changed image to the place it came from, float64, shape (samples, 3, 3)."""

    def change(self, images: Tensor, parameters: Tensor, bounds: Bounds | None) -> Tensor:
        """The warped images; what comes from outside is black."""
        return warp(images, self.inverse(beside(parameters, images)), fill=bounds[0] if bounds else 0.0)


@dataclass(frozen=True)
class Photometric(Variation):
    """A change of values, written for images from 0, black, to 1, white.

    clipped: whether what `alter` gives lies between 0 and 1 in any case.
    """

    needs_bounds: ClassVar[bool] = True
    clipped: ClassVar[bool] = False

    @property
    def displaces(self) -> bool:
        """Whether it moves things all the same."""
        return False

    @abstractmethod
    def alter(self, images: Tensor, parameters: Tensor) -> Tensor:
        """The changed images, a new tensor; both have values from 0 to 1, and what lies beyond is clipped."""

    def change(self, images: Tensor, parameters: Tensor, bounds: Bounds | None) -> Tensor:
        """Scale to 0 … 1, change, scale back and clip."""
        low, high = bounds or (0.0, 1.0)
        if (low, high) == (0.0, 1.0):
            altered = self.alter(images, parameters)
            return altered if self.clipped else altered.clamp_(0, 1)
        altered = self.alter((images - low).div_(high - low), parameters)
        return altered.mul_(high - low).add_(low).clamp_(low, high)


@dataclass(frozen=True)
class _Several(Variation):
    parts: tuple[Variation, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or not all(isinstance(part, Variation) for part in self.parts):
            raise ConfigError(f"{_name(self)} joins two variations or more, got {self.parts!r}")

    @property
    def needs_bounds(self) -> bool:  # type: ignore[override]  # of all parts together
        """Whether any part must know what black and white are."""
        return any(part.needs_bounds for part in self.parts)


@dataclass(frozen=True)
class Combined(_Several):
    """Several variations in order; neighbouring geometric ones become one map, so the image is interpolated once."""

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]  # of all parts together
        """The quantities of all parts side by side."""
        return tuple(quantity for part in self.parts for quantity in part.quantities)

    @property
    def alternatives(self) -> int:
        """Every choice of one part with every choice of the others."""
        return prod(part.alternatives for part in self.parts)

    def at(self, turn: int) -> Variation:
        """All parts, each with its choice: a turn is a number with one digit per part."""
        if self.alternatives == 1:
            return self
        chosen = []
        for part in self.parts:
            turn, digit = divmod(turn, part.alternatives)
            chosen.append(part.at(digit))
        return Combined(tuple(chosen))

    def parameters(self, chance: np.ndarray) -> np.ndarray:
        """The parameters of all parts side by side."""
        return np.concatenate([part.parameters(chance[:, columns]) for part, columns in self._columns], 1)

    def change(self, images: Tensor, parameters: Tensor, bounds: Bounds | None) -> Tensor:
        """All changes in order."""
        pending: Tensor | None = None
        numbers, fill = beside(parameters, images), bounds[0] if bounds else 0.0
        for part, columns in self._columns:
            if isinstance(part, Geometric):
                inverse = part.inverse(numbers[:, columns])
                pending = inverse if pending is None else pending @ inverse
                continue
            images = images if pending is None else warp(images, pending, fill=fill)
            images, pending = part.change(images, parameters[:, columns], bounds), None
        return images if pending is None else warp(images, pending, fill=fill)

    @cached_property
    def _columns(self) -> list[tuple[Variation, slice]]:
        ends = list(accumulate(part.draws for part in self.parts))
        return [(part, slice(end - part.draws, end)) for part, end in zip(self.parts, ends, strict=True)]


@dataclass(frozen=True)
class OneOf(_Several):
    """Several variations in turn, look by look: of 50 looks at rain or fog exactly 25 are rain."""

    @property
    def alternatives(self) -> int:
        """Until every part has had each of its own choices equally often."""
        return len(self.parts) * lcm(*(part.alternatives for part in self.parts))

    def at(self, turn: int) -> Variation:
        """The part whose turn it is."""
        turn_of_part, index = divmod(turn, len(self.parts))
        return self.parts[index].at(turn_of_part)

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]  # another one's in every turn
        """Not known before a turn is chosen."""
        raise ConfigError("which of several variations is meant depends on the look: choose with .at(turn) first")

    def change(self, images: Tensor, parameters: Tensor, bounds: Bounds | None) -> Tensor:
        """Not known before a turn is chosen."""
        raise ConfigError("which of several variations is meant depends on the look: choose with .at(turn) first")


def check_range(variation: Variation, name: str) -> None:
    """Refuse what is no range, or one beyond the variation's limits."""
    value, what = getattr(variation, name), f"{name} of {_name(variation)}"
    numbers = value if isinstance(value, tuple) else (value,)
    plain = all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers)
    if not plain or len(numbers) not in (1, 2) or not all(map(isfinite, numbers)) or numbers[0] > numbers[-1]:
        raise ConfigError(f"{what} is {value!r}: expected one number, or [low, high] with the lower one first")
    if not isinstance(value, tuple) and value < 0:
        raise ConfigError(f"{what} is {value!r}: one number says how far to go at most, so it cannot be negative")
    low, high = variation.range
    least, most = variation.limits
    if not least <= low <= high <= most:
        raise ConfigError(f"{what} is {value!r}, that is from {low:g} to {high:g}: expected {least:g} to {most:g}")


def moves(variation: Variation) -> bool:
    """Whether things may be elsewhere in the changed image; of a variation of your own only `Photometric` denies it.

    >>> from weakspot.looks import Blur, Fog, Rotate
    >>> moves(Blur() | Fog()), moves(Blur() & Rotate(5))
    (False, True)
    """
    if isinstance(variation, _Several):
        return any(map(moves, variation.parts))
    return not isinstance(variation, Photometric) or variation.displaces


def beside(parameters: Tensor, images: Tensor) -> Tensor:
    """Parameters where maps are quickest made of them: on the images' GPU, or else on the CPU; float64."""
    on_gpu = images.device.type == "cuda"
    return to_device(parameters, images.device).double() if on_gpu else parameters.double().cpu()


def per_image(numbers: Tensor, images: Tensor) -> Tensor:
    """One number per sample, ready to broadcast against images; shape (samples, 1, 1, 1)."""
    return to_device(numbers.to(images.dtype), images.device).reshape(-1, 1, 1, 1)


def recalled(record: Any) -> Variation:
    """The variation that a Finding's record describes; one of your own must have been imported before.

    >>> from weakspot.looks import Rotate
    >>> recalled(Rotate(10).__canonical__())
    Rotate(degrees=10)
    """
    kinds: dict[str, Any] = {canonical(kind): kind for kind in _all_kinds(Variation)}
    if not isinstance(record, dict) or record.get("is") not in kinds:
        raise ConfigError(f"{record!r} describes no known variation: import the module that defines it first")
    kind = kinds[record["is"]]
    options = {key: value for key, value in record.items() if key not in ("is", "code")}
    if issubclass(kind, _Several):
        options = {"parts": tuple(map(recalled, options["parts"]))}
    return kind(**options)  # type: ignore[no-any-return]


def _all_kinds(kind: type[Any]) -> list[type[Any]]:
    below: list[type[Any]] = kind.__subclasses__()
    return [kind, *(each for sub in below for each in _all_kinds(sub))]


def _parts(variation: Variation, kind: type[_Several]) -> Sequence[Variation]:
    if not isinstance(variation, Variation):
        raise ConfigError(f"expected a variation such as Rotate(30), got {variation!r}")
    return variation.parts if isinstance(variation, kind) else (variation,)


def _name(variation: Variation) -> str:
    return type(variation).__name__
