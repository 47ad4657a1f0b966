"""Carlini and Wagner's L2 attack: the smallest change to another class, by gradient descent and a search over c."""

from dataclasses import dataclass

import torch
from torch import Tensor

from weakspot.attacks.losses import input_gradient
from weakspot.core.look import Forward

_SMOOTH = 0.999999
"""Keeps arctanh finite at the bounds."""
_DECAY, _SQUARE_DECAY, _STABILISER = 0.9, 0.999, 1e-8
"""Of Adam."""
_CHECKS, _LOWER = 10, 0.9999
"""How often a descent is asked whether it still falls, and what counts as falling."""


def carlini_wagner(
    forward: Forward,
    inputs: Tensor,
    classes: Tensor,
    *,
    bounds: tuple[float, float],
    targeted: bool = False,
    confidence: float = 0.0,
    search_steps: int = 9,
    iterations: int = 100,
    learning_rate: float = 0.05,
    initial_constant: float = 0.1,
    restart: bool = True,
    abort_early: bool = True,
) -> Tensor:
    """The L2 attack [carlini2017]: min_w ‖x′ − x‖² + c · max(g(x′), −κ) with x′ = tanh w, scaled to the bounds.

    g = Z_y − max_{i≠y} Z_i for the class y to leave, or (`targeted`) max_{i≠t} Z_i − Z_t for the class t to reach; κ is
    `confidence`. Adam goes `iterations` steps downhill for each of `search_steps` values of c, which grow tenfold until
    the prediction changes and are narrowed down by bisection after that. Of all x′ that change it the nearest is
    kept; a sample without one stays as it is.

    forward: gives logits Z.
    inputs: shape (samples, …).
    classes: shape (samples,).
    restart: each c begins at x, as in the paper, not where the last one ended, which does better with few iterations.
    abort_early: a sample whose objective no longer falls waits for the next c.
    """
    aim = Aim(forward, classes, targeted, confidence)
    with torch.no_grad():
        turned = aim.margin(forward(inputs))[1]
    state = Search.of(inputs, turned, bounds, initial_constant)
    rows = (~turned).nonzero()[:, 0]
    checked_every = max(1, iterations // _CHECKS) if abort_early else iterations
    for _ in range(search_steps if len(rows) else 0):
        if restart:
            state.w.copy_(state.start)
        succeeded = _descend(aim, state, rows, iterations, learning_rate, checked_every)
        state.choose_constants(rows, succeeded)
    return state.nearest


@dataclass(frozen=True)
class Aim:
    """What is to become of each sample: another class than `classes`, or (`targeted`) just that, by a margin."""

    forward: Forward
    classes: Tensor
    targeted: bool
    confidence: float

    def margin(self, logits: Tensor, rows: Tensor | slice = slice(None)) -> tuple[Tensor, Tensor]:
        """max(g, −κ) + κ, and whether the prediction has changed by that margin; a tie of two classes is no change."""
        classes = self.classes[rows][:, None]
        logit, other = logits.gather(1, classes), logits.scatter(1, classes, -torch.inf).max(1, keepdim=True).values
        short = (other - logit if self.targeted else logit - other)[:, 0]
        return (short + self.confidence).clamp_min(0), (short < 0) & (short <= -self.confidence)


@dataclass
class Search:
    """Where every sample stands: in tanh space, in the search over c, and the nearest success so far."""

    inputs: Tensor
    bounds: tuple[float, float]
    start: Tensor
    w: Tensor
    c: Tensor
    low: Tensor
    high: Tensor
    nearest: Tensor
    distance: Tensor

    @classmethod
    def of(cls, inputs: Tensor, turned: Tensor, bounds: tuple[float, float], constant: float) -> "Search":
        """The beginning: nothing is known of c, and the nearest success is the sample itself where it has turned."""
        unit = (inputs - bounds[0]) / (bounds[1] - bounds[0])
        start = torch.atanh((2 * unit - 1) * _SMOOTH)
        open_end = torch.full(turned.shape, torch.inf, dtype=inputs.dtype, device=inputs.device)
        zero = torch.zeros_like(open_end)
        distance = torch.where(turned, zero, open_end)
        c = torch.full_like(zero, constant)
        return cls(inputs, bounds, start, start.clone(), c, zero, open_end, inputs.clone(), distance)

    def image(self, w: Tensor) -> Tensor:
        """From tanh space to inputs within the bounds."""
        low, high = self.bounds
        return (low + (high - low) / 2 * (w.tanh() + 1)).clamp(low, high)

    def keep(self, rows: Tensor, images: Tensor, distance: Tensor, turned: Tensor) -> None:
        """Remember the successes that are nearer than any before."""
        better = turned & (distance < self.distance[rows])
        self.nearest[rows[better]] = images[better]
        self.distance[rows[better]] = distance[better]

    def choose_constants(self, rows: Tensor, succeeded: Tensor) -> None:
        """The next c: halfway between the largest that failed and the smallest that did not, or ten times as much."""
        self.high[rows] = torch.where(succeeded, self.c, self.high)[rows]
        self.low[rows] = torch.where(succeeded, self.low, self.c)[rows]
        self.c = torch.where(self.high.isfinite(), (self.low + self.high) / 2, self.c * 10)


def _descend(
    aim: Aim, state: Search, rows: Tensor, iterations: int, learning_rate: float, checked_every: int
) -> Tensor:
    """Adam from where the samples at `rows` stand, with their c; which of all samples succeeded, boolean."""
    succeeded = torch.zeros_like(state.c, dtype=torch.bool)
    w, first, second = state.w[rows], torch.zeros_like(state.w[rows]), torch.zeros_like(state.w[rows])
    before = torch.full_like(state.c[rows], torch.inf)
    for number in range(iterations + 1):
        with torch.enable_grad():
            leaf = w.requires_grad_()
            images = state.image(leaf)
            distance = (images - state.inputs[rows]).square().flatten(1).sum(1)
            margin, turned = aim.margin(aim.forward(images), rows)
            objective = distance + state.c[rows] * margin
        succeeded[rows] |= turned
        state.keep(rows, images.detach(), distance.detach(), turned)
        if number == iterations:
            break
        gradient = input_gradient(objective.sum(), leaf)
        w = _adam_step(w.detach(), gradient, first, second, number + 1, learning_rate)
        if (number + 1) % checked_every == 0 and number + 1 < iterations:
            objective = objective.detach()
            falls = objective <= before * _LOWER
            state.w[rows] = w
            rows, w, first, second, before = rows[falls], w[falls], first[falls], second[falls], objective[falls]
            if not len(rows):
                return succeeded
    state.w[rows] = w.detach()
    return succeeded


def _adam_step(w: Tensor, gradient: Tensor, first: Tensor, second: Tensor, number: int, learning_rate: float) -> Tensor:
    """One step of Adam [kingma2015], the moments kept in place; every number goes its own way, and so every sample."""
    first.lerp_(gradient, 1 - _DECAY)
    second.lerp_(gradient.square(), 1 - _SQUARE_DECAY)
    spread = (second / (1 - _SQUARE_DECAY**number)).sqrt_().add_(_STABILISER)
    return w - learning_rate / (1 - _DECAY**number) * first / spread
