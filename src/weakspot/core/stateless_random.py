"""Random numbers without state: they depend on a seed, the sample's id and a few numbers, on nothing else.

torch's own generators depend on the batch a sample happens to be in, on the order of calls and on the device. Here each
number is a hash of its coordinates (splitmix64, Steele et al. 2014), so any look at any sample can be made again alone.

Words are numpy's uint64 for the few numbers that a look draws per sample, and torch's int64, with the same bits, where
millions are needed on the device.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_LARGE = 1 << 16
"""From so many numbers on, drawing on the device beats drawing in numpy and copying."""


@lru_cache(maxsize=256)
def sample_keys(ids: tuple[str, ...]) -> np.ndarray:
    """A word per sample id, the same in every process and on every machine; uint64, shape (samples,)."""
    hashed = b"".join(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in ids)
    return np.frombuffer(hashed, dtype="<u8")


def draw_keys(ids: Sequence[str], *coordinates: int) -> np.ndarray:
    """A word per sample for one place in the draw (seed, look number, call …); uint64, shape (samples,)."""
    return further_keys(sample_keys(tuple(ids)), *coordinates)


def further_keys(keys: np.ndarray, *coordinates: int) -> np.ndarray:
    """The words of a place further on: those of `draw_keys` with these coordinates added to its own."""
    for coordinate in coordinates:
        keys = mix(keys + _step(coordinate))
    return keys


def draw_keys_of_looks(ids: Sequence[str], seed: int, numbers: Sequence[int]) -> np.ndarray:
    """The keys of several looks, one look after another; uint64, shape (looks · samples,).

    >>> bool((draw_keys_of_looks(["a", "b"], 7, [1, 2])[2:] == draw_keys(["a", "b"], 7, 2)).all())
    True
    """
    steps = np.array([_step(number) for number in numbers], dtype=np.uint64)
    return mix(draw_keys(ids, seed) + steps[:, None]).reshape(-1)


def _step(coordinate: int) -> np.uint64:
    return np.uint64((int(coordinate) + 1) * _GOLDEN & _WORD)


def mix(words: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every input bit changes every output bit with probability 1/2."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(_FIRST)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(_SECOND)
    return np.asarray(words ^ (words >> np.uint64(31)))


def draw_words(keys: np.ndarray, count: int) -> np.ndarray:
    """`count` independent words per key; uint64, shape (samples, count)."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    return mix(keys[:, None] + steps)


def uniform(keys: np.ndarray, count: int) -> np.ndarray:
    """`count` numbers per key, uniform in [0, 1); float64, shape (samples, count).

    >>> uniform(draw_keys(["a", "b"], 0, 1), 2).shape
    (2, 2)
    """
    return (draw_words(keys, count) >> np.uint64(11)) * 2.0**-53


def keep_mask(keys: np.ndarray, count: int, drop: float, device: torch.device) -> Tensor:
    """True with probability 1 − drop (to 2⁻²⁴); boolean, shape (samples, count)."""
    least = round(drop * (1 << 24))
    if len(keys) * count < _LARGE:
        return torch.from_numpy((draw_words(keys, count) >> np.uint64(40)) >= least).to(device)
    return _shift(device_words(keys, count, device), 40) >= least


def device_words(keys: np.ndarray, count: int, device: torch.device) -> Tensor:
    """The words of `draw_words`, made on the device."""
    signed = torch.from_numpy(keys.view(np.int64).copy()).to(device)
    words = torch.arange(1, count + 1, device=device).mul_(_signed(_GOLDEN)) + signed[:, None]
    words = words.bitwise_xor_(_shift(words, 30)).mul_(_signed(_FIRST))
    words = words.bitwise_xor_(_shift(words, 27)).mul_(_signed(_SECOND))
    return words.bitwise_xor_(_shift(words, 31))


def unit_pairs(keys: np.ndarray, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Twice `count` numbers per key, uniform in [0, 1); float32, each of shape (samples, count)."""
    words = device_words(keys, count, device)
    low, high = words & 0xFFFFFF, (words >> 40) & 0xFFFFFF
    return high.float() * 2.0**-24, low.float() * 2.0**-24


def unit_numbers(keys: np.ndarray, count: int, device: torch.device) -> Tensor:
    """The first of `unit_pairs` alone; float32, shape (samples, count)."""
    return ((device_words(keys, count, device) >> 40) & 0xFFFFFF).float() * 2.0**-24


def standard_normal(keys: np.ndarray, count: int, device: torch.device) -> Tensor:
    """`count` numbers per key from the standard normal distribution (Box and Muller 1958); shape (samples, count)."""
    first, second = unit_pairs(keys, -(-count // 2), device)
    radius = torch.log1p(-first).mul_(-2).sqrt_()
    angle = second.mul_(2 * math.pi)
    return torch.cat([radius * angle.cos(), radius * angle.sin()], 1)[:, :count]


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _shift(words: Tensor, bits: int) -> Tensor:
    """Logical right shift: torch shifts signed integers arithmetically."""
    return (words >> bits).bitwise_and_((1 << (64 - bits)) - 1)
