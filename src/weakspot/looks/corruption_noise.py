"""Common corruptions by noise: Gaussian, shot and impulse noise. Images from 0 to 1; a key per image."""

from functools import lru_cache

import numpy as np
import torch
from scipy.stats import poisson
from torch import Tensor

from weakspot.core.stateless_random import device_words, further_keys, standard_normal, unit_pairs

_LEVELS = 255
_REST, _TABLE = 0, 1
"""Places in the draw."""
_DIGITS = 12
"""Binary digits of a chance that tell most counts."""
_TAIL = 1e-15
"""Counts rarer than this are not drawn."""


def gaussian_noise(images: Tensor, keys: np.ndarray, deviation: float) -> Tensor:
    """x + deviation · z, z standard normal."""
    drawn = standard_normal(keys, images[0].numel(), images.device).view_as(images)
    return images.add(drawn.to(images.dtype), alpha=deviation)


def shot_noise(images: Tensor, keys: np.ndarray, photons: float) -> Tensor:
    """Poisson(x · photons) / photons: what counting so few photons leaves of x.

    A sum of two Poisson variables is one too: the one for the largest byte value below x is looked up in a table of
    cumulated probabilities, the other, for what is left of x, is 0 in images of 8 bits.
    """
    scaled = images * _LEVELS
    level = (scaled + 1e-3).floor()
    rest = (scaled - level).clamp(min=0).mul_(photons / _LEVELS)
    counts = _tabled(level.long(), further_keys(keys, _TABLE), photons)
    if rest.any():
        counts = counts + _counted(rest, further_keys(keys, _REST), photons / _LEVELS)
    return counts.to(images.dtype).div_(photons)


def _tabled(level: Tensor, keys: np.ndarray, photons: float) -> Tensor:
    """Poisson(level / 255 · photons) by the inverse of its cumulated probabilities.

    The first digits of the chance tell most counts; the others are searched in one table, sorted over all levels.
    """
    table, columns, guide = _cumulated(photons, level.device)
    words = device_words(keys, level[0].numel(), level.device).view_as(level)
    counts = guide[(level << _DIGITS) | ((words >> (64 - _DIGITS)) & ((1 << _DIGITS) - 1))].long()
    unsure = (counts < 0).nonzero(as_tuple=True)
    chance = ((words[unsure] >> 11) & ((1 << 53) - 1)).double() * 2.0**-53
    counts[unsure] = torch.searchsorted(table, level[unsure] + chance, right=True) - level[unsure] * columns
    return counts


@lru_cache(maxsize=16)
def _cumulated(photons: float, device: torch.device) -> tuple[Tensor, int, Tensor]:
    """level + P(N ≤ n) for every level and n, flat; how many n there are; the count where the first digits tell it.

    The last has an entry for every level and first digits, −1 where more than one count begins with them.
    """
    columns = int(poisson.isf(_TAIL, photons)) + 1
    levels = np.arange(_LEVELS + 1)[:, None]
    cumulated = np.minimum(poisson.cdf(np.arange(columns), levels * (photons / _LEVELS)), 1.0)
    cumulated[:, -1] = 1.0
    table = (levels + cumulated).ravel()
    ends = levels + np.arange((1 << _DIGITS) + 1) / (1 << _DIGITS)
    found = np.searchsorted(table, ends, side="right") - levels * columns
    guide = np.where(found[:, :-1] == found[:, 1:], found[:, :-1], -1).astype(np.int16)
    return torch.from_numpy(table).to(device), columns, torch.from_numpy(guide.ravel()).to(device)


def _counted(expected: Tensor, keys: np.ndarray, most: float) -> Tensor:
    """Poisson(expected) of small expectations, by adding up the probabilities of 0, 1, 2 …"""
    chance = unit_pairs(keys, expected[0].numel(), expected.device)[0].view_as(expected).double()
    probability = torch.exp(-expected.double())
    cumulated, counts = probability.clone(), torch.zeros_like(probability)
    for number in range(1, int(poisson.isf(_TAIL, most)) + 1):
        counts += chance >= cumulated
        probability = probability * expected / number
        cumulated += probability
    return counts


def impulse_noise(images: Tensor, keys: np.ndarray, share: float) -> Tensor:
    """This share of the values becomes 0 or 1, each with probability 1/2."""
    hit, side = (part.view_as(images) for part in unit_pairs(keys, images[0].numel(), images.device))
    return torch.where(hit < share, (side < 0.5).to(images.dtype), images)
