"""Sections of a neuron's range: which part of what it did in training a value falls into."""

import torch
from torch import Tensor


def section_numbers(values: Tensor, low: Tensor, high: Tensor, sections: int) -> Tensor:
    """The section of each value: 1 … k inside [low, high], 0 below, k + 1 above; int64, shape of the values.

    Section j covers [low + (j−1)·w, low + j·w) with w = (high − low)/k; the last one includes `high`. A range of one
    value has one section. `low` and `high` broadcast against the values (samples, neurons).

    >>> section_numbers(torch.tensor([[-1.0], [0.0], [0.5], [1.0], [2.0]]), torch.zeros(1), torch.ones(1), 2).tolist()
    [[0], [1], [2], [2], [3]]
    """
    span = high - low
    numbers = (values - low).mul_(torch.where(span > 0, sections / span, 1.0)).floor_().clamp_(-1, sections - 1)
    numbers.nan_to_num_(nan=-1.0)  # the frame refuses NaN a little later; until then it must not point outside
    return numbers.masked_fill_(values > high, sections).to(torch.int64).add_(1)
