"""Mean, smallest and largest value of each channel in one reading of a layer: reading is all that takes time."""

from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from weakspot.kernels import starts_of

_ONE_BY_ONE = 512, 1
"""Values a program holds, and its warps, where the positions of a channel lie one after the other."""
_INTERLEAVED = 4096, 2
"""The same where the channels of a position do."""
_SIDE_BY_SIDE = 64
"""Neighbouring channels or neurons that a program takes at once."""
_SAMPLES = 8


@triton.jit
def _by_channel(
    values,
    means,
    lows,
    highs,
    rows,
    channels,
    positions,
    per_sample,
    per_channel,
    per_position,
    rows_at_once: tl.constexpr,
    positions_at_once: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * rows_at_once + tl.arange(0, rows_at_once)
    start = values + row // channels * per_sample + row % channels * per_channel
    total = tl.zeros((rows_at_once, positions_at_once), tl.float32)
    low = tl.full((rows_at_once, positions_at_once), float("inf"), tl.float32)
    high = tl.full((rows_at_once, positions_at_once), float("-inf"), tl.float32)
    for first in range(0, positions, positions_at_once):
        position = first + tl.arange(0, positions_at_once)
        inside = (row < rows)[:, None] & (position < positions)[None, :]
        value = tl.load(start[:, None] + position[None, :] * per_position, mask=inside, other=0.0).to(tl.float32)
        total += value
        low = tl.minimum(low, tl.where(inside, value, float("inf")))
        high = tl.maximum(high, tl.where(inside, value, float("-inf")))
    tl.store(means + row, tl.sum(total, 1) / positions, mask=row < rows)
    tl.store(lows + row, tl.min(low, 1), mask=row < rows)
    tl.store(highs + row, tl.max(high, 1), mask=row < rows)


@triton.jit
def _by_layer(
    lows,
    highs,
    low,
    high,
    starts,
    samples,
    neurons,
    layers,
    samples_at_once: tl.constexpr,
    neurons_at_once: tl.constexpr,
):
    sample = tl.program_id(0).to(tl.int64) * samples_at_once + tl.arange(0, samples_at_once)
    layer = tl.program_id(1)
    end = tl.load(starts + layer + 1)
    least = tl.full((samples_at_once, neurons_at_once), float("inf"), tl.float32)
    most = tl.full((samples_at_once, neurons_at_once), float("-inf"), tl.float32)
    for first in range(tl.load(starts + layer), end, neurons_at_once):
        neuron = first + tl.arange(0, neurons_at_once)
        inside = (sample < samples)[:, None] & (neuron < end)[None, :]
        where = sample[:, None] * neurons + neuron[None, :]
        least = tl.minimum(least, tl.load(lows + where, mask=inside, other=float("inf")))
        most = tl.maximum(most, tl.load(highs + where, mask=inside, other=float("-inf")))
    tl.store(low + sample * layers + layer, tl.min(least, 1), mask=sample < samples)
    tl.store(high + sample * layers + layer, tl.max(most, 1), mask=sample < samples)


def by_channel(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, smallest and largest value over the positions: values (samples, channels, positions), float32 each.

    The order of summation depends on the number of positions alone, never on the batch.
    """
    samples, channels, positions = values.shape
    rows, columns, warps = _tile(channels, positions, values.stride(1) < values.stride(2))
    means, lows, highs = values.new_empty((3, samples, channels), dtype=torch.float32).unbind()
    with torch.cuda.device_of(values):
        _by_channel[(triton.cdiv(samples * channels, rows),)](
            values,
            means,
            lows,
            highs,
            samples * channels,
            channels,
            positions,
            *values.stride(),
            rows_at_once=rows,
            positions_at_once=columns,
            num_warps=warps,
        )
    return means, lows, highs


@lru_cache(256)
def _tile(channels: int, positions: int, interleaved: bool) -> tuple[int, int, int]:
    """Rows (channels of samples), positions and warps of one program: neighbours in memory are read together."""
    channels, positions = triton.next_power_of_2(channels), triton.next_power_of_2(positions)
    if interleaved:
        size, warps = _INTERLEAVED
        rows = min(channels, _SIDE_BY_SIDE)
        return rows, min(positions, size // rows), warps
    size, warps = _ONE_BY_ONE
    return size // min(positions, size), min(positions, size), warps


def by_layer(lows: Tensor, highs: Tensor, widths: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Smallest low and largest high of each layer: (samples, neurons), layers side by side, to (samples, layers)."""
    samples, neurons = lows.shape
    low, high = lows.new_empty((2, samples, len(widths))).unbind()
    with torch.cuda.device_of(lows):
        _by_layer[(triton.cdiv(samples, _SAMPLES), len(widths))](
            lows,
            highs,
            low,
            high,
            starts_of(widths, lows.device),
            samples,
            neurons,
            len(widths),
            samples_at_once=_SAMPLES,
            neurons_at_once=_SIDE_BY_SIDE,
            num_warps=1,
        )
    return low, high
