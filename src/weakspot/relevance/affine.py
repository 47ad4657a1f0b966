"""Layers of the form z = W x + b, as the rules see them: apply any weight, transpose it, spread evenly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, kw_only=True)
class Affine(ABC):
    """One use of a layer z = W x + b: its input x, weight W, bias b and output z."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    z: Tensor
    nonnegative: bool = False
    """Whether x ≥ 0 is known from how x was made; then half of the work of the sign-splitting rules falls away."""

    @abstractmethod
    def apply(self, x: Tensor, weight: Tensor) -> Tensor:
        """W' x' for any input and weight of the right shapes."""

    @abstractmethod
    def transpose(self, s: Tensor, weight: Tensor) -> Tensor:
        """W'ᵀ s, in the shape of x."""

    @abstractmethod
    def spread(self, amounts: Tensor) -> Tensor:
        """Each output's amount in equal parts over the inputs it is connected to, in the shape of x."""

    def apportion(self, amounts: Tensor) -> Tensor:
        """Each output's amount over its inputs in proportion to |x_i w_ij|; evenly where all of those are zero."""
        x, weight = self.x.abs(), self.weight.abs()
        total = self.apply(x, weight)
        dead = total == 0
        share = x * self.transpose((amounts / total).masked_fill(dead, 0), weight)
        return share + self.spread(amounts * dead)

    @abstractmethod
    def rescaled(self, scale: Tensor, shift: Tensor, z: Tensor) -> Self:
        """The layer whose output is scale ⊙ (W x + b) + shift, one number of each per output channel."""

    @abstractmethod
    def along_outputs(self, vector: Tensor) -> Tensor:
        """One number per output channel, shaped to broadcast against z."""


@dataclass(frozen=True, kw_only=True)
class Dense(Affine):
    """z = x Wᵀ + b over the last axis."""

    def apply(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.linear(x, weight)

    def transpose(self, s: Tensor, weight: Tensor) -> Tensor:
        return s @ weight

    def spread(self, amounts: Tensor) -> Tensor:
        inputs = self.weight.shape[1]
        return (amounts.sum(-1, keepdim=True) / inputs).expand(*amounts.shape[:-1], inputs)

    def rescaled(self, scale: Tensor, shift: Tensor, z: Tensor) -> Self:
        return replace(self, weight=self.weight * scale[:, None], bias=_rescaled_bias(self.bias, scale, shift), z=z)

    def along_outputs(self, vector: Tensor) -> Tensor:
        return vector


@dataclass(frozen=True, kw_only=True)
class Convolution(Affine):
    """A convolution, or transposed convolution, in any number of dimensions over a batch."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    transposed: bool
    output_padding: list[int]
    groups: int

    def apply(self, x: Tensor, weight: Tensor) -> Tensor:
        return torch.convolution(
            x, weight, None, self.stride, self.padding, self.dilation,
            self.transposed, self.output_padding, self.groups,
        )  # fmt: skip

    def transpose(self, s: Tensor, weight: Tensor) -> Tensor:
        return self._transposed(s, self.x, weight)

    def spread(self, amounts: Tensor) -> Tensor:
        per_group = amounts.unflatten(1, (self.groups, -1)).sum(2)
        ones = self.weight.new_ones(self.groups, 1, *self.weight.shape[2:])
        inputs = self.x.new_ones(1, self.groups, *self.x.shape[2:])
        channels = self.x.shape[1] // self.groups
        connections = self.apply(inputs, ones).clamp_(min=1) * channels
        like = inputs.expand(len(self.x), *inputs.shape[1:])
        share = self._transposed(per_group / connections, like, ones)
        return share.repeat_interleave(channels, dim=1)

    def rescaled(self, scale: Tensor, shift: Tensor, z: Tensor) -> Self:
        positions = [1] * (self.weight.dim() - 2)
        if self.transposed:
            grouped = self.weight.unflatten(0, (self.groups, -1))
            weight = (grouped * scale.view(self.groups, 1, -1, *positions)).flatten(0, 1)
        else:
            weight = self.weight * scale.view(-1, 1, *positions)
        return replace(self, weight=weight, bias=_rescaled_bias(self.bias, scale, shift), z=z)

    def along_outputs(self, vector: Tensor) -> Tensor:
        return vector.view(-1, *[1] * (self.weight.dim() - 2))

    def _transposed(self, s: Tensor, like: Tensor, weight: Tensor) -> Tensor:
        gradient: Tensor = torch.ops.aten.convolution_backward(
            s, like, weight, None, self.stride, self.padding, self.dilation,
            self.transposed, self.output_padding, self.groups, [True, False, False],
        )[0]  # fmt: skip
        return gradient


def _rescaled_bias(bias: Tensor | None, scale: Tensor, shift: Tensor) -> Tensor:
    return shift if bias is None else bias * scale + shift
