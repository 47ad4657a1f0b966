"""Does a measure of single images, such as neuron coverage, tell the classes apart? (RQ1 of `deepinspect`)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from weakspot.classes.membership import Members
from weakspot.classes.pairs import pair_values
from weakspot.core.errors import DataError
from weakspot.core.taps import Layout
from weakspot.statistics import EFFECT_SIZES, KruskalWallis, effect_size_class, kruskal_wallis, pairwise_cohens_d

_BLOCK = 1024


@dataclass(frozen=True)
class ClassSeparation:
    """How well a measure separates the classes."""

    test: KruskalWallis
    """Do the classes differ at all? With many images they nearly always do."""
    effect_sizes: dict[str, float]
    """Share of the pairs of classes whose difference is negligible, small, medium and large (Cohen's d)."""


def class_separation(values: ArrayLike, members: Members) -> ClassSeparation:
    """Kruskal–Wallis test over the classes and Cohen's d between every two of them (`deepinspect`, RQ1a).

    values: one per image, such as its neuron coverage.
    members: images × classes; an image of several classes counts in each.
    """
    measured, entries = np.asarray(values, dtype=np.float64), members.tocoo()
    if measured.shape != members.shape[:1]:
        raise DataError(f"expected one value for each of {members.shape[0]} images, got shape {measured.shape}.")
    image, number = entries.coords
    effects = pair_values(pairwise_cohens_d(measured[image], number))
    names = effect_size_class(effects[~np.isnan(effects)])
    shares = {name: float(np.mean(names == name)) if names.size else np.nan for name in EFFECT_SIZES}
    return ClassSeparation(kruskal_wallis(measured[image], number), shares)


def class_entries(targets: Tensor) -> tuple[Tensor, Tensor]:
    """Every image with each of its classes: places of the images, and numbers of the classes.

    >>> [part.tolist() for part in class_entries(torch.tensor([[1, 0, 1], [0, 1, 0]]))]
    [[0, 0, 1], [0, 2, 1]]
    """
    if targets.ndim == 1:
        return torch.arange(len(targets), device=targets.device), targets.long()
    image, number = targets.nonzero(as_tuple=True)
    return image, number


def most_active(values: Tensor, layout: Layout) -> Tensor:
    """The neuron of each layer with the highest value, (samples, layers); the first of equals."""
    widths = np.bincount(layout.layer_of).tolist()
    return torch.stack([layer.argmax(1) for layer in values.split(widths, dim=1)], dim=1)


def class_coverage(
    section: np.ndarray, top: np.ndarray, places: np.ndarray, layout: Layout, sections: int
) -> tuple[float, ...]:
    """The four shares and the number of patterns of one class; NaN without images."""
    if not places.size:
        return (np.nan,) * 4 + (0,)
    neurons, first = np.arange(layout.neurons), np.flatnonzero(np.diff(layout.layer_of, prepend=-1))
    reached = np.zeros((layout.neurons, sections + 2), dtype=np.bool_)
    active = np.zeros(layout.neurons, dtype=np.bool_)
    for block in _blocks(places):
        reached[neurons, section[block]] = True
        active[top[block] + first] = True
    patterns = len(np.unique(top[places], axis=0))
    corners = reached[:, [0, -1]]
    return reached[:, 1:-1].mean(), corners.mean(), corners[:, 1].mean(), active.mean(), patterns


def _blocks(places: np.ndarray) -> Iterator[np.ndarray]:
    return (places[start : start + _BLOCK] for start in range(0, places.size, _BLOCK))
