"""The attacks straight from their papers: one sample at a time, one pixel pair after another."""

import math

import torch
from torch.nn import functional as F


def gradient_of(function, x):
    """Of a number that depends on x."""
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(leaf), leaf)
    return gradient


def fgsm(net, x, label, epsilon, low, high):
    """Goodfellow et al. 2015, Section 4."""
    gradient = gradient_of(lambda leaf: -F.log_softmax(net(leaf[None])[0], 0)[label], x)
    return torch.tensor([min(max(v + epsilon * sign(g), low), high) for v, g in pairs(x, gradient)]).view_as(x)


def bim(net, x, label, epsilon, step, iterations, low, high):
    """Kurakin et al. 2017, Section 2.2: Clip(X', X, ε) = min(max, X + ε, max(min, X − ε, X'))."""
    now = x
    for _ in range(iterations):
        gradient = gradient_of(lambda leaf: -F.log_softmax(net(leaf[None])[0], 0)[label], now)
        moved = [v + step * sign(g) for v, g in pairs(now, gradient)]
        kept = [
            min(high, o + epsilon, max(low, o - epsilon, v)) for o, v in zip(x.flatten().tolist(), moved, strict=True)
        ]
        now = torch.tensor(kept).view_as(x)
    return now


def jsma(net, x, target, theta, gamma, low, high):
    """Papernot et al. 2016, Algorithms 2 and 3, with the search over all pairs; theta > 0."""
    now, domain = x.clone(), {i for i, v in enumerate(x.flatten().tolist()) if v != high}
    for _ in range(math.floor(x.numel() * gamma / 2)):
        if int(net(now[None]).argmax()) == target:
            break
        jacobian = torch.stack(
            [gradient_of(lambda leaf, j=j: net(leaf[None])[0, j], now).flatten() for j in range(net(x[None]).shape[1])]
        )
        best, chosen = 0.0, None
        for p in domain:
            for q in domain:
                if p < q:
                    alpha = float(jacobian[target, p] + jacobian[target, q])
                    others = jacobian.sum(0) - jacobian[target]
                    beta = float(others[p] + others[q])
                    if alpha > 0 > beta and -alpha * beta > best:
                        best, chosen = -alpha * beta, (p, q)
        if chosen is None:
            break
        for pixel in chosen:
            now.view(-1)[pixel] = min(high, float(now.view(-1)[pixel]) + theta)
            if float(now.view(-1)[pixel]) == high:
                domain.discard(pixel)
    return now


def carlini_wagner(net, x, label, low, high, *, search_steps, iterations, learning_rate, initial_constant):
    """Carlini and Wagner 2017, Section VI-A, untargeted, κ = 0, with torch's own Adam and no early abort."""
    lower, upper, c = 0.0, math.inf, initial_constant
    nearest, distance = x, math.inf
    if int(net(x[None]).argmax()) != label:
        return x
    start = torch.atanh((2 * (x - low) / (high - low) - 1) * 0.999999)
    for _ in range(search_steps):
        w = start.clone().requires_grad_()
        adam = torch.optim.Adam([w], lr=learning_rate)
        succeeded = False
        for number in range(iterations + 1):
            image = low + (high - low) / 2 * (torch.tanh(w) + 1)
            logits = net(image[None])[0]
            others = torch.cat([logits[:label], logits[label + 1 :]]).max()
            far = ((image - x) ** 2).sum()
            if logits[label] < others:
                succeeded = True
                if far.item() < distance:
                    nearest, distance = image.detach(), far.item()
            if number < iterations:
                adam.zero_grad()
                (gradient,) = torch.autograd.grad(far + c * torch.relu(logits[label] - others), w)
                w.grad = gradient
                adam.step()
        if succeeded:
            upper = min(upper, c)
        else:
            lower = max(lower, c)
        c = c * 10 if math.isinf(upper) else (lower + upper) / 2
    return nearest


def pairs(x, gradient):
    return zip(x.flatten().tolist(), gradient.flatten().tolist(), strict=True)


def sign(value):
    return (value > 0) - (value < 0)
