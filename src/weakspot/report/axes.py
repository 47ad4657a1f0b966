"""Axes: where a value is drawn, and which values are marked."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

Wording = Callable[[float], str]
"""How a value is put into words."""


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` drawn from `start` to `stop`, with marked values."""

    low: float
    high: float
    start: float
    stop: float
    ticks: tuple[float, ...]
    log: bool = False

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        low, high, at = (log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (self.stop - self.start) * ((at - low) / (high - low) if high > low else 0.5)


def linear_axis(values: np.ndarray, start: float, stop: float) -> Axis:
    """An axis that ends on round numbers around the values.

    >>> linear_axis(np.array([0.0, 0.17]), 0, 1).ticks
    (0.0, 0.05, 0.1, 0.15, 0.2)
    """
    low, high = float(values.min()), float(values.max())
    high = high if high > low else low + 1
    step = round_step(high - low)
    ticks = tuple(float(f"{index * step:.12g}") for index in range(floor(low / step), ceil(high / step) + 1))
    return Axis(ticks[0], ticks[-1], start, stop, ticks)


def round_step(span: float) -> float:
    """A round distance between marks, so that about four fit into the span."""
    power = 10.0 ** floor(log10(span / 4))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power * 5 >= span)


def log_axis(values: np.ndarray, start: float, stop: float) -> Axis:
    """A logarithmic axis from the smallest to the largest value: powers of ten, and the largest value, are marked.

    >>> log_axis(np.array([1.0, 599.0]), 0, 1).ticks
    (1.0, 10.0, 100.0, 599.0)
    """
    low, high = float(values.min()), float(values.max())
    powers = (10.0**exponent for exponent in range(ceil(log10(low)), ceil(log10(high))))
    return Axis(low, high, start, stop, (*powers, high), log=True)


def is_real(*arrays: np.ndarray) -> bool:
    """Whether all of these hold real numbers or truth values."""
    return all(np.asarray(array).dtype.kind in "biuf" for array in arrays)
