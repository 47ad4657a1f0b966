"""The rules of layer-wise relevance propagation for layers z = W x + b.

Every rule is a list of shares. A share replaces the layer by parts (x', W') with a bias b', and hands a fraction f
of the relevance R of the outputs to them in proportion:

    z' = Σ W' x' + b'        s = f R / (z' + ε sign z')        R_x = Σ x' ⊙ W'ᵀ s

What the bias (s b') and the stabiliser (s ε sign z') keep is absorbed, or handed to the inputs by the composite, so
that Σ R_x = Σ R. Keys in brackets are those of `docs/references.bib`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.relevance.affine import Affine


class Part(NamedTuple):
    """What stands in for the input and the weight."""

    x: Tensor
    weight: Tensor


class RelevanceShare(NamedTuple):
    """A fraction of the relevance and the parts that receive it."""

    parts: Sequence[Part]
    bias: Tensor | None = None
    fraction: Tensor | float = 1.0
    total: Tensor | None = None
    """z' where it is already known, so that it need not be computed again."""
    positive: bool = False
    """Whether z' is never negative, which saves looking at its sign."""


class Remainder(NamedTuple):
    """What a bias and a stabiliser kept of a share: s b' and s ε sign z'."""

    s: Tensor
    epsilon: float
    z: Tensor | None = None
    """Only its sign counts; without it, all signs are positive."""
    bias: Tensor | None = None

    def each(self) -> Tensor:
        """Both together, per output."""
        kept = self.epsilon * self.s if self.z is None else self.s * _sign(self.z, self.epsilon)
        return kept if self.bias is None else kept + self.s * self.bias

    def biases(self) -> Tensor:
        """What the bias kept, in all."""
        if self.bias is None:
            return self.s.new_zeros(())
        return (self.s.sum_to_size(self.bias.shape) * self.bias).sum()

    def stabilisers(self) -> Tensor:
        """What the stabiliser kept, in all."""
        if self.z is None:
            return self.epsilon * self.s.sum()
        return torch.dot(self.s.flatten(), _sign(self.z, self.epsilon).flatten())


class Flow(NamedTuple):
    """Relevance that reached the inputs, and what remained on the way."""

    relevance: Tensor
    remainders: Sequence[Remainder] = ()


@dataclass(frozen=True)
class Rule:
    """Base of all rules; a rule says how the relevance is shared out."""

    def shares(self, layer: Affine) -> Sequence[RelevanceShare]:
        """The shares of the relevance, as in the formula of this module."""
        raise NotImplementedError(f"{type(self).__name__} needs either `shares` or `flow`")

    @property
    def denominator(self) -> float:
        """ε of the formula of this module."""
        return float(getattr(self, "stabiliser", 0.0))

    def flow(self, layer: Affine, relevance: Tensor) -> Flow:
        """Carry the relevance of the layer's outputs to its inputs."""
        flows = [_flow(share, layer, relevance, self.denominator) for share in self.shares(layer)]
        return Flow(_sum([f.relevance for f in flows]), [rest for f in flows for rest in f.remainders])


@dataclass(frozen=True)
class Epsilon(Rule):
    """LRP-ε: R_i = Σ_j x_i w_ij R_j / (z_j + ε sign z_j) [bach2015]."""

    epsilon: float = 1e-6

    @property
    def denominator(self) -> float:
        return self.epsilon

    def shares(self, layer: Affine) -> Sequence[RelevanceShare]:
        return [RelevanceShare([Part(layer.x, layer.weight)], layer.bias, total=layer.z)]


@dataclass(frozen=True)
class LRP0(Epsilon):
    """LRP-0: LRP-ε whose ε only prevents division by zero [bach2015]."""

    epsilon: float = 1e-16


@dataclass(frozen=True)
class ZPlus(Rule):
    """z⁺: R_i = Σ_j (x_i w_ij)⁺ R_j / (Σ_i (x_i w_ij)⁺ + b_j⁺) [montavon2017]."""

    stabiliser: float = 1e-6

    def shares(self, layer: Affine) -> Sequence[RelevanceShare]:
        w = layer.weight
        return [RelevanceShare(_paths(layer, positive(w), negative(w)), _map(positive, layer.bias), positive=True)]


@dataclass(frozen=True)
class AlphaBeta(Rule):
    """α β: R_i = Σ_j (α (x_i w_ij)⁺ / z_j⁺ − β (x_i w_ij)⁻ / z_j⁻) R_j, α − β = 1 [bach2015]."""

    alpha: float = 2.0
    beta: float = 1.0
    stabiliser: float = 1e-6

    def __post_init__(self) -> None:
        if self.alpha < 0 or self.beta < 0 or abs(self.alpha - self.beta - 1) > 1e-9:
            raise ConfigError(
                f"AlphaBeta needs alpha − beta = 1 with neither below 0, got alpha={self.alpha}, beta={self.beta}; "
                "use for instance AlphaBeta(2, 1) or AlphaBeta(1, 0)"
            )

    def shares(self, layer: Affine) -> Sequence[RelevanceShare]:
        w, b = layer.weight, layer.bias
        excite = RelevanceShare(_paths(layer, positive(w), negative(w)), _map(positive, b), self.alpha, positive=True)
        inhibit = RelevanceShare(_paths(layer, negative(w), positive(w)), _map(negative, b), -self.beta)
        return [excite, inhibit] if self.beta else [excite]


