"""Autograd functions whose backward pass carries relevance where autograd expects a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from weakspot.relevance.composites import Bias
from weakspot.relevance.ledger import Label, Ledger
from weakspot.relevance.origins import Cell, LayerUse, Stage
from weakspot.relevance.rules import Remainder, Rule, proportion


@dataclass(frozen=True)
class Terms:
    """How an operation treats what it can't hand on, and where that is noted."""

    label: Label
    ledger: Ledger
    stabiliser: float
    bias: Bias

    @property
    def redistribute(self) -> bool:
        """Whether nothing may be kept."""
        return self.bias != "absorbed"

    @property
    def evenly(self) -> bool:
        """Whether what would be kept goes to all inputs in equal parts."""
        return self.bias == "evenly"


class Carrier(torch.autograd.Function):
    """Base by which our nodes in the graph are recognised."""

    @classmethod
    def carry(cls, *args: Any) -> Any:
        """Apply the function."""
        return cls.apply(*args)  # type: ignore[no-untyped-call]


class Passes(Carrier):
    """Element-wise: R_x = R."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        """Compute the values; nothing is kept, and nothing shared with x, which may be overwritten."""
        output = compute(x)
        shares = output.untyped_storage()._cdata == x.untyped_storage()._cdata
        return output.clone() if shares else output

    @staticmethod
    def backward(ctx: FunctionCtx, relevance: Tensor) -> tuple[Tensor, None]:
        """Hand the relevance on."""
        return relevance, None


class Follows(Carrier):
    """A layer z = W x + b: R_x by its rule."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, compute: Callable[[Tensor], Tensor], use: LayerUse, rule: Rule, terms: Terms
    ) -> Tensor:
        """Compute z."""
        ctx.use, ctx.rule, ctx.terms = use, rule, terms
        return compute(x)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Apply the rule to the layer, merged with what follows it directly."""
        terms: Terms = ctx.terms
        layer = ctx.use.merged()
        reached, remainders = ctx.rule.flow(layer, relevance.to(layer.weight.dtype))
        if terms.redistribute:
            for remainder in remainders:
                kept = remainder.each()
                reached = reached + (layer.spread(kept) if terms.evenly else layer.apportion(kept))
            remainders = ()
        terms.ledger.write(terms.label, relevance, remainders)
        return reached, None, None, None, None


class Adds(Carrier):
    """z = a + α b: R_a = a R / (z + ε sign z), R_b = α b R / (z + ε sign z); or with magnitudes throughout."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, alpha: float, magnitude: bool, cells: Sequence[Cell], terms: Terms
    ) -> Tensor:
        """Compute z."""
        ctx.alpha, ctx.magnitude, ctx.cells, ctx.terms, ctx.shapes = alpha, magnitude, cells, terms, (a.shape, b.shape)
        return torch.add(a, b, alpha=alpha)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Split in proportion to the summands."""
        terms: Terms = ctx.terms
        a, b = (cell.read() for cell in ctx.cells)
        b = b if ctx.alpha == 1 else b * ctx.alpha
        a, b = (a.abs(), b.abs()) if ctx.magnitude else (a, b)
        z = a + b
        s = proportion(relevance, z, terms.stabiliser)
        remainder = Remainder(s, terms.stabiliser, z)
        first, second = a * s, b * s
        if terms.redistribute:
            half = remainder.each() / 2
            first, second = first + half, second + half
        terms.ledger.write(terms.label, relevance, () if terms.redistribute else [remainder])
        return first.sum_to_size(ctx.shapes[0]), second.sum_to_size(ctx.shapes[1]), None, None, None, None


class Shifts(Carrier):
    """y = scale ⊙ x + shift, v = scale ⊙ x: R_x = R |v| / (|v| + |shift|) [hui2019].

    Where the layer before takes the shift over as its bias, or nothing may be absorbed, R_x = R.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, compute: Callable[[Tensor], Tensor], stage: Stage, use: LayerUse | None, terms: Terms
    ) -> Tensor:
        """Compute y."""
        ctx.stage, ctx.use, ctx.terms = stage, use, terms
        return compute(x)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Hand on, or let the shift absorb its part."""
        stage, terms = ctx.stage, ctx.terms
        if terms.redistribute or (ctx.use is not None and any(stage is other for other in ctx.use.stages)):
            return relevance, None, None, None, None
        values, offset = (stage.output.read() - stage.offset).abs_(), stage.offset.abs()
        s = relevance / (values + offset).add_(terms.stabiliser)
        terms.ledger.write(terms.label, relevance, [Remainder(s, terms.stabiliser, bias=offset)])
        return values.mul_(s), None, None, None, None


class Shares(Carrier):
    """z homogeneous of degree d in its operands, plus an offset: R_x = x ⊙ Jᵀ R / (z + ε sign z) / d.

    Euler's theorem, Σ x ∂z/∂x = d z, makes it conserve. Sums, means and interpolation have d = 1, a product of two
    operands has d = 2.
    """

    @staticmethod
    def forward(
        ctx: Any, compute: Callable[..., Tensor], cells: Sequence[Cell], degree: float, offset: Tensor | None,
        terms: Terms, *operands: Tensor,
    ) -> Tensor:  # fmt: skip
        """Compute z and keep its own graph, which gives Jᵀ."""
        ctx.compute, ctx.cells, ctx.degree, ctx.offset, ctx.terms = compute, cells, degree, offset, terms
        return _with_own_graph(ctx, compute, operands)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Share in proportion to what each operand contributes."""
        terms: Terms = ctx.terms
        z = ctx.z.detach()
        s = proportion(relevance, z, terms.stabiliser)
        gradients = torch.autograd.grad(ctx.z, ctx.leaves, s / ctx.degree, retain_graph=True)
        parts = [cell.read() * gradient for cell, gradient in zip(ctx.cells, gradients, strict=True)]
        remainder = Remainder(s, terms.stabiliser, z, ctx.offset)
        if terms.redistribute:
            rest = _evenly(remainder.each(), ctx.compute, parts)
            parts = [part + share for part, share in zip(parts, rest, strict=True)]
        terms.ledger.write(terms.label, relevance, () if terms.redistribute else [remainder])
        return None, None, None, None, None, *parts


