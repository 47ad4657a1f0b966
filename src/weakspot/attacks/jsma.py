"""JSMA, the Jacobian-based saliency map attack: changes the two pixels that most favour another class, repeatedly."""

import math

import torch
from torch import Tensor

from weakspot.attacks.losses import input_gradient
from weakspot.core.look import Forward

_NEVER = -torch.inf


def jsma(
    forward: Forward,
    inputs: Tensor,
    classes: Tensor,
    *,
    theta: float,
    gamma: float,
    bounds: tuple[float, float],
    targeted: bool = True,
    others: bool = True,
) -> Tensor:
    """Jacobian-based saliency map attack [papernot2016], Algorithms 2 and 3.

    In each step the two pixels p, q that maximise −α β change by `theta`, where α = Σ_{i∈{p,q}} ∂Z_t/∂x_i > 0 and
    β = Σ_{i∈{p,q}} Σ_{j≠t} ∂Z_j/∂x_i < 0 for the wanted class t (for negative theta α < 0 < β). A sample is left
    alone once it is t, after ⌊features · gamma / 2⌋ steps, or when no pair is left; a pixel leaves the search when it
    reaches its bound. (The paper's search begins with all pixels; here those that start at their bound are left out,
    since they cannot change.) Not `targeted`: `classes` are those to leave, and both signs turn (NT-JSMA,
    [wiyatno2018]). Not `others`: β is taken for −α, as it is of outputs that sum to a constant; then the pair is that
    of the two largest ∂Z_t/∂x_i, and one backward pass is enough.

    forward: gives logits Z, which the paper uses, or, without `others`, logarithms of probabilities: their slopes are
        those of the probabilities but for one factor per sample, which chooses no other pair, and do not vanish.
    inputs: shape (samples, …), each number a pixel.
    classes: shape (samples,).
    """
    changed = inputs.flatten(1).clone()
    limit = bounds[1] if theta > 0 else bounds[0]
    free = changed != limit
    active = torch.arange(len(inputs), device=inputs.device)
    steps = math.floor(round(changed.shape[1] * gamma / 2, 9))  # 100 features · 0.58 / 2 are 29, not 28.999…
    sign = 1 if targeted == (theta > 0) else -1
    for number in range(steps + 1):
        with torch.enable_grad():
            leaf = changed[active].requires_grad_()
            outputs = forward(leaf.view(-1, *inputs.shape[1:]))
        wanted = (outputs.argmax(1) == classes[active]) != targeted
        if number == steps or not wanted.any():
            break
        left = free[active[wanted]]
        first, second, has_pair = _pairs(outputs, leaf, classes[active], wanted, left, sign=sign, others=others)
        active = active[wanted][has_pair]
        for pixel in (first[has_pair], second[has_pair]):
            values = (changed[active, pixel] + theta).clamp_(*bounds)
            changed[active, pixel] = values
            free[active, pixel] = values != limit
        if not len(active):
            break
    return changed.view_as(inputs)


def _pairs(
    outputs: Tensor, leaf: Tensor, classes: Tensor, rows: Tensor, free: Tensor, *, sign: int, others: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The best pair of the samples at `rows`, from α and β: at most two backward passes for any number of classes."""
    wanted = outputs.gather(1, classes[:, None]).sum()
    alpha = sign * input_gradient(wanted, leaf, again=others)[rows]
    if not others:
        return steepest_pairs(alpha, free)
    beta = sign * input_gradient(outputs.sum(), leaf)[rows] - alpha
    return best_pairs(alpha, -beta, free)


def steepest_pairs(slopes: Tensor, free: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As `best_pairs` where b = a: the two free pixels with the largest a, if their sum is positive."""
    largest, pixels = slopes.masked_fill(~free, _NEVER).topk(2, dim=1)
    return pixels[:, 0], pixels[:, 1], largest.sum(1) > 0


def best_pairs(slopes: Tensor, others: Tensor, free: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The pair p ≠ q of free pixels with the largest (a_p + a_q)(b_p + b_q), both sums positive.

    a = `slopes`, b = `others` and `free` are (samples, pixels); gives p, q and whether there is such a pair, each
    (samples,). The product grows with every a and b, so a pixel that two others match or beat in both is in no better
    pair than one of those: only the few that are beaten at most once are paired, and the answer is still that of the
    search over all pairs.
    """
    a, order = slopes.masked_fill(~free, _NEVER).sort(dim=1, descending=True, stable=True)
    b = others.masked_fill(~free, _NEVER).gather(1, order)
    kept = b > _second_largest_before(b)
    width = max(2, int(kept.sum(1).max()))
    places = kept.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :width]
    kept = kept.gather(1, places)
    a, b = a.gather(1, places).masked_fill(~kept, _NEVER), b.gather(1, places).masked_fill(~kept, _NEVER)
    sum_a, sum_b = a[:, :, None] + a[:, None], b[:, :, None] + b[:, None]
    allowed = ((sum_a > 0) & (sum_b > 0)).triu(diagonal=1)
    best, index = torch.where(allowed, sum_a * sum_b, _NEVER).flatten(1).max(1)
    pairs = torch.stack([index // width, index % width], 1)
    first, second = order.gather(1, places.gather(1, pairs)).unbind(1)
    return first, second, best > 0


def _second_largest_before(values: Tensor) -> Tensor:
    """At every place, the second largest of the values before it in its row; −∞ where there are not two."""
    nothing = torch.full_like(values[:, :1], _NEVER)
    largest = torch.cat([nothing, values.cummax(1).values[:, :-1]], 1)
    second = torch.minimum(values, largest).cummax(1).values
    return torch.cat([nothing, second[:, :-1]], 1)
