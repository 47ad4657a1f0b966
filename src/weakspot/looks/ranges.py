"""Variations as a configuration writes them: names with ranges."""

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import reduce
from operator import and_, or_
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.looks.corruptions import Corruption
from weakspot.looks.functions import ByFunction
from weakspot.looks.geometry import Rotate, Scale, Shear, Shift
from weakspot.looks.jpeg import Jpeg
from weakspot.looks.values import Blur, Brightness, Contrast, Noise
from weakspot.looks.variations import Variation
from weakspot.looks.weather import Fog, Rain

VARIATIONS: dict[str, type[Variation]] = {
    "rotate": Rotate,
    "shift": Shift,
    "shear": Shear,
    "scale": Scale,
    "blur": Blur,
    "brightness": Brightness,
    "contrast": Contrast,
    "noise": Noise,
    "jpeg": Jpeg,
    "rain": Rain,
    "fog": Fog,
    "corruption": Corruption,
}
_EXAMPLE = "such as {rotate: 30, shift: 3}, {brightness: [-0.1, 0.3]} or {either: [{rain: 1}, {fog: [0.3, 1]}]}"


def variation(ranges: Mapping[str, Any]) -> Variation:
    """The combination of variations that a mapping from name to range means, in the order it is written.

    A range is one number, [low, high], or nothing for the usual one; `either` lists mappings that take turns;
    `function` names one of your own, as module:name.

    >>> variation({"rotate": 30, "shift": [0, 3]})
    Combined(parts=(Rotate(degrees=30), Shift(pixels=(0, 3))))
    >>> variation({"either": [{"rain": None}, {"fog": [0.3, 1]}]})
    OneOf(parts=(Rain(amount=(1, 1)), Fog(thickness=(0.3, 1))))
    """
    if not isinstance(ranges, Mapping) or not ranges:
        raise ConfigError(f"neighbours is {ranges!r}: expected names and ranges, {_EXAMPLE}")
    return reduce(and_, [_named(name, extent) for name, extent in ranges.items()])


def _named(name: str, extent: Any) -> Variation:
    if name == "either":
        return _either(extent)
    if name == "function":
        return _with_options(name, ByFunction, extent if isinstance(extent, Mapping) else {"call": extent})
    if name not in VARIATIONS:
        near = get_close_matches(str(name), [*VARIATIONS, "function", "either"], n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(
            f"neighbours are not made by {name!r}: {hint}There are {', '.join(VARIATIONS)}, function, either"
        )
    kind: Any = VARIATIONS[name]
    if isinstance(extent, Mapping):
        return _with_options(name, kind, extent)
    return kind() if extent is None else kind(extent)  # type: ignore[no-any-return]


def _with_options(name: str, kind: Any, options: Mapping[str, Any]) -> Variation:
    try:
        return kind(**options)  # type: ignore[no-any-return]
    except TypeError as error:
        options_of_kind = ", ".join(field.name for field in fields(kind))
        raise ConfigError(f"{name} is {dict(options)!r}: its options are {options_of_kind}") from error


def _either(choices: Any) -> Variation:
    if not isinstance(choices, list | tuple) or len(choices) < 2:
        raise ConfigError(f"either is {choices!r}: expected a list of two or more, {_EXAMPLE}")
    return reduce(or_, map(variation, choices))
