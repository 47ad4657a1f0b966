"""Which layer follows which rule: the presets of the literature, and the two that the seed papers use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, get_args

from torch import Tensor, nn

from weakspot.core.errors import ConfigError
from weakspot.relevance.rules import LRP0, AlphaBeta, Epsilon, Flat, Gamma, Rule, ZBox, ZPlus

Kind = Literal["dense", "convolution"]
Bias = Literal["absorbed", "redistributed", "evenly"]
Sums = Literal["signed", "magnitude"]


@dataclass(frozen=True, kw_only=True)
class Composite:
    """A rule for every layer z = W x + b, and what happens to the share of its bias.

    layers: rules by name pattern (``"features.*"``) or module type, which come first, in this order. A layer that runs
        inside a module of the user's own is known by that module's name.
    first: for layers that the inputs reach before any other.
    dense, convolution: for all other layers.
    bias: ``"absorbed"`` leaves the share of biases and stabilisers in them. With ``"redistributed"`` it goes to the
        inputs of each output, in proportion to |x_i w_ij|, and with ``"evenly"`` in equal parts: relevance is then
        conserved. In equal parts it also reaches inputs that are zero, and grows out of bounds over many layers.
    sums: how a sum a + b of two branches is split, ``"signed"`` in the ratio a : b or ``"magnitude"`` in the ratio
        |a| : |b|, which never amplifies; by default signed where biases absorb, magnitude where nothing may be lost.
    stabiliser: the ε of sums, means, average pooling and normalisation.
    """

    dense: Rule = Epsilon()  # noqa: RUF009
    convolution: Rule = Epsilon()  # noqa: RUF009
    first: Rule | None = None
    layers: Mapping[str | type[nn.Module], Rule] = field(default_factory=dict)
    bias: Bias = "absorbed"
    sums: Sums | None = None
    stabiliser: float = 1e-6

    def __post_init__(self) -> None:
        if self.bias not in get_args(Bias):
            raise ConfigError(f"bias must be one of {', '.join(get_args(Bias))}, got {self.bias!r}")
        if self.sums not in (None, *get_args(Sums)):
            raise ConfigError(f"sums must be one of {', '.join(get_args(Sums))}, got {self.sums!r}")
        for key, rule in [*self.layers.items(), ("dense", self.dense), ("convolution", self.convolution)]:
            if not isinstance(rule, Rule):
                raise ConfigError(f"the rule for {key!r} must be a Rule such as Epsilon(), got {rule!r}")

    @property
    def splits_by_magnitude(self) -> bool:
        """Whether sums of branches are split in the ratio |a| : |b|."""
        return self.sums == "magnitude" or (self.sums is None and self.bias != "absorbed")

    def rule(self, kind: Kind, name: str, module: nn.Module, *, first: bool) -> Rule:
        """The rule of one layer."""
        for key, rule in self.layers.items():
            if isinstance(module, key) if isinstance(key, type) else fnmatchcase(name, key):
                return rule
        if first and self.first is not None:
            return self.first
        return self.dense if kind == "dense" else self.convolution


def epsilon_plus(*, epsilon: float = 1e-6, bias: Bias = "absorbed") -> Composite:
    """ε for dense layers, z⁺ for convolutions [kohlbrenner2020]."""
    return Composite(dense=Epsilon(epsilon), convolution=ZPlus(), bias=bias)


def epsilon_plus_flat(*, epsilon: float = 1e-6, bias: Bias = "absorbed") -> Composite:
    """ε for dense layers, z⁺ for convolutions, flat for the first layer [kohlbrenner2020]."""
    return Composite(dense=Epsilon(epsilon), convolution=ZPlus(), first=Flat(), bias=bias)


def epsilon_alpha2_beta1(*, epsilon: float = 1e-6, bias: Bias = "absorbed") -> Composite:
    """ε for dense layers, α2β1 for convolutions [kohlbrenner2020]."""
    return Composite(dense=Epsilon(epsilon), convolution=AlphaBeta(2, 1), bias=bias)


def epsilon_alpha2_beta1_flat(*, epsilon: float = 1e-6, bias: Bias = "absorbed") -> Composite:
    """ε for dense layers, α2β1 for convolutions, flat for the first layer [kohlbrenner2020]."""
    return Composite(dense=Epsilon(epsilon), convolution=AlphaBeta(2, 1), first=Flat(), bias=bias)


def epsilon_gamma_box(
    low: float | Tensor, high: float | Tensor, *, epsilon: float = 1e-6, gamma: float = 0.25, bias: Bias = "absorbed"
) -> Composite:
    """ε for dense layers, γ for convolutions, z^B for the first layer, with inputs in [low, high] [montavon2019]."""
    return Composite(dense=Epsilon(epsilon), convolution=Gamma(gamma), first=ZBox(low, high), bias=bias)


def deep_importance(*, bias: Bias = "redistributed") -> Composite:
    """LRP-0 everywhere, the biases' share spread over the layer's inputs [gerasimou2020].

    The authors' released code leaves it in the biases: ``deep_importance(bias="absorbed")``.
    """
    return Composite(dense=LRP0(), convolution=LRP0(), bias=bias, stabiliser=1e-16)


def hudd(*, bias: Bias = "absorbed") -> Composite:
    """z⁺ for dense layers, LRP-0 for convolutions, transposed ones and pooling [fahmy2021]."""
    return Composite(dense=ZPlus(), convolution=LRP0(), bias=bias, stabiliser=1e-16)
