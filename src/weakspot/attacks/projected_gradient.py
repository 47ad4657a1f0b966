"""Projected gradient descent with random restarts, and Auto-PGD, which sets its own step."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from weakspot.attacks.balls import Norm, inside, per_sample, start_on, start_within, uphill
from weakspot.attacks.losses import Loss, slope
from weakspot.core.look import Forward

_MOMENTUM = 0.75
_RISES = 0.75
"""The step is halved where the loss rose in fewer than this share of the steps since the last check."""
_FIRST, _LESS, _LEAST = 0.22, 0.03, 0.06
"""Shares of the iterations: until the first check, by how much less until each further one, and at least."""


def pgd(
    forward: Forward, inputs: Tensor, classes: Tensor, keys: np.ndarray, *, epsilon: float, norm: Norm, step: float,
    iterations: int, loss: Loss,
) -> Tensor:  # fmt: skip
    """Projected gradient descent [madry2018] from one random start: x ← P(x + step · direction of ∂loss/∂x).

    A sample that is predicted incorrectly stays where it is. inputs from 0 to 1; keys: a word per sample.
    """
    made = start_within(inputs, keys, epsilon, norm)
    rows = torch.arange(len(inputs), device=inputs.device)
    for _ in range(iterations):
        gradient, logits = slope(forward, made[rows], classes[rows], loss)
        going = logits.argmax(1) == classes[rows]
        rows, gradient = rows[going], gradient[going]
        if not len(rows):
            break
        made[rows] = inside(made[rows] + step * uphill(gradient, norm), inputs[rows], epsilon, norm)
    return made


class AutoStep:
    """The state of Auto-PGD at the samples that are still predicted correctly."""

    def __init__(self, inputs: Tensor, start: Tensor, gradient: Tensor, losses: Tensor, epsilon: float):
        self.inputs, self.points, self.before, self.gradient = inputs, start, start, gradient
        self.best, self.best_gradient, self.best_loss = start, gradient, losses
        self.losses, self.rises = losses, torch.zeros_like(losses)
        self.step = torch.full_like(losses, 2 * epsilon)
        self.checked_loss, self.halved = losses, torch.ones_like(losses, dtype=torch.bool)

    def keep(self, rows: Tensor) -> None:
        """Forget all other samples."""
        for name, value in vars(self).items():
            setattr(self, name, value[rows])

    def move(self, epsilon: float, norm: Norm, *, first: bool) -> None:
        """x ← P(x + a (P(x + step · direction) − x) + (1 − a) (x − x before)), with a = 0.75, and 1 at first."""
        here, share = self.points, 1.0 if first else _MOMENTUM
        ahead = inside(here + per_sample(self.step, here) * uphill(self.gradient, norm), self.inputs, epsilon, norm)
        moved = here + (ahead - here) * share + (here - self.before) * (1 - share)
        self.points, self.before = inside(moved, self.inputs, epsilon, norm), here

    def note(self, gradient: Tensor, losses: Tensor) -> None:
        """Take over gradient and losses at the new points; remember the best."""
        self.rises = self.rises + (losses > self.losses)
        better = losses > self.best_loss
        where = per_sample(better, gradient)
        self.best = torch.where(where, self.points, self.best)
        self.best_gradient = torch.where(where, gradient, self.best_gradient)
        self.best_loss = torch.where(better, losses, self.best_loss)
        self.gradient, self.losses = gradient, losses

    def check(self, steps: int) -> None:
        """Halve the step and go back to the best point where the loss hardly rose, or did not since the last check."""
        stuck = ~self.halved & (self.checked_loss >= self.best_loss)
        self.halved = (self.rises <= _RISES * steps) | stuck
        self.checked_loss, self.rises = self.best_loss, torch.zeros_like(self.rises)
        self.step = torch.where(self.halved, self.step / 2, self.step)
        back = per_sample(self.halved, self.points)
        self.points = torch.where(back, self.best, self.points)
        self.gradient = torch.where(back, self.best_gradient, self.gradient)


def auto_pgd(
    forward: Forward, inputs: Tensor, classes: Tensor, keys: np.ndarray, *, epsilon: float, norm: Norm,
    iterations: int, loss_of_rows: Callable[[Tensor], Loss],
) -> Tensor:  # fmt: skip
    """Auto-PGD [croce2020] from one random start: momentum, and a step that is halved where the loss stops rising.

    A sample leaves as soon as it is predicted incorrectly. loss_of_rows: the loss of some of the samples, given by
    their numbers. inputs from 0 to 1; keys: a word per sample.
    """
    made = start_on(inputs, keys, epsilon, norm)
    rows = torch.arange(len(inputs), device=inputs.device)
    gradient, logits, losses = _climbed(forward, made, classes, loss_of_rows(rows))
    state = AutoStep(inputs, made, gradient, losses, epsilon)
    made = made.clone()
    steps, since = max(int(_FIRST * iterations), 1), 0
    for number in range(iterations + 1):
        made[rows] = state.points
        going = (logits.argmax(1) == classes[rows]).nonzero()[:, 0]
        if len(going) < len(rows):
            rows = rows[going]
            state.keep(going)
        if not len(rows) or number == iterations:
            break
        if since == steps:
            state.check(steps)
            steps, since = max(steps - max(int(_LESS * iterations), 1), int(_LEAST * iterations), 1), 0
        state.move(epsilon, norm, first=number == 0)
        gradient, logits, losses = _climbed(forward, state.points, classes[rows], loss_of_rows(rows))
        state.note(gradient, losses)
        since += 1
    return made


def _climbed(forward: Forward, points: Tensor, classes: Tensor, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
    """Gradient, logits and losses at these points."""
    kept: list[Tensor] = []

    def noted(logits: Tensor, answers: Tensor) -> Tensor:
        losses = loss(logits, answers)
        kept.append(losses.detach())
        return losses

    gradient, logits = slope(forward, points, classes, noted)
    return gradient, logits, kept[0]
