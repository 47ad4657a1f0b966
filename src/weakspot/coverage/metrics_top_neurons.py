"""Which neurons lead their layer, and the patterns that they make (DeepGauge, Ma et al. 2018)."""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import shake_128
from math import comb, prod

import numpy as np
import torch
from torch import Tensor

from weakspot import kernels
from weakspot.core.errors import DataError


def leading_neurons(values: Tensor, widths: Sequence[int], top: int) -> Tensor:
    """Which neurons are among the `top` highest of their layer, boolean, shape of the values (samples, neurons).

    Of equal values the neuron with the lower number leads, so that exactly min(top, width) neurons of a layer do.

    >>> leading_neurons(torch.tensor([[1.0, 3.0, 3.0, 3.0, 5.0, 0.0]]), [4, 2], 2).int().tolist()
    [[0, 1, 1, 0, 1, 1]]
    """
    if bool(values.isnan().any()):
        raise DataError("a value is NaN, which has no place in an order: find out why the layer gives it")
    return leading(values, widths, top)


def leading(values: Tensor, widths: Sequence[int], top: int) -> Tensor:
    """`leading_neurons` of values that are numbers for certain."""
    if kernels.usable(values):
        from weakspot.kernels.leading import leading_of_layers

        return leading_of_layers(values, tuple(widths), top)
    leads = torch.empty_like(values, dtype=torch.bool)
    for width, columns in _alike(tuple(widths), values.device).items():
        layer_values = values.index_select(1, columns).unflatten(1, (-1, width))
        leads.index_copy_(1, columns, _leading(layer_values, min(top, width)).flatten(1))
    return leads


@lru_cache(8)
def _alike(widths: tuple[int, ...], device: torch.device) -> dict[int, Tensor]:
    """The neurons of all layers of the same width, by width: such layers are compared in one go."""
    layers = torch.arange(sum(widths), device=device).split(widths)
    return {width: torch.cat([layer for layer in layers if len(layer) == width]) for width in sorted(set(widths))}


def _leading(values: Tensor, top: int) -> Tensor:
    """Which are the `top` highest of the last dimension, the first of equals."""
    least = values.topk(top, dim=-1).values[..., -1:]
    if values.is_cpu:  # a GPU would have to wait for the question whether there are equals
        leads = values >= least
        if int(leads.sum()) == top * values[..., 0].numel():
            return leads
    above, tied = values > least, values == least
    return above | (tied & (tied.cumsum(-1) <= top - above.sum(-1, keepdim=True)))


def possible_patterns(widths: Sequence[int], top: int) -> int:
    """The number of patterns there can be: Π C(width, k) over the layers.

    >>> possible_patterns([4, 2], 3)
    4
    """
    return prod(comb(width, min(top, width)) for width in widths)


def pattern_words(leads: Tensor) -> Tensor:
    """A hash of 128 bits of each row's pattern, the same on every machine; int64, shape (samples, 2).

    Each neuron has two random words, and a pattern the sums of its neurons' words, modulo 2⁶⁴: two different patterns
    have the same with chance 2⁻¹²⁸ (Zobrist 1970).
    """
    sums = [torch.where(leads, word, 0).sum(1) for word in _neuron_words(leads.shape[1], leads.device)]
    return torch.stack(sums, 1)


@lru_cache(8)
def _neuron_words(neurons: int, device: torch.device) -> Tensor:
    drawn = np.frombuffer(shake_128(b"weakspot").digest(16 * neurons), dtype="<i8")
    return torch.tensor(drawn.reshape(2, neurons).astype(np.int64), device=device)


def inputs_per_pattern(words: np.ndarray) -> np.ndarray:
    """How many inputs share each distinct pattern, the most frequent first; words as `pattern_words` gives them."""
    whole = np.ascontiguousarray(words).view(np.dtype((np.void, 16))).ravel()
    return np.sort(np.unique(whole, return_counts=True)[1])[::-1]
