"""Fast adaptive boundary attack: the nearest point of another class, by steps to the linearised border."""

import torch
from torch import Tensor

from weakspot.attacks.balls import Norm, per_sample, size
from weakspot.attacks.losses import input_gradient
from weakspot.core.look import Forward

_OVERSHOOT, _BACK, _TOWARD_INPUT = 1.05, 0.9, 0.1
_SMALL = 1e-12


def fab(
    forward: Forward, inputs: Tensor, classes: Tensor, targets: Tensor, *, epsilon: float, norm: Norm, iterations: int
) -> Tensor:  # fmt: skip
    """Targeted FAB [crocefab2020]: leads from class y toward t along the border of both, as near as possible.

    Each step goes to the border of y and t, linearised, from here and from the input, mixed so that the input pulls
    more the farther the point is; beyond the border it turns back toward the input. A sample leaves once a point of
    another class lies within ε; one without such a point stays as it is. inputs from 0 to 1.
    """
    made, points = inputs.clone(), inputs.clone()
    rows = torch.arange(len(inputs), device=inputs.device)
    gap, gradient, _ = _border(forward, points, classes, targets)
    for _ in range(iterations):
        there = inputs[rows]
        points = _step(points, there, gap, gradient, norm)
        gap, gradient, logits = _border(forward, points, classes[rows], targets[rows])
        other = logits.argmax(1) != classes[rows]
        if not other.any():
            continue
        reached = other & (size(points - there, norm) <= epsilon)
        made[rows[reached]] = points[reached]
        back = (other & ~reached).nonzero()[:, 0]
        if len(back):
            points[back] = there[back] + (points[back] - there[back]) * _BACK
            gap[back], gradient[back], _ = _border(forward, points[back], classes[rows[back]], targets[rows[back]])
        going = ~reached
        rows, points, gap, gradient = rows[going], points[going], gap[going], gradient[going]
        if not len(rows):
            break
    return made


def _border(forward: Forward, points: Tensor, classes: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """z_t − z_y at these points, its gradient, and the logits."""
    with torch.enable_grad():
        leaf = points.detach().requires_grad_()
        logits = forward(leaf)
        own, other = (logits.gather(1, chosen[:, None])[:, 0] for chosen in (classes, targets))
        gap = other - own
        gradient = input_gradient(gap.sum(), leaf)
    return gap.detach(), gradient, logits.detach()


def _step(points: Tensor, inputs: Tensor, gap: Tensor, gradient: Tensor, norm: Norm) -> Tensor:
    slopes = gradient.flatten(1)
    missing = -gap  # of z_t − z_y, until both are equal
    from_input = missing - (slopes * (inputs - points).flatten(1)).sum(1)
    both = to_hyperplane(
        torch.cat([points, inputs]).flatten(1), slopes.repeat(2, 1), torch.cat([missing, from_input]), norm
    ).view(2, *points.shape)
    here, there = (size(change, norm).clamp(min=1e-8) for change in both)
    pull = per_sample((here / (here + there)).clamp(max=_TOWARD_INPUT), points)
    moved = (points + _OVERSHOOT * both[0]) * (1 - pull) + (inputs + _OVERSHOOT * both[1]) * pull
    return moved.clamp_(0, 1)


def to_hyperplane(points: Tensor, slopes: Tensor, rise: Tensor, norm: Norm) -> Tensor:
    """The smallest change d with slopes · d = rise for which points + d stays within 0 to 1; (samples, values).

    Each value moves the way that helps, as far as its bound allows: |d_i| = min(λ, room_i) for L∞, min(λ |w_i|, room_i)
    for L2. So the rise is Σ a_i min(λ, r_i), which grows with λ in straight pieces, ever flatter. Newton's steps from
    λ = 0 never pass the λ that is sought, and end on its piece after few steps, without sorting the r_i. Where the
    bounds do not allow the rise, every value goes as far as it can.
    """
    way = slopes * rise.sign()[:, None]
    room = torch.where(way > 0, 1 - points, points)
    strength = way.abs()
    weights, reach = (strength, room) if norm == "linf" else (strength.square(), room / strength.clamp(min=_SMALL))
    wanted, most = rise.abs(), weights * reach
    held = reach <= 0
    count = held.sum(1)
    while True:
        free = weights.masked_fill(held, 0).sum(1)
        left = wanted - most.masked_fill(~held, 0).sum(1)
        along = torch.where(free > 0, left / free.clamp(min=_SMALL), torch.inf)[:, None]
        held = reach <= along
        before, count = count, held.sum(1)
        if torch.equal(before, count):
            break
    moved = torch.minimum(along, reach)
    return way.sign() * (moved if norm == "linf" else torch.minimum(moved * strength, room))
