"""Layers whose heat maps carry no information: zero relevance, or the same for every image. They are never chosen."""

from collections.abc import Mapping

import numpy as np

from weakspot.causes.distances import HeatMapRows, square

_ROUNDING = 1e-6
"""Heat maps are kept in 32 bits: what differs by less of their length is equal."""
_LISTED = 8


def blank(heat_maps: HeatMapRows, distances: np.ndarray) -> str:
    """Why the heat maps of a layer tell no image from another, in words; empty where they do.

    Clusters of such maps are perfectly tight and mean nothing. Zero are, for instance, those of the queries and keys of
    attention: they only weigh, and rules of relevance give all of it to the values.

    distances: of these heat maps, condensed.

    >>> blank(HeatMapRows.of(np.zeros((3, 4))), np.zeros(3))
    'all 3 heat maps are zero: no relevance reaches it'
    """
    count = len(heat_maps)
    alike = (square(distances) == 0).sum(1) if count > 1 else np.ones(1, dtype=np.int64)
    fullest = int(alike.argmax())  # of zero maps any two have a distance of exactly 0
    one = heat_maps.select(np.array([fullest])).values()
    if not one.any() and 2 * alike[fullest] > count:
        how_many = f"all {count}" if alike[fullest] == count else f"{alike[fullest]} of {count}"
        return f"{how_many} heat maps are zero: no relevance reaches it"
    if count > 1 and distances.max() <= _ROUNDING * np.linalg.norm(one):
        return f"all {count} heat maps are equal"
    return ""


def listed(left_out: Mapping[str, str]) -> str:
    """The layers that were left out by the reason why, the first few by name.

    >>> listed({"query": "all 3 heat maps are zero", "key": "all 3 heat maps are zero"})
    'query, key (all 3 heat maps are zero)'
    """
    phrases = []
    for why in dict.fromkeys(left_out.values()):
        names = [name for name, reason in left_out.items() if reason == why]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        phrases.append(f"{', '.join(names[:_LISTED])}{more} ({why})")
    return "; ".join(phrases)
