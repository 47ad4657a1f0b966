"""One forward pass under observation, and the backward pass that gives relevance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from weakspot.core.errors import DataError, SubjectError
from weakspot.relevance.carriers import Passes
from weakspot.relevance.ledger import Conservation
from weakspot.relevance.origins import Origin
from weakspot.relevance.result import Relevance
from weakspot.relevance.starts import Start, Winner
from weakspot.relevance.taps import Taps, map_tensors
from weakspot.relevance.tracer import Tracer

Rows = Tensor | Callable[[Tensor], Tensor] | None


class Trace(ABC):
    """A forward pass under observation: what went in, and what was caught on the way."""

    def __init__(self, taps: Taps) -> None:
        self.taps = taps
        self._inputs: Any = None
        self._leaves: list[Tensor] = []

    def watch(self, inputs: Any) -> Any:
        """The inputs to call the model with in place of the given ones: a tensor, or tuples, lists, dicts of them."""

        def enter(tensor: Tensor) -> Tensor:
            self._leaves.append(tensor.detach().requires_grad_())
            return self._enter(self._leaves[-1])

        self._inputs = inputs
        with torch._C.DisableTorchFunction(), torch.enable_grad():
            return map_tensors(inputs, enter)

    def relevance(
        self, outputs: Tensor, *, start: Start | None = None, rows: Rows = None, to_inputs: bool = True
    ) -> Relevance:
        """Relevance for the outputs that `start` chooses, of all samples or of the marked `rows`.

        rows: a boolean mask (N,), or a function from the outputs to one.
        to_inputs: False ends the backward pass at the first of the layers asked for, without relevance of the inputs.

        Call it once, after the block: it frees what was kept of the forward pass.
        """
        self.taps.check()
        if not self._leaves:
            raise SubjectError(
                "expected inputs with floating-point numbers, watched and not yet explained, got none; call the model "
                "with `trace.watch(inputs)` inside the block, and `trace.relevance` once"
            )
        explained = self.logits(outputs)
        weights = (start or Winner()).weights(explained.detach()) * _mask(rows, outputs.detach())
        targets = self.targets() if to_inputs else list(self.taps.caught.values())
        attributed = self._attribute(explained, weights, targets)
        values = iter(attributed)
        inputs = map_tensors(self._inputs, lambda _: next(values)) if to_inputs else None
        begun = weights * explained.detach()
        result = Relevance(
            outputs=outputs.detach(),
            start=begun.flatten(1).sum(1) if begun.dim() > 1 else begun,
            input=inputs,
            layers=dict(zip(self.taps.caught, values, strict=True)),
            conservation=self._conservation(begun, attributed[: len(self._leaves)]) if to_inputs else None,
        )
        self._leaves.clear()
        self.taps.caught.clear()
        return result

    def targets(self) -> list[Tensor]:
        """Tensors whose relevance is wanted: the inputs, then the layers."""
        return [*self._leaves, *self.taps.caught.values()]

    @abstractmethod
    def logits(self, outputs: Tensor) -> Tensor:
        """The outputs before a final softmax or sigmoid."""

    def _conservation(self, start: Tensor, inputs: Sequence[Tensor]) -> Conservation | None:
        return None

    @abstractmethod
    def _enter(self, leaf: Tensor) -> Tensor:
        """Hand an input to the model."""

    @abstractmethod
    def _attribute(self, outputs: Tensor, weights: Tensor, targets: Sequence[Tensor]) -> list[Tensor]:
        """Relevance of each target for Σ weights ⊙ outputs."""


class RuleTrace(Trace):
    """Layer-wise relevance propagation."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(tracer.taps)
        self._tracer = tracer

    def _enter(self, leaf: Tensor) -> Tensor:
        entered: Tensor = self._tracer.follow(Passes.carry(leaf, torch.clone), Origin(raw=True))
        return entered

    def logits(self, outputs: Tensor) -> Tensor:
        if not self._tracer.follows(outputs):
            raise SubjectError(
                "expected outputs that depend on the watched inputs, got a constant; call the model with "
                "`trace.watch(inputs)` inside the block, and give its output tensor"
            )
        origin = self._tracer.origin(outputs)
        return outputs if origin.logits is None else origin.logits

    def _attribute(self, outputs: Tensor, weights: Tensor, targets: Sequence[Tensor]) -> list[Tensor]:
        self._tracer.consume((outputs,))
        return gradients(outputs, targets, weights * outputs.detach())

    def _conservation(self, start: Tensor, inputs: Sequence[Tensor]) -> Conservation | None:
        ledger = self._tracer.ledger
        return ledger.close(start, inputs) if ledger.keep else None


def gradients(outputs: Tensor, targets: Sequence[Tensor], start: Tensor) -> list[Tensor]:
    """What reaches each target from the start; zero where nothing does."""
    reachable = [target for target in targets if target.requires_grad]
    flowing = iter(torch.autograd.grad(outputs, reachable, start, allow_unused=True) if reachable else ())
    values = [next(flowing) if target.requires_grad else None for target in targets]
    return [torch.zeros_like(t) if v is None else v.detach() for v, t in zip(values, targets, strict=True)]


def _mask(rows: Rows, outputs: Tensor) -> Tensor:
    """1 for the samples wanted and 0 for the others, shaped to multiply the outputs."""
    wanted = rows(outputs) if callable(rows) and not isinstance(rows, Tensor) else rows
    if wanted is None:
        return outputs.new_ones(())
    if wanted.dtype != torch.bool or wanted.shape != outputs.shape[:1]:
        raise DataError(
            f"rows must be a boolean mask of shape ({outputs.shape[0]},), got {wanted.dtype} of shape "
            f"{tuple(wanted.shape)}; for instance `outputs.argmax(1) == targets`"
        )
    return wanted.to(outputs).view(-1, *[1] * (outputs.dim() - 1))
