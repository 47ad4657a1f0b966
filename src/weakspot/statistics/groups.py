"""Groups of inputs by a value that came with them: each value where there are few, else parts of about equal size."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MOST_VALUES = 10
_PARTS = 4


def value_groups(values: ArrayLike) -> tuple[list[str], NDArray[np.int64]]:
    """The names of the groups, and the number of each input's.

    Text and truth values are groups as they are. Of numbers, up to ten values are groups; more are cut at the quartiles
    and named after the smallest and largest value inside. Numbers that are not known are a group of their own.

    >>> value_groups(["rain", "fog", "rain"])
    (['fog', 'rain'], array([1, 0, 1]))
    >>> value_groups(np.arange(12) / 2)[0]
    ['0 to 1', '1.5 to 2.5', '3 to 4', '4.5 to 5.5']
    """
    held = np.asarray(values)
    if held.dtype.kind not in "iuf":
        texts, number = np.unique(held.astype(np.str_), return_inverse=True)
        return texts.tolist(), number
    known = np.isfinite(held) if held.dtype.kind == "f" else np.ones(len(held), dtype=bool)
    names, number = _of_numbers(held[known].astype(np.float64))
    placed = np.full(len(held), len(names), dtype=np.int64)
    placed[known] = number
    return [*names, *([] if known.all() else ["unknown"])], placed


def _of_numbers(values: NDArray[np.float64]) -> tuple[list[str], NDArray[np.int64]]:
    distinct, number = np.unique(values, return_inverse=True)
    if len(distinct) <= _MOST_VALUES:
        return [f"{value:.6g}" for value in distinct], number
    cuts = np.unique(np.quantile(values, np.arange(1, _PARTS) / _PARTS, method="lower"))
    part = np.searchsorted(cuts, values, side="left")
    _, part = np.unique(part, return_inverse=True)
    inside = [values[part == one] for one in range(part.max() + 1)]
    return [f"{one.min():.4g} to {one.max():.4g}" for one in inside], part
