"""The highest values of every layer, in one launch for all layers."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from weakspot.kernels import starts_of

_SAMPLES, _NEURONS = 8, 64
"""What one program takes at once."""


@triton.jit
def _leading(
    values, leads, starts, samples, neurons, top, samples_at_once: tl.constexpr, neurons_at_once: tl.constexpr
):
    sample = tl.program_id(0).to(tl.int64) * samples_at_once + tl.arange(0, samples_at_once)
    begin, end = tl.load(starts + tl.program_id(1)), tl.load(starts + tl.program_id(1) + 1)
    # the leader found last, and its place: the next one is lower, or equal and further on
    last = tl.full((samples_at_once,), float("inf"), tl.float32)
    last_at = tl.full((samples_at_once,), -1, tl.int32)
    for _ in range(top):
        best = tl.full((samples_at_once,), float("-inf"), tl.float32)
        at = tl.zeros((samples_at_once,), tl.int32) + end
        for first in range(begin, end, neurons_at_once):
            neuron = first + tl.arange(0, neurons_at_once)[None, :]
            inside = (sample < samples)[:, None] & (neuron < end)
            value = tl.load(values + sample[:, None] * neurons + neuron, mask=inside, other=0.0)
            left = inside & ((value < last[:, None]) | ((value == last[:, None]) & (neuron > last_at[:, None])))
            highest = tl.max(tl.where(left, value, float("-inf")), 1)
            nearest = tl.min(tl.where(left & (value == highest[:, None]), neuron, end), 1)
            better = (highest > best) | ((at == end) & (nearest < end))
            best, at = tl.where(better, highest, best), tl.where(better, nearest, at)
        last, last_at = best, at
    for first in range(begin, end, neurons_at_once):
        neuron = first + tl.arange(0, neurons_at_once)[None, :]
        inside = (sample < samples)[:, None] & (neuron < end)
        where = sample[:, None] * neurons + neuron
        value = tl.load(values + where, mask=inside, other=0.0)
        lead = (value > last[:, None]) | ((value == last[:, None]) & (neuron <= last_at[:, None]))
        tl.store(leads + where, lead.to(tl.int8), mask=inside)


def leading_of_layers(values: Tensor, widths: tuple[int, ...], top: int) -> Tensor:
    """Which neurons are among the `top` highest of their layer, the first of equals: boolean, (samples, neurons).

    A layer of `top` neurons or fewer leads as a whole.
    """
    samples, neurons = values.shape
    leads = torch.empty((samples, neurons), dtype=torch.int8, device=values.device)
    with torch.cuda.device_of(values):
        _leading[(triton.cdiv(samples, _SAMPLES), len(widths))](
            values.contiguous(),
            leads,
            starts_of(widths, values.device),
            samples,
            neurons,
            min(top, max(widths)),
            samples_at_once=_SAMPLES,
            neurons_at_once=_NEURONS,
            num_warps=1,
        )
    return leads.view(torch.bool)
