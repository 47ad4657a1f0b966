"""The room's question, "Which inputs does it get right only by luck?", as steps of a plan."""

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.step import Step
from weakspot.looks.variations import Rotate, Shift, Variation
from weakspot.robustness.neighbours import NeighbourAccuracy

VARIATIONS: dict[str, type[Variation]] = {"rotate": Rotate, "shift": Shift}


def steps(options: Mapping[str, Any]) -> list[Step]:
    """Neighbour accuracy; `neighbours: {rotate: 30, shift: 3}` says how neighbours may differ.

    >>> steps({"neighbours": {"rotate": 10}})[0].options["variation"]
    Rotate(degrees=10)
    """
    own = dict(options)
    if "neighbours" in own:
        own["variation"] = variation(own.pop("neighbours"))
    return [Step.of(NeighbourAccuracy, **own)]


def variation(ranges: Mapping[str, float]) -> Variation:
    """The combination of variations that a mapping from name to range means."""
    if not isinstance(ranges, Mapping) or not all(isinstance(span, int | float) for span in ranges.values()):
        raise ConfigError(f"neighbours is {ranges!r}: expected names and ranges, such as {{rotate: 30, shift: 3}}")
    unknown = sorted(set(ranges) - VARIATIONS.keys())
    if unknown or not ranges:
        raise ConfigError(f"neighbours are made by {', '.join(VARIATIONS)}; got {', '.join(unknown) or 'none'}")
    made = [VARIATIONS[name](span) for name, span in ranges.items()]  # type: ignore[call-arg]
    return reduce(and_, made)
