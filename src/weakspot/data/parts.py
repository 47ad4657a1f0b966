"""Parts of a user's sample or batch, and what they are as arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.data.arrays import ChannelsAt, channels_first, scaled
from weakspot.data.images import Mode, decoded
from weakspot.data.names import listed, readable, shown

Part = int | str


def taken(whole: Any, part: Part, option: str) -> Any:
    """A part of a sample or batch: by place in a tuple or list, by key of a mapping, by attribute.

    >>> taken({"image": 7}, "image", "inputs"), taken((7, 8), 1, "targets")
    (7, 8)
    """
    if isinstance(whole, Mapping):
        if part in whole:
            return whole[part]
        raise ConfigError(f"{option}={part!r}: a sample has the parts {listed([repr(key) for key in whole])}")
    if isinstance(part, str):
        if hasattr(whole, part):
            return getattr(whole, part)
        raise ConfigError(f"{option}={part!r}: a sample is a {type(whole).__name__} without such a part")
    if is_single(whole):
        raise ConfigError(f"{option}={part}: a sample is a single {type(whole).__name__}, so it has only inputs=0")
    if not -len(whole) <= part < len(whole):
        raise ConfigError(f"{option}={part}: a sample has {len(whole)} parts, counted from 0")
    return whole[part]


def is_single(whole: Any) -> bool:
    """Whether a sample is one thing, and so all input."""
    return not isinstance(whole, Mapping | tuple | list)


def input_array(value: Any, channels: ChannelsAt, mode: Mode, *, batched: bool = False) -> np.ndarray:
    """Inputs as float32 with channels first: Pillow's images scaled to [0, 1], bytes divided by 255."""
    if isinstance(value, Image.Image):
        return decoded(value, mode)
    return scaled(channels_first(number_array(value), channels, batched=batched))


def target_array(value: Any, classes: Sequence[str] | None) -> np.ndarray:
    """A target, or a batch of them, as numbers; names of classes become their numbers, masks their pixels."""
    if isinstance(value, Image.Image):
        return np.asarray(value)
    if isinstance(value, str):
        return np.asarray(_number_of(value, classes))
    if isinstance(value, list | tuple) and value and all(isinstance(name, str) for name in value):
        return np.array([_number_of(name, classes) for name in value])
    return number_array(value)


def _number_of(name: str, classes: Sequence[str] | None) -> int:
    if classes is None:
        raise ConfigError(f"the target {shown(name)!r} is a name: give the classes in the order of the model's outputs")
    if name not in classes:
        raise ValueError(f"class {shown(name)!r} is not known: expected one of {listed(classes)}")
    return classes.index(name)


def number_array(value: Any) -> np.ndarray:
    """Numbers, arrays and tensors as an array of numbers; anything else is a `ValueError`."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = value.float() if value.dtype == torch.bfloat16 else value  # numpy has no bfloat16
        return np.asarray(value.numpy())
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"expected numbers, got {type(value).__name__}" + ("" if value is None else f" {array.dtype}"))
    return array


def metadata_array(values: Any) -> np.ndarray:
    """A column of metadata: numbers as numbers, all else as text."""
    if isinstance(values, torch.Tensor | np.ndarray):
        return number_array(values) if not isinstance(values, np.ndarray) or values.dtype.kind in "biuf" else values
    plain = [value.item() if getattr(value, "shape", None) == () else value for value in values]
    if all(isinstance(value, bool | int | float) for value in plain):
        return np.asarray(plain)
    column = np.empty(len(plain), dtype=object)
    column[:] = [readable(str(value)) for value in plain]
    return column
