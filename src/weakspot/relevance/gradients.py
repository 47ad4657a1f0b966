"""Gradient × input and integrated gradients, behind the same interface as the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.relevance.taps import Taps, map_tensors
from weakspot.relevance.trace import Trace, gradients

SQUASHING = {
    functional.softmax, torch.softmax, Tensor.softmax, functional.log_softmax, torch.log_softmax, Tensor.log_softmax,
    functional.sigmoid, torch.sigmoid, Tensor.sigmoid, functional.logsigmoid,
}  # fmt: skip


@dataclass(frozen=True)
class GradientTimesInput:
    """R_x = x ⊙ ∂f/∂x [shrikumar2016]."""


@dataclass(frozen=True)
class IntegratedGradients:
    """R_x = ∫ ∂f/∂x dx along the straight line from a baseline to the input [sundararajan2017].

    Inner layers get their conductance [dhamdhere2019]. The integral is the trapezoidal sum over `steps` pieces.
    """

    steps: int = 32
    baseline: float | Tensor = 0.0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigError(f"steps must be at least 1, got {self.steps}")


class LogitFinder(TorchFunctionMode):
    """Remembers what tensors were before a softmax or sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self._before: Any = WeakIdKeyDictionary()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the function, and look at its argument."""
        output = func(*args, **(kwargs or {}))
        if func in SQUASHING and args:
            self._before[output] = args[0]
        return output

    def logits(self, outputs: Tensor) -> Tensor:
        """The outputs before a final softmax or sigmoid."""
        logits: Tensor = self._before.get(outputs, outputs)
        return logits


class GradientTrace(Trace):
    """Gradient × input."""

    def __init__(self, taps: Taps, finder: LogitFinder) -> None:
        super().__init__(taps)
        self._finder = finder

    def _enter(self, leaf: Tensor) -> Tensor:
        return leaf.clone()

    def logits(self, outputs: Tensor) -> Tensor:
        if outputs.grad_fn is None:
            raise SubjectError(
                "expected outputs with a gradient, got a constant; call the model with `trace.watch(inputs)` inside "
                "the block, and without torch.no_grad or detach inside the model"
            )
        return self._finder.logits(outputs)

    def _attribute(self, outputs: Tensor, weights: Tensor, targets: Sequence[Tensor]) -> list[Tensor]:
        slopes = gradients(outputs, targets, weights)
        return [target.detach() * gradient for target, gradient in zip(targets, slopes, strict=True)]


class PathTrace(GradientTrace):
    """Integrated gradients: the same gradients at points along a path, from further forward passes."""

    def __init__(
        self,
        taps: Taps,
        finder: LogitFinder,
        method: IntegratedGradients,
        again: Callable[[Any], tuple[Tensor, list[Tensor]]],
    ) -> None:
        super().__init__(taps, finder)
        self._method = method
        self._again = again

    def _attribute(self, outputs: Tensor, weights: Tensor, targets: Sequence[Tensor]) -> list[Tensor]:
        """Σ_k ½ (g_k + g_{k+1}) ⊙ (a_{k+1} − a_k) over the points k, for activations a and gradients g of a target."""
        totals = [torch.zeros_like(target) for target in targets]
        previous: tuple[list[Tensor], list[Tensor]] | None = None
        for step in range(self._method.steps + 1):
            values, slopes = self._point(step / self._method.steps, weights, len(targets))
            if previous is not None:
                pieces = zip(totals, previous[0], values, previous[1], slopes, strict=True)
                totals = [total + (g0 + g1) / 2 * (a1 - a0) for total, a0, a1, g0, g1 in pieces]
            previous = values, slopes
        return totals

    def _point(self, position: float, weights: Tensor, count: int) -> tuple[list[Tensor], list[Tensor]]:
        """Values and gradients of the targets at one point of the path: the last so many, the layers stand last."""
        baseline = self._method.baseline
        start = [torch.as_tensor(baseline).to(leaf).expand_as(leaf) for leaf in self._leaves]
        points = iter([torch.lerp(b, leaf.detach(), position) for b, leaf in zip(start, self._leaves, strict=True)])
        outputs, everything = self._again(map_tensors(self._inputs, lambda _: next(points)))
        targets = everything[len(everything) - count :]
        slopes = gradients(outputs, targets, weights)
        return [target.detach() for target in targets], slopes
