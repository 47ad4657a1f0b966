"""Attacks of other packages: foolbox, ART, torchattacks, or a function of your own."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from weakspot.attacks.attack import Case
from weakspot.attacks.balls import size
from weakspot.attacks.losses import logits_of
from weakspot.attacks.robustness_kinds import WithinBall
from weakspot.core.errors import DataError
from weakspot.core.look import Forward
from weakspot.core.stateless_random import draw_keys

_ROUNDING = 1e-4


class LogitsModel(nn.Module):
    """The subject as others want a model: an `nn.Module` in evaluation mode, from inputs to logits."""

    def __init__(self, model: object, forward: Forward):
        super().__init__()
        self.forward_logits = forward
        if isinstance(model, nn.Module):
            self.model = model  # its parameters tell others the device
        self.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits, with the subject's own pre-processing."""
        return self.forward_logits(inputs)


@dataclass(frozen=True, kw_only=True)
class ForeignAttack(WithinBall):
    """An attack by a function of yours or of another package: changed = call(model, inputs, classes).

    epsilon, norm: the ball that the function keeps to; a change that is larger is refused.
    call: from an `nn.Module` that gives logits, the inputs and the right classes to the changed inputs, all tensors.
    """

    call: Callable[[nn.Module, Tensor, Tensor], Tensor]

    def change(self, case: Case) -> Tensor:
        """What the function makes of the batch; torch's generator is seeded from the seed and the ids of the batch."""
        logits = logits_of(case.forward, "classification", case.subject.scores)
        model = LogitsModel(case.subject.model, logits)
        devices = [case.inputs.device] if case.inputs.device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.enable_grad():
            torch.manual_seed(int(draw_keys(case.ids, case.seed)[0] >> 1))
            made = self.call(model, case.inputs.clone(), case.goal.answers.clone())
        return self._checked(made, case)

    def _checked(self, made: object, case: Case) -> Tensor:
        inputs, (low, high) = case.inputs, case.bounds
        if not isinstance(made, Tensor) or made.shape != inputs.shape:
            got = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
            raise DataError(f"the attack gave {got}, expected a tensor of shape {tuple(inputs.shape)}")
        changed = made.detach().to(inputs)
        far = float(size(changed - inputs, self.norm).max())
        allowed = self.epsilon * (1 + _ROUNDING) + _ROUNDING * (high - low)
        if not far <= allowed or float(changed.min()) < low - _ROUNDING or float(changed.max()) > high + _ROUNDING:
            raise DataError(
                f"the attack moved an input by {far:g} in {self.norm}, to values from {float(changed.min()):g} to "
                f"{float(changed.max()):g}: expected at most {self.epsilon:g}, within {low:g} to {high:g}; give it the "
                "same epsilon, norm and bounds"
            )
        return changed.clamp(low, high)
