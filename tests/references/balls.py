"""Attacks within balls one sample at a time, straight from the papers; given the random start. Values from 0 to 1."""

import numpy as np
import torch
from scipy.optimize import linprog, minimize


def project(point, centre, epsilon, norm):
    change = point - centre
    if norm == "linf":
        change = change.clamp(-epsilon, epsilon)
    elif change.norm() > epsilon:
        change = change / change.norm() * epsilon
    return (centre + change).clamp(0, 1)


def direction(gradient, norm):
    return gradient.sign() if norm == "linf" else gradient / (gradient.norm() + 1e-12)


def loss_and_gradient(net, point, label, loss):
    leaf = point.clone().requires_grad_()
    logits = net(leaf[None])
    value = loss(logits, torch.tensor([label]))[0]
    (gradient,) = torch.autograd.grad(value, leaf)
    return float(value.detach()), gradient, int(logits.argmax())


def pgd(net, x, start, label, epsilon, norm, step, iterations, loss):
    point = start
    for _ in range(iterations):
        _, gradient, predicted = loss_and_gradient(net, point, label, loss)
        if predicted != label:
            break
        point = project(point + step * direction(gradient, norm), x, epsilon, norm)
    return point


def auto_pgd(net, x, start, label, epsilon, norm, iterations, loss):
    """Algorithm 1 of Croce and Hein 2020, with the whole history kept; ends where the class has turned."""
    points, values, gradients = [start], [], []
    value, gradient, predicted = loss_and_gradient(net, start, label, loss)
    values.append(value), gradients.append(gradient)
    step, halvings, checks, last_best = 2 * epsilon, [], [0], value
    gap = max(int(0.22 * iterations), 1)
    current, before = 0, 0  # places in the history: a halving goes back to the best
    rises, halved_before = 0, True
    for _ in range(iterations):
        if predicted != label:
            break
        here, old = points[current], points[before]
        ahead = project(here + step * direction(gradients[current], norm), x, epsilon, norm)
        share = 1.0 if len(points) == 1 else 0.75
        moved = project(here + share * (ahead - here) + (1 - share) * (here - old), x, epsilon, norm)
        value, gradient, predicted = loss_and_gradient(net, moved, label, loss)
        rises += value > values[-1]
        before = current
        points.append(moved), values.append(value), gradients.append(gradient)
        current = len(points) - 1
        if len(points) - 1 - checks[-1] == gap and len(points) - 1 < iterations and predicted == label:
            best = int(np.argmax(values))
            stuck = not halved_before and last_best >= values[best]
            halved_before = rises <= 0.75 * gap or stuck
            last_best, rises = values[best], 0
            if halved_before:
                step /= 2
                halvings.append(len(points) - 1)
                current = best
            checks.append(len(points) - 1)
            gap = max(gap - max(int(0.03 * iterations), 1), int(0.06 * iterations), 1)
    return points[-1], halvings


def nearest_on_plane(point, slopes, rise, norm):
    """The smallest change with slopes · change = rise within 0 to 1, by a general solver."""
    bounds = [(-value, 1 - value) for value in point]
    if norm == "linf":
        size = len(point)
        cost = [0.0] * size + [1.0]
        above = np.block([[np.eye(size), -np.ones((size, 1))], [-np.eye(size), -np.ones((size, 1))]])
        found = linprog(
            cost, A_ub=above, b_ub=np.zeros(2 * size), A_eq=[[*slopes, 0.0]], b_eq=[rise],
            bounds=[*bounds, (0, None)],
        )  # fmt: skip
        return found.x[-1] if found.success else None
    found = minimize(
        lambda d: d @ d, np.zeros(len(point)), jac=lambda d: 2 * d, bounds=bounds, method="SLSQP",
        constraints={"type": "eq", "fun": lambda d: slopes @ d - rise, "jac": lambda d: slopes},
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    return np.sqrt(found.fun) if found.success else None