class Routes(Carrier):
    """Values are moved, copied or chosen, some of them constants: R_x = Jᵀ R; the constants keep their part."""

    @staticmethod
    def forward(ctx: Any, compute: Callable[..., Tensor], terms: Terms, *operands: Tensor) -> Tensor:
        """Move the values and keep the graph that moves them back."""
        ctx.terms = terms
        return _with_own_graph(ctx, compute, operands)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Move the relevance back."""
        parts = torch.autograd.grad(ctx.z, ctx.leaves, relevance, retain_graph=True)
        ctx.terms.ledger.write(ctx.terms.label, relevance, reached=parts)
        return None, None, *parts


def _with_own_graph(ctx: Any, compute: Callable[..., Tensor], operands: Sequence[Tensor]) -> Tensor:
    """The result, while `ctx` keeps it as `z` with the graph that leads back to `leaves`."""
    ctx.leaves = [operand.detach().requires_grad_() for operand in operands]
    with torch.enable_grad():
        ctx.z = compute(*ctx.leaves)
    output: Tensor = ctx.z.detach().clone()
    return output


def _evenly(amounts: Tensor, compute: Callable[..., Tensor], operands: Sequence[Tensor]) -> list[Tensor]:
    """Each output's amount in equal parts over the operand elements it was computed from."""
    if all(operand.shape == amounts.shape for operand in operands):
        return [amounts / len(operands)] * len(operands)
    leaves = [torch.ones_like(operand).requires_grad_() for operand in operands]
    with torch.enable_grad():
        elements = compute(*leaves)
    share = proportion(amounts, elements.detach() * len(leaves), 1e-12)
    return list(torch.autograd.grad(elements, leaves, share))
