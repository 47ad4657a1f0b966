"""Does a measure taken per image tell the classes apart at all? (RQ1 of `deepinspect`)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from weakspot.classes.membership import Members
from weakspot.classes.pairs import pair_values
from weakspot.core.errors import DataError
from weakspot.statistics import EFFECT_SIZES, KruskalWallis, effect_size_class, kruskal_wallis, pairwise_cohens_d


@dataclass(frozen=True)
class ClassSeparation:
    """How well a measure separates the classes."""

    test: KruskalWallis
    """Do the classes differ at all? With many images they nearly always do."""
    effect_sizes: dict[str, float]
    """Share of the pairs of classes whose difference is negligible, small, medium and large (Cohen's d)."""


def class_separation(values: ArrayLike, members: Members) -> ClassSeparation:
    """Kruskal–Wallis test over the classes and Cohen's d between every two of them (`deepinspect`, RQ1a).

    Args:
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
