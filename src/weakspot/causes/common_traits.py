"""What most images of a cluster have and few others: a value of a category, or a number at one end of all."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from weakspot.causes.parameters import Parameters

MOST, FEW = 0.6, 0.3
"""At least so many images of the cluster have it, and at most so many of all others."""
CHANCE = 0.05
"""How probable any of them may be for clusters of images drawn at random."""
END = 0.2
"""The share of all images that lies at either end of a number."""
Flags = NDArray[np.bool_]


def common_traits(parameters: Parameters, clusters: Sequence[np.ndarray]) -> list[dict[int, str]]:
    """For each cluster what most of its images have and few others, in words, by the number of the parameter.

    clusters: places of their images among all.

    The chance of as many images or more, drawn at random (hypergeometric), is multiplied by the number of values tried
    and of clusters (Bonferroni). A spread that is halved
    misses clusters of which some images are of another kind.

    >>> light = Parameters.of_columns({"light": np.repeat([0.1, 0.8, 0.9], [10, 20, 20])})
    >>> common_traits(light, [np.r_[:9, 12]])
    [{0: 'light ≤ 0.1 in 90% instead of 2%'}]
    """
    tried = [(number, words, flags) for number, words, flags in _values(parameters) if 0 < flags.sum() < len(flags)]
    found: list[dict[int, str]] = []
    for members in clusters:
        texts: dict[int, tuple[float, str]] = {}
        for number, words, flags in tried:
            inside, others = float(flags[members].mean()), _share_of_others(flags, members)
            chance = hypergeom.sf(flags[members].sum() - 1, len(flags), flags.sum(), len(members))
            if inside >= MOST and others <= FEW and chance * len(tried) * len(clusters) <= CHANCE:
                text = f"{words} in {inside:.0%} instead of {others:.0%}"
                texts[number] = max(texts.get(number, (0.0, "")), (inside, text))
        found.append({number: text for number, (_, text) in texts.items()})
    return found


def _share_of_others(flags: Flags, members: np.ndarray) -> float:
    return float((flags.sum() - flags[members].sum()) / max(len(flags) - len(members), 1))


def _values(parameters: Parameters) -> Iterator[tuple[int, str, Flags]]:
    """Every value tried: the parameter's number, the value in words, and which images have it."""
    for number, (name, kind) in enumerate(zip(parameters.names, parameters.kinds, strict=True)):
        column = parameters.values[:, number]
        if kind == "category":
            for place, value in enumerate(parameters.categories[number]):
                yield number, f"{name} {value!r}", column == place
        elif kind == "number" and np.isfinite(column).any():
            low, high = (float(end) for end in np.nanquantile(column, [END, 1 - END], method="inverted_cdf"))
            yield number, f"{name} ≤ {low:.3g}", column <= low
            yield number, f"{name} ≥ {high:.3g}", column >= high
