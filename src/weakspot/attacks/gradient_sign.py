"""FGSM and BIM: one step, or many small steps, along the sign of the gradient."""

import torch
from torch import Tensor

from weakspot.attacks.losses import Loss, cross_entropy, slope
from weakspot.core.look import Forward


def fgsm(
    forward: Forward,
    inputs: Tensor,
    answers: Tensor,
    *,
    epsilon: float,
    bounds: tuple[float, float],
    loss: Loss = cross_entropy,
    targeted: bool = False,
) -> Tensor:
    """Fast gradient sign method [goodfellow2015]: x′ = clip(x + ε sign ∂loss(f(x), y)/∂x).

    inputs: shape (samples, …).
    answers: the targets, which x′ leads away from; if `targeted`, those that it leads to, with −ε.
    epsilon: in the units of the inputs.
    bounds: the smallest and largest value of an input.
    """
    uphill = slope(forward, inputs, answers, loss)[0].sign_()
    return inputs.add(uphill, alpha=-epsilon if targeted else epsilon).clamp_(*bounds)


def bim(
    forward: Forward,
    inputs: Tensor,
    answers: Tensor,
    *,
    epsilon: float,
    step: float,
    iterations: int,
    bounds: tuple[float, float],
    loss: Loss = cross_entropy,
    targeted: bool = False,
    stop_early: bool = False,
) -> Tensor:
    """Basic iterative method [kurakin2017]: x_{k+1} = clip(x_k + α sign ∂loss(f(x_k), y)/∂x), never further than ε.

    As `fgsm`; every pixel stays within ε of the original and within the bounds.

    step: α.
    iterations: how many steps.
    stop_early: leave a sample as it is once its class has changed, which is nearer and cheaper; the paper continues.
    """
    low, high = (inputs - epsilon).clamp_(min=bounds[0]), (inputs + epsilon).clamp_(max=bounds[1])
    changed = inputs.clone()
    rows = torch.arange(len(inputs), device=inputs.device) if stop_early else slice(None)  # a slice copies nothing
    for _ in range(iterations):
        uphill, outputs = slope(forward, changed[rows], answers[rows], loss)
        if isinstance(rows, Tensor):
            going = (outputs.argmax(1) == answers[rows]) != targeted
            rows, uphill = rows[going], uphill[going]
        stepped = changed[rows].add(uphill.sign_(), alpha=-step if targeted else step)
        changed[rows] = stepped.clamp_(low[rows], high[rows])
    return changed
