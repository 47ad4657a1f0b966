"""Balls around the inputs: norms, projections and random starts. Inputs and ε in units where values go from 0 to 1."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from weakspot.core.stateless_random import further_keys, standard_normal, uniform, unit_pairs

Norm = Literal["linf", "l2"]
_SMALL = 1e-12


def per_sample(numbers: Tensor, like: Tensor) -> Tensor:
    """One number per sample, ready to broadcast; shape (samples, 1, …)."""
    return numbers.view(-1, *[1] * (like.ndim - 1))


def size(change: Tensor, norm: Norm) -> Tensor:
    """The norm of each sample's change, shape (samples,).

    >>> size(torch.tensor([[3.0, -4.0]]), "l2").item(), size(torch.tensor([[3.0, -4.0]]), "linf").item()
    (5.0, 4.0)
    """
    flat = change.flatten(1)
    return flat.abs().amax(1) if norm == "linf" else flat.square().sum(1).sqrt()


def unit(change: Tensor, norm: Norm) -> Tensor:
    """The change divided by its norm."""
    return change / (per_sample(size(change, norm), change) + _SMALL)


def uphill(gradient: Tensor, norm: Norm) -> Tensor:
    """The step of size 1 that climbs most: the sign, or the direction of the gradient."""
    return gradient.sign() if norm == "linf" else unit(gradient, norm)


def inside(points: Tensor, centres: Tensor, epsilon: float, norm: Norm) -> Tensor:
    """The points pulled into the ball of radius ε about each centre, and then into 0 to 1."""
    change = points - centres
    if norm == "linf":
        change = change.clamp(-epsilon, epsilon)
    else:
        change = change * (epsilon / size(change, norm).clamp(min=epsilon)).view(-1, *[1] * (change.ndim - 1))
    return (centres + change).clamp_(0, 1)


def start_on(centres: Tensor, keys: np.ndarray, epsilon: float, norm: Norm) -> Tensor:
    """A random point at distance ε: a box of random numbers, or a random direction, stretched to the border."""
    return (centres + epsilon * unit(_drawn(centres, keys, norm), norm)).clamp_(0, 1)


def start_within(centres: Tensor, keys: np.ndarray, epsilon: float, norm: Norm) -> Tensor:
    """A random point, uniform in the ball."""
    drawn = _drawn(centres, keys, norm)
    if norm == "linf":
        return (centres + epsilon * drawn).clamp_(0, 1)
    radius = uniform(further_keys(keys, 1), 1)[:, 0] ** (1 / centres[0].numel())
    away = per_sample(torch.from_numpy(radius).to(centres), centres)
    return (centres + epsilon * away * unit(drawn, norm)).clamp_(0, 1)


def _drawn(like: Tensor, keys: np.ndarray, norm: Norm) -> Tensor:
    count = like[0].numel()
    if norm == "linf":
        return unit_pairs(keys, count, like.device)[0].view(like.shape).to(like.dtype).mul_(2).sub_(1)
    return standard_normal(keys, count, like.device).view(like.shape).to(like.dtype)
