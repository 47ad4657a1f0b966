"""How an operation is treated: `Pass`, `Share`, `Route`, and the layers, sums, products and norms of networks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from weakspot.relevance.carriers import Adds, Passes, Routes, Shares, Shifts
from weakspot.relevance.origins import Origin, Stage, merge
from weakspot.relevance.tracer import Call, Tracer

Sign = Literal["nonnegative", "kept", "any"]


@dataclass(frozen=True)
class Pass:
    """Element by element: each input gets the relevance of its output, as for activations.

    sign: whether outputs are never negative, or only where the inputs are.
    gate: marks functions whose outputs weigh other values (softmax, sigmoid).
    """

    sign: Sign = "any"
    gate: bool = False

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        x = call.operands[0]
        if len(call.operands) > 1:
            raise tracer.no_rule(call.function, " for several operands")
        logits = x if self.gate else None
        origins = tracer.consume(call.operands)
        output = Passes.carry(x, call.compute)
        if output.shape != x.shape:
            raise tracer.no_rule(call.function, f" for an output of shape {tuple(output.shape)} from {tuple(x.shape)}")
        nonnegative = self.sign == "nonnegative" or (self.sign == "kept" and origins[0].nonnegative)
        gate = self.gate or (self.sign == "kept" and origins[0].gate)
        return tracer.follow(output, Origin(gate, nonnegative, origins[0].raw, logits))


@dataclass(frozen=True)
class Share:
    """A weighted sum: each input gets relevance in proportion to what it contributes.

    degree: f(t x) = t^degree f(x).
    sign: ``"kept"`` where outputs of non-negative inputs are never negative.
    """

    degree: float = 1.0
    sign: Sign = "any"

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        return shared(tracer, call, degree=self.degree, sign=self.sign)


@dataclass(frozen=True)
class Route:
    """Values are moved, copied or selected, not changed: relevance goes back the same way."""

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        output = None
        if all(tracer.follows(t) or not t.is_floating_point() for t in _values(call)):
            output = call.compute(*call.operands)
            if any(output is operand for operand in call.operands):
                return output  # nothing was moved
        origins = tracer.consume(call.operands)
        if output is None:
            output = Routes.carry(call.compute, tracer.terms(call.name), *call.operands)
            return tracer.follow(output, replace(merge(origins), nonnegative=False, gate=False))
        return tracer.follow(output, merge(origins))


@dataclass(frozen=True)
class Copy:
    """The same values in the same shape: everything known of them stays known."""

    function: Callable[[Tensor], Tensor] | None = None

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        x = call.operands[0]
        output = call.compute(x) if self.function is None else self.function(x)
        return output if output is x else tracer.follow(output, tracer.origin(x))


@dataclass(frozen=True)
class Permute:
    """Axes in another order: what follows a layer may still be part of it."""

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        x = call.operands[0]
        # the size of each axis is its number
        labelled = call.compute(torch.empty(tuple(range(x.dim())), device="meta"))
        return tracer.follow(call.compute(x), tracer.origin(x).permuted(labelled.shape))


@dataclass(frozen=True)
class Fill:
    """Values are moved, with numbers put in between that keep what falls on them."""

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        origins = tracer.consume(call.operands)
        output = Routes.carry(call.compute, tracer.terms(call.name), *call.operands)
        return tracer.follow(output, replace(merge(origins), gate=False, nonnegative=False))


@dataclass(frozen=True)
class Constant:
    """The result does not depend on the values of the data."""

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        with torch.no_grad():
            return call.compute(*(operand.detach() for operand in call.operands))


@dataclass(frozen=True)
class InPlace:
    """An operation that overwrites its first argument, done by its out-of-place counterpart."""

    function: Callable[..., Any]
    handler: Callable[[Tracer, Call], Any]

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        target = call.args[0]
        output = self.handler(tracer, replace(call, function=self.function))
        origin = tracer.origin(output)
        tracer.before_overwriting(target)
        return tracer.follow(target.copy_(output), replace(origin, logits=None))


@dataclass(frozen=True)
class WritesInto:
    """Parts of the first argument are overwritten with other values."""

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        tracer.consume(call.operands)
        target = call.args[0]
        tracer.before_overwriting(target)
        output = call.function(*call.args, **call.kwargs)
        tracer.follow(target, Origin())
        return output


class MaybeInPlace:
    """An activation with an `inplace` option."""

    def __init__(self, function: Callable[..., Any], handler: Callable[[Tracer, Call], Any]) -> None:
        self.position = list(inspect.signature(function).parameters).index("inplace")
        self.handler = handler

    def __call__(self, tracer: Tracer, call: Call) -> Any:
        args, kwargs = call.args, dict(call.kwargs)
        inplace = kwargs.pop("inplace", False)
        if len(args) > self.position:
            inplace, args = args[self.position], (*args[: self.position], False)
        call = replace(call, args=args, kwargs=kwargs)
        handler = InPlace(call.function, self.handler) if inplace else self.handler
        return handler(tracer, call)


def shared(
    tracer: Tracer,
    call: Call,
    *,
    degree: float = 1.0,
    sign: Sign = "any",
    offset: Tensor | None = None,
    compute: Callable[..., Tensor] | None = None,
) -> Tensor:
    """Relevance in proportion to contributions, for a function homogeneous in its operands up to an offset."""
    origins = tracer.consume(call.operands)
    cells = [tracer.cell(operand) for operand in call.operands]
    compute = compute or call.detached().compute
    output: Tensor = Shares.carry(compute, cells, degree, offset, tracer.terms(call.name), *call.operands)
    nonnegative = sign == "kept" and all(o.nonnegative for o in origins)
    return tracer.follow(output, Origin(nonnegative=nonnegative, raw=all(o.raw for o in origins)))


def added(tracer: Tracer, call: Call, a: Any, b: Any, *, alpha: float = 1.0) -> Tensor:
    """a + α b: split in proportion; a constant summand is a bias."""
    if not tracer.follows(b):
        return shifted(tracer, call, a, None, alpha * constant(b, a))
    if not tracer.follows(a):
        return shifted(tracer, call, b, None if alpha == 1 else constant(alpha, b), constant(a, b))
    origins = tracer.consume((a, b))
    cells, magnitude = [tracer.cell(a), tracer.cell(b)], tracer.composite.splits_by_magnitude
    output: Tensor = Adds.carry(a, b, alpha, magnitude, cells, tracer.terms(call.name))
    origin = merge(origins)
    return tracer.follow(output, Origin(nonnegative=origin.nonnegative and alpha > 0, raw=origin.raw))


def shifted(tracer: Tracer, call: Call, x: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    """scale ⊙ x + shift with constants: part of the layer before, if each is one number per channel of it."""
    origin = tracer.origin(x)
    terms = tracer.terms(call.name)
    if (stage := _stage(x, origin, scale, shift)) and (use := origin.use):
        output: Tensor = Shifts.carry(x, call.compute, stage, use, terms)
        stage.output = tracer.cell(origin.in_layer_order(output))
        use.stages.append(stage)
        return tracer.follow(output, replace(origin, nonnegative=False, stages=len(use.stages)))
    constants = [c.shape for c in (scale, shift) if c is not None]
    if torch.broadcast_shapes(x.shape, *constants) != x.shape:
        return shared(tracer, call, offset=shift)
    tracer.consume((x,))
    if origin.raw or shift is None:
        # before any layer, as in (image − mean) / std, nothing is mixed that could absorb relevance
        output = Passes.carry(x, call.compute)
        return tracer.follow(output, Origin(gate=origin.gate and shift is None, raw=origin.raw))
    stage = Stage(x.new_empty(0), x.new_empty(0), shift)
    output = Shifts.carry(x, call.compute, stage, None, terms)
    stage.output = tracer.cell(output)
    return tracer.follow(output, Origin())


def scaled(tracer: Tracer, call: Call, x: Tensor, factor: Any) -> Tensor:
    """A constant times x."""
    return shifted(tracer, call, x, constant(factor, x), None)


def constant(value: Any, like: Tensor) -> Tensor:
    """A number or a tensor that carries no relevance, as a tensor that combines with another."""
    if isinstance(value, Tensor):
        return value.detach().to(like.device)
    return like.new_full((), value)


def multiplied(tracer: Tracer, call: Call, a: Any, b: Any) -> Tensor:
    """a b: a constant only scales, a gate only weighs; two equals get half each [arras2019, ali2022]."""
    if not tracer.follows(b):
        return scaled(tracer, call, a, b)
    if not tracer.follows(a):
        return scaled(tracer, call, b, a)
    return product(tracer, call, sign="kept")


def product(tracer: Tracer, call: Call, *, sign: Sign = "any") -> Tensor:
    """A function linear in each of its operands; gates among other operands only weigh."""
    gates = [o for o in call.operands if tracer.origin(o).gate]
    if 0 < len(gates) < len(call.operands):
        tracer.consume(gates)
        return shared(tracer, call.holding(*gates), sign="any")
    # x·x is one operand used twice
    return shared(tracer, call, degree=max(2, len(call.operands)), sign=sign)


def divided(tracer: Tracer, call: Call, a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    """a / b: the denominator only scales [ali2022]; 1 / b is treated like an activation."""
    if rounding_mode is not None:
        raise tracer.no_rule(call.function, " with rounding")
    if not tracer.follows(a):
        return shared(tracer, call, degree=-1)
    if not tracer.follows(b):
        return scaled(tracer, call, a, 1 / constant(b, a))
    if a is b:
        return torch.ones_like(a.detach())
    tracer.consume((b,))
    return shared(tracer, call.holding(b))


def _stage(x: Tensor, origin: Origin, scale: Tensor | None, shift: Tensor | None) -> Stage | None:
    """scale and shift as numbers per output channel of the layer that made x, if they are that and it is still open."""
    use = origin.use
    if use is None or use.closed or len(use.stages) != origin.stages:
        return None
    shape = [1] * x.dim()
    channel_axis = use.channel_axis % x.dim()
    shape[channel_axis if origin.axes is None else origin.axes.index(channel_axis)] = use.channels
    scale = x.new_ones(()) if scale is None else scale
    aligned = x.new_zeros(()) if shift is None else shift
    vectors = [_per_channel(values, shape) for values in (scale, aligned)]
    return None if vectors[0] is None or vectors[1] is None else Stage(vectors[0], vectors[1], aligned)


def _per_channel(values: Tensor, shape: list[int]) -> Tensor | None:
    if values.numel() == 1:
        return values.reshape(1).expand(max(shape))
    matches = [1] * (len(shape) - values.dim()) + list(values.shape) == shape
    return values.reshape(-1) if matches else None


def _values(call: Call) -> list[Tensor]:
    """Tensors among the arguments, also in lists."""
    tensors: list[Tensor] = []
    for value in (*call.args, *call.kwargs.values()):
        tensors += [value] if isinstance(value, Tensor) else []
        tensors += [v for v in value if isinstance(v, Tensor)] if isinstance(value, list | tuple) else []
    return tensors
