"""Conservation: how much relevance each operation received, and how much it kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weakspot.relevance.rules import Remainder

Label = tuple[str, str, str]
"""Layer, operation and rule."""


@dataclass(frozen=True)
class Balance:
    """Relevance that one operation received over the batch, and what stayed in it.

    `received` = what its inputs got + `biases` + `stabilisers` + `constants`. Constants are learned tokens and padding
    that were joined to the data.
    """

    layer: str
    operation: str
    rule: str
    received: float
    biases: float
    stabilisers: float
    constants: float

    @property
    def passed(self) -> float:
        """What the operation's inputs got."""
        return self.received - self.biases - self.stabilisers - self.constants


@dataclass(frozen=True)
class Conservation:
    """Where the relevance that entered at the outputs went: to the inputs, or into biases, stabilisers, constants."""

    start: float
    inputs: float
    layers: tuple[Balance, ...]

    @property
    def biases(self) -> float:
        """Relevance absorbed by biases in all layers."""
        return sum(balance.biases for balance in self.layers)

    @property
    def stabilisers(self) -> float:
        """Relevance absorbed by stabilisers in all layers."""
        return sum(balance.stabilisers for balance in self.layers)

    @property
    def constants(self) -> float:
        """Relevance absorbed by learned tokens and padding."""
        return sum(balance.constants for balance in self.layers)

    @property
    def unexplained(self) -> float:
        """start − inputs − biases − stabilisers − constants: rounding, if all is well."""
        return self.start - self.inputs - self.biases - self.stabilisers - self.constants

    def __str__(self) -> str:
        head = f"{'layer':32} {'operation':16} {'rule':12} {'received':>12} {'biases':>12} {'stabilisers':>12}"
        lines = [
            f"{b.layer[-32:]:32} {b.operation[:16]:16} {b.rule[:12]:12} "
            f"{b.received:12.5g} {b.biases:12.5g} {b.stabilisers:12.5g}"
            for b in self.layers
        ]
        foot = (
            f"start {self.start:.6g} = inputs {self.inputs:.6g} + biases {self.biases:.6g} + stabilisers "
            f"{self.stabilisers:.6g} + constants {self.constants:.6g} + unexplained {self.unexplained:.2g}"
        )
        return "\n".join([head, *lines, foot])


class Ledger:
    """Collects balances on the device during the backward pass; nothing is copied to the host until it is read."""

    def __init__(self, *, keep: bool) -> None:
        self.keep = keep
        self._labels: list[Label] = []
        self._amounts: list[Tensor] = []

    def write(
        self,
        label: Label,
        relevance: Tensor,
        remainders: Sequence[Remainder] = (),
        *,
        reached: Sequence[Tensor] | None = None,
    ) -> None:
        """Note one operation's balance; where only what its inputs `reached` is known, constants kept the rest."""
        if not self.keep:
            return
        received = relevance.sum().double()
        nothing = received.new_zeros(())
        biases = sum((r.biases() for r in remainders), start=nothing)
        stabilisers = sum((r.stabilisers() for r in remainders), start=nothing)
        constants = nothing if reached is None else received - sum(part.sum() for part in reached)
        self._labels.append(label)
        self._amounts.append(torch.stack([received, biases, stabilisers, constants]))

    def close(self, start: Tensor, inputs: Sequence[Tensor]) -> Conservation:
        """Read everything noted so far, outputs first."""
        rows = torch.stack(self._amounts).tolist() if self._amounts else []
        layers = tuple(Balance(*label, *row) for label, row in zip(self._labels, rows, strict=True))
        return Conservation(_total([start]), _total(inputs), layers)


def _total(tensors: Sequence[Tensor]) -> float:
    return sum(float(tensor.sum(dtype=torch.float64)) for tensor in tensors)
