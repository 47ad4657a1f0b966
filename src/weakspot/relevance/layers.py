"""Layers with weights: the operations that follow a rule of the composite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from weakspot.relevance.affine import Affine, Convolution, Dense
from weakspot.relevance.carriers import Follows
from weakspot.relevance.composites import Kind
from weakspot.relevance.handlers import product, shared
from weakspot.relevance.origins import Cell, LayerUse, Origin
from weakspot.relevance.tracer import Call, Tracer

Sizes = int | Sequence[int]


def linear(tracer: Tracer, call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b."""
    if tracer.follows(weight) or tracer.follows(bias):
        return _dynamic(tracer, call, x, weight, bias)
    return _follow(tracer, call, x, Dense, weight, bias, kind="dense", axis=-1)


def matmul(tracer: Tracer, call: Call, a: Tensor, b: Tensor) -> Tensor:
    """x W with a constant matrix W is a dense layer; other products share."""
    if not tracer.follows(b) and b.dim() == 2:
        return _follow(tracer, call, a, Dense, b.mT, None, kind="dense", axis=-1)
    return product(tracer, call) if len(call.operands) > 1 or a is b else shared(tracer, call)


def addmm(
    tracer: Tracer, call: Call, bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """β c + α a b, taken apart."""
    with tracer:
        return beta * bias + alpha * torch.matmul(a, b)


def convolution(
    tracer: Tracer, call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None,
    stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution in 1, 2 or 3 dimensions."""
    dimensions = weight.dim() - 2
    pads = _same_padding(weight, dilation) if padding == "same" else None
    if x.dim() == dimensions + 1 or (pads and any(left != right for left, right in pads)):
        return _adapted(tracer, call.function, x, weight, bias, stride, pads or padding, dilation, groups)
    if pads:
        padding = [left for left, _ in pads]
    options = {
        "stride": _sizes(stride, dimensions), "padding": _sizes(0 if padding == "valid" else padding, dimensions),
        "dilation": _sizes(dilation, dimensions), "groups": groups,
        "transposed": False, "output_padding": [0] * dimensions,
    }  # fmt: skip
    return _convolved(tracer, call, x, weight, bias, options)


def convolution_transposed(
    tracer: Tracer, call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None,
    stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1,
) -> Tensor:  # fmt: skip
    """Transposed convolution in 1, 2 or 3 dimensions."""
    dimensions = weight.dim() - 2
    if x.dim() == dimensions + 1:
        with tracer:
            batch = call.function(x.unsqueeze(0), weight, bias, stride, padding, output_padding, groups, dilation)
            return batch.squeeze(0)  # type: ignore[no-any-return]
    options = {
        "stride": _sizes(stride, dimensions), "padding": _sizes(padding, dimensions),
        "dilation": _sizes(dilation, dimensions), "groups": groups,
        "transposed": True, "output_padding": _sizes(output_padding, dimensions),
    }  # fmt: skip
    return _convolved(tracer, call, x, weight, bias, options)


def attention(
    tracer: Tracer, call: Call, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
) -> Tensor:
    """softmax(q kᵀ) v: the attention weights are a gate, the values get all [ali2022]."""
    if not tracer.follows(value):
        raise tracer.no_rule(call.function, " for constant values")
    tracer.consume(call.operands)
    weights = [operand for operand in call.operands if operand is not value]
    function = call.function
    q, k = query.detach(), key.detach()
    return shared(tracer, call.holding(*weights), compute=lambda v: function(q, k, v, *args, **kwargs))


def _dynamic(tracer: Tracer, call: Call, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A layer whose weight is computed from the data."""
    if bias is not None:
        raise tracer.no_rule(call.function, " for weights computed from the data together with a bias")
    return product(tracer, call) if len(call.operands) > 1 else shared(tracer, call)


def _convolved(
    tracer: Tracer, call: Call, x: Tensor, weight: Tensor, bias: Tensor | None, options: dict[str, Any]
) -> Tensor:
    if tracer.follows(weight) or tracer.follows(bias):
        return _dynamic(tracer, call, x, weight, bias)
    return _follow(tracer, call, x, partial(Convolution, **options), weight, bias, kind="convolution", axis=1)


def _follow(
    tracer: Tracer, call: Call, x: Tensor, make: Callable[..., Affine], weight: Tensor, bias: Tensor | None,
    *, kind: Kind, axis: int,
) -> Tensor:  # fmt: skip
    (origin,) = tracer.consume((x,))
    rule = tracer.rule(kind, first=origin.raw)
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    x_cell, outputs = tracer.cell(x), list[Cell]()

    def layer() -> Affine:
        # under autocast they differ
        x, z = (cell.read().to(weight.dtype) for cell in (x_cell, outputs[0]))
        return make(x=x, weight=weight, bias=bias, z=z, nonnegative=origin.nonnegative)

    terms = tracer.terms(call.name, type(rule).__name__)
    use = LayerUse(layer, 0, axis)
    output: Tensor = Follows.carry(x, call.compute, use, rule, terms)
    outputs.append(tracer.cell(output))
    use.channels = output.shape[axis]
    return tracer.follow(output, Origin(use=use))


def _adapted(
    tracer: Tracer, function: Callable[..., Tensor], x: Tensor, weight: Tensor, bias: Tensor | None,
    stride: Sizes, padding: Any, dilation: Sizes, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution over one sample, or with uneven padding, by one over a batch with padding done before."""
    single = x.dim() == weight.dim() - 1
    with tracer:
        x = x.unsqueeze(0) if single else x
        if isinstance(padding, list) and padding and isinstance(padding[0], tuple):
            x = functional.pad(x, [amount for pair in reversed(padding) for amount in pair])
            padding = 0
        output = function(x, weight, bias, stride, padding, dilation, groups)
        return output.squeeze(0) if single else output


def _same_padding(weight: Tensor, dilation: Sizes) -> list[tuple[int, int]]:
    """Padding to the left and right that keeps the size."""
    totals = [d * (k - 1) for d, k in zip(_sizes(dilation, weight.dim() - 2), weight.shape[2:], strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def _sizes(value: Any, dimensions: int) -> list[int]:
    sizes = [value] if isinstance(value, int) else list(value)
    return sizes * dimensions if len(sizes) == 1 else sizes
