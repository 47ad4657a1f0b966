"""Sketches of large heat maps: a seeded random projection to a few thousand values, which keeps their distances."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from weakspot.core.stateless_random import mix

SKETCH = 4099
"""Values of a sketch: a prime, so that neither channels nor rows of a map fall into step with it."""


def worth_sketching(size: int, values: int | None) -> bool:
    """Whether maps of so many values are sketched: those that are more than twice as large."""
    return values is not None and size > 2 * values


def sketched(maps: Tensor, values: int = SKETCH) -> Tensor:
    """Each map (samples, …) as so many values, float32: every value gets a random sign, and every `values`-th is added.

    For any x and y the product of their sketches has the mean x·y over the signs, so that squared distances are right
    on average; their relative standard deviation is about √(2 / values) where no few values dominate (a sparse
    Johnson–Lindenstrauss projection [achlioptas2003; kane2014]). The signs depend on the maps' size alone.

    >>> maps = torch.randn(2, 100_000, generator=torch.Generator().manual_seed(0))
    >>> exact, close = (float((of[0] - of[1]).norm()) for of in (maps, sketched(maps)))
    >>> abs(close / exact - 1) < 0.05
    True
    """
    flat = maps.flatten(1).float()
    size = flat.shape[1]
    sign = _signs(size, maps.device)
    whole = size - size % values
    summed: Tensor = (flat[:, :whole].unflatten(1, (-1, values)) * sign[:whole].view(-1, values)).sum(1)
    summed[:, : size - whole] += flat[:, whole:] * sign[whole:]
    return summed


@lru_cache(maxsize=64)
def _signs(size: int, device: torch.device) -> Tensor:
    """Plus or minus one for each value of a map, the same on every machine."""
    words = mix(np.arange(1, -(-size // 64) + 1, dtype=np.uint64))
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), count=size)
    return torch.from_numpy(1 - 2 * bits.astype(np.int8)).to(device)


def sketch_error(exact: np.ndarray, lengths: np.ndarray) -> float:
    """How far sketches' lengths lie from those of the maps, relative, root mean square; not a number if all are 0.

    A difference of two maps is a map as well, so that distances err as much.

    >>> sketch_error(np.array([1.0, 2.0, 0.0]), np.array([1.1, 1.8, 0.0]))
    0.1
    """
    known = exact > 0
    if not known.any():
        return float("nan")
    return round(float(np.sqrt(np.mean(np.square(lengths[known] / exact[known] - 1)))), 12)
