"""Relevance by plain matrices and loops in float64, straight from the formulas of the papers."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

Array = np.ndarray
RuleReference = Callable[[Array, Array, Array, Array], Array]


def matrix(layer: nn.Module, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """W (outputs × inputs) and b of a layer on inputs of this shape, found by trying every unit vector."""
    size = int(np.prod(shape))
    with torch.no_grad():
        bias = layer(torch.zeros(1, *shape)).flatten()
        columns = layer(torch.eye(size).reshape(size, *shape)).flatten(1) - bias
    return columns.T.double().numpy(), bias.double().numpy()


def _z(total: Array, epsilon: float) -> Array:
    return total + epsilon * np.where(total >= 0, 1, -1)


def epsilon(eps: float = 1e-6) -> RuleReference:
    def rule(w: Array, b: Array, x: Array, r: Array) -> Array:
        out = np.zeros_like(x)
        for j in range(len(r)):
            out += x * w[j] * r[j] / _z((x * w[j]).sum() + b[j], eps)
        return out

    return rule


def redistributed(eps: float = 1e-16, *, evenly: bool = False) -> RuleReference:
    """LRP-ε whose bias and stabiliser shares go to the inputs: Σ_i is exactly R_j for every j."""

    def rule(w: Array, b: Array, x: Array, r: Array) -> Array:
        out = np.zeros_like(x)
        for j in range(len(r)):
            z = (x * w[j]).sum() + b[j]
            kept = _z(z, eps) - z + b[j]
            connected = (w[j] != 0).astype(float)
            strength = connected if evenly or not (x * w[j]).any() else np.abs(x * w[j])
            out += (x * w[j] + kept * strength / strength.sum()) * r[j] / _z(z, eps)
        return out

    return rule


def alpha_beta(alpha: float, beta: float, eps: float = 1e-6) -> RuleReference:
    def rule(w: Array, b: Array, x: Array, r: Array) -> Array:
        out = np.zeros_like(x)
        for j in range(len(r)):
            up, down = np.maximum(x * w[j], 0), np.minimum(x * w[j], 0)
            out += alpha * up * r[j] / _z(up.sum() + max(b[j], 0), eps)
            if beta:
                # a sum of nothing but zeros counts as positive
                out -= beta * down * r[j] / _z(down.sum() + min(b[j], 0), eps)
        return out

    return rule


def gamma(g: float, eps: float = 1e-6) -> RuleReference:
    def rule(w: Array, b: Array, x: Array, r: Array) -> Array:
        out = np.zeros_like(x)
        for j in range(len(r)):
            terms = x * w[j]
            favoured = np.maximum if terms.sum() + b[j] > 0 else np.minimum
            terms = terms + g * favoured(terms, 0)
            out += terms * r[j] / _z(terms.sum() + b[j] + g * favoured(b[j], 0), eps)
        return out

    return rule


def flat(w: Array, b: Array, x: Array, r: Array) -> Array:
    connected = (w != 0).astype(float)
    return connected.T @ (r / connected.sum(1))


def w_square(w: Array, b: Array, x: Array, r: Array) -> Array:
    return (w**2).T @ (r / ((w**2).sum(1) + 1e-6))


def z_box(low: float, high: float) -> RuleReference:
    def rule(w: Array, b: Array, x: Array, r: Array) -> Array:
        terms = x * w - low * np.maximum(w, 0) - high * np.minimum(w, 0)
        return terms.T @ (r / _z(terms.sum(1), 1e-6))

    return rule


def propagate(
    layers: list[nn.Module], x: Tensor, rule: RuleReference, first: RuleReference | None = None
) -> list[Array]:
    """Relevance of the input of every layer of a chain with ReLU between layers, for the winning output."""
    matrices, inputs = [], []
    a = x.double().numpy()
    for position, layer in enumerate(layers):
        w, b = matrix(layer, a.shape)
        matrices.append((w, b))
        inputs.append(a)
        with torch.no_grad():
            shape = layer(torch.zeros(1, *a.shape)).shape[1:]
        z = (w @ a.ravel() + b).reshape(shape)
        a = np.maximum(z, 0) if position < len(layers) - 1 else z
    r = np.where(np.arange(a.size) == a.argmax(), a.ravel(), 0)
    found = []
    for position in reversed(range(len(layers))):
        w, b = matrices[position]
        chosen = first if first is not None and position == 0 else rule
        r = chosen(w, b, inputs[position].ravel(), r.ravel())
        found.append(r.reshape(inputs[position].shape))
    return found[::-1]