@dataclass(frozen=True)
class Gamma(Rule):
    """LRP-γ, for inputs of any sign: contributions of the sign of z_j count 1 + γ fold [montavon2019, andeol2021]."""

    gamma: float = 0.25
    stabiliser: float = 1e-6

    def shares(self, layer: Affine) -> Sequence[RelevanceShare]:
        w, b, up = layer.weight, layer.bias, layer.z > 0
        more, less = w + self.gamma * positive(w), w + self.gamma * negative(w)
        bias_more = _map(lambda v: v + self.gamma * positive(v), b)
        bias_less = _map(lambda v: v + self.gamma * negative(v), b)
        return [
            RelevanceShare(_paths(layer, more, less), bias_more, up),
            RelevanceShare(_paths(layer, less, more), bias_less, ~up),
        ]


@dataclass(frozen=True)
class WSquare(Rule):
    """w²: R_i = Σ_j w_ij² R_j / Σ_i w_ij² [montavon2017]."""

    stabiliser: float = 1e-6

    def shares(self, layer: Affine) -> Sequence[RelevanceShare]:
        return [RelevanceShare([Part(torch.ones_like(layer.x), layer.weight.square())], positive=True)]


@dataclass(frozen=True)
class Flat(Rule):
    """Flat: R_i = Σ_j R_j / (number of inputs of j) [bach2016]."""

    def flow(self, layer: Affine, relevance: Tensor) -> Flow:
        return Flow(layer.spread(relevance))


@dataclass(frozen=True)
class ZBox(Rule):
    """z^B, for inputs in l ≤ x ≤ h: R_i = Σ_j (x_i w_ij − l_i w_ij⁺ − h_i w_ij⁻) R_j / Σ_i (…) [montavon2017].

    The bounds are those of the layer's own input (after the network's normalisation, where it has one): numbers, or
    tensors that broadcast against the input.
    """

    low: float | Tensor
    high: float | Tensor
    stabiliser: float = field(default=1e-6, kw_only=True)

    def shares(self, layer: Affine) -> Sequence[RelevanceShare]:
        x, w = layer.x, layer.weight
        low, high = (torch.as_tensor(b, dtype=x.dtype, device=x.device).expand_as(x) for b in (self.low, self.high))
        return [RelevanceShare([Part(x, w), Part(-low, positive(w)), Part(-high, negative(w))])]


def positive(values: Tensor) -> Tensor:
    """max(v, 0)."""
    return values.clamp(min=0)


def negative(values: Tensor) -> Tensor:
    """min(v, 0)."""
    return values.clamp(max=0)


def proportion(relevance: Tensor, z: Tensor, epsilon: float) -> Tensor:
    """s = R / (z + ε sign z), with sign 0 = 1."""
    denominator = _sign(z, epsilon).add_(z)
    return torch.div(relevance, denominator, out=denominator)


def _sign(z: Tensor, epsilon: float) -> Tensor:
    return z.new_full((), epsilon).copysign(z)


def _paths(layer: Affine, for_positive: Tensor, for_negative: Tensor) -> list[Part]:
    """One weight for the positive inputs and another for the negative ones."""
    if layer.nonnegative:
        return [Part(layer.x, for_positive)]
    return [Part(positive(layer.x), for_positive), Part(negative(layer.x), for_negative)]


def _flow(share: RelevanceShare, layer: Affine, relevance: Tensor, epsilon: float) -> Flow:
    bias = None if share.bias is None else layer.along_outputs(share.bias)
    z = share.total
    if z is None:
        z = _sum([layer.apply(*part) for part in share.parts])
        z = z if bias is None else z.add_(bias)
    if share.positive:
        s, z = relevance / z.add_(epsilon), None
    else:
        s = proportion(relevance, z, epsilon)
    if isinstance(share.fraction, Tensor) or share.fraction != 1:
        s.mul_(share.fraction)
    reached = _sum([layer.transpose(s, part.weight).mul_(part.x) for part in share.parts])
    return Flow(reached, [Remainder(s, epsilon, z, bias)])


def _sum(tensors: Sequence[Tensor]) -> Tensor:
    """Their sum, in the memory of the first."""
    total = tensors[0]
    for tensor in tensors[1:]:
        total.add_(tensor)
    return total


def _map(function: Callable[[Tensor], Tensor], values: Tensor | None) -> Tensor | None:
    return None if values is None else function(values)
