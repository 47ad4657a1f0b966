"""Normalisation: batch norm is a scale and a shift, the others are linear with the deviation held constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from weakspot.relevance.handlers import shared, shifted
from weakspot.relevance.tracer import Call, Tracer


def batch_normalised(
    tracer: Tracer, call: Call, x: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Batch norm is scale ⊙ x + shift; statistics of the batch count as constants."""
    mean, variance = running_mean, running_var
    if training or mean is None or variance is None:
        axes = [axis for axis in range(x.dim()) if axis != 1]
        mean, variance = x.detach().mean(axes), x.detach().var(axes, unbiased=False)
    scale = (variance + eps).rsqrt() if weight is None else (variance + eps).rsqrt() * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    shape = (1, -1, *[1] * (x.dim() - 2))
    return shifted(tracer, call, x, scale.detach().view(shape), shift.detach().view(shape))


def layer_normalised(
    tracer: Tracer, call: Call, x: Tensor, normalized_shape: Sequence[int],
    weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x − mean) / σ · w + b: linear in x, with σ held constant [ali2022]."""
    axes = list(range(-len(normalized_shape), 0))
    deviation = (x.detach().var(axes, unbiased=False, keepdim=True) + eps).sqrt()
    return _centred(tracer, call, lambda leaf: (leaf - leaf.mean(axes, keepdim=True)) / deviation, weight, bias)


def group_normalised(
    tracer: Tracer, call: Call, x: Tensor, num_groups: int,
    weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """As layer norm, over groups of channels."""

    def grouped(values: Tensor) -> Tensor:
        return values.reshape(len(values), num_groups, -1)

    def normalised(leaf: Tensor) -> Tensor:
        centred: Tensor = (grouped(leaf) - grouped(leaf).mean(2, keepdim=True)) / deviation
        return centred.view_as(leaf)

    deviation = (grouped(x.detach()).var(2, unbiased=False, keepdim=True) + eps).sqrt()
    shape = (-1, *[1] * (x.dim() - 2))
    weight, bias = (None if values is None else values.view(shape) for values in (weight, bias))
    return _centred(tracer, call, normalised, weight, bias)


def instance_normalised(
    tracer: Tracer, call: Call, x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Group norm with one channel per group, or batch norm where running statistics are used."""
    if use_input_stats:
        return group_normalised(tracer, call, x, x.shape[1], weight, bias, eps)
    return batch_normalised(tracer, call, x, running_mean, running_var, weight, bias, False, momentum, eps)


def _centred(
    tracer: Tracer, call: Call, normalised: Callable[[Tensor], Tensor], weight: Tensor | None, bias: Tensor | None
) -> Tensor:
    """w · normalised(x) + b, where b is an offset that may absorb relevance."""
    scale, offset = (None if values is None else values.detach() for values in (weight, bias))

    def compute(leaf: Tensor) -> Tensor:
        z = normalised(leaf) if scale is None else normalised(leaf) * scale
        return z if offset is None else z + offset

    return shared(tracer, call, offset=offset, compute=compute)
