"""Models that take batches of one size only: cut the inputs, fill the last batch up, and put the outputs together."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def in_batches_of(size: int, call: Callable[[Tensor], Any], inputs: Tensor) -> Any:
    """Outputs of `call` for any number of inputs, where it takes `size` at a time; filled up with the last sample."""
    return _joined([call(_filled(part, size)) for part in inputs.split(size)], len(inputs))


def _filled(part: Tensor, size: int) -> Tensor:
    lacking = size - len(part)
    return part if not lacking else torch.cat([part, part[-1:].expand(lacking, *part.shape[1:])])


def _joined(outputs: Sequence[Any], count: int) -> Any:
    first = outputs[0]
    if isinstance(first, Tensor):
        return torch.cat(list(outputs))[:count] if first.ndim else first
    if isinstance(first, Mapping):
        return {name: _joined([output[name] for output in outputs], count) for name in first}
    if isinstance(first, tuple | list):
        return [_joined(parts, count) for parts in zip(*outputs, strict=True)]
    return first
