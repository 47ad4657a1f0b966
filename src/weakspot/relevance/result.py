"""What a relevance pass gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.relevance.ledger import Conservation


@dataclass(frozen=True)
class Relevance:
    """Relevance of the inputs and of inner layers, per element; rows that were not asked for are zero.

    outputs: what the model returned.
    start: the relevance each sample began with.
    input: relevance in the structure of the inputs; None where it was not asked for.
    layers: relevance of a layer's output under ``name``, of its input under ``name:input``.
    """

    outputs: Any
    start: Tensor
    input: Any
    layers: dict[str, Tensor] = field(default_factory=dict)
    conservation: Conservation | None = None

    def channels(self, name: str, *, axis: int = 1, reduction: Literal["sum", "mean"] = "sum") -> Tensor:
        """Relevance per neuron of a layer, shape (N, neurons): positions are summed or averaged.

        axis: where the neurons lie, 1 for convolutions, −1 for the tokens of a transformer.
        """
        if name not in self.layers:
            raise ConfigError(f"expected one of the layers {sorted(self.layers)}, got {name!r}; ask for it in `layers`")
        values = self.layers[name].movedim(axis, 1)
        if values.dim() == 2:
            return values
        return values.flatten(2).sum(2) if reduction == "sum" else values.flatten(2).mean(2)
