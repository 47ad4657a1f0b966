"""Which new images the rules of a Finding of error slices hold for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weakspot.causes.slice_traits import without_prefix
from weakspot.causes.slice_views import KEYS, SOURCES, SliceSource, SliceWish, measure_key
from weakspot.core.finding import Finding
from weakspot.core.rows import RowTable
from weakspot.data.image_measures import MEASURES
from weakspot.data.metadata_rows import metadata_columns
from weakspot.slices import SliceRule

_OF_IMAGE = " of the image"


@dataclass(frozen=True)
class CauseRule:
    """A confirmed rule of a Finding: its place in the list, the errors it explains, and its conditions."""

    place: int
    explained: float
    rule: SliceRule

    @property
    def traits(self) -> list[str]:
        """The names of its traits."""
        return [each.trait for each in self.rule.conditions]


def confirmed_rules(finding: Finding) -> list[CauseRule]:
    """The confirmed rules, in the order of the list."""
    rows = [] if finding.table is None else finding.table.to_pylist()
    return [
        CauseRule(row["slice"], row["explained"], SliceRule.from_json(json.loads(row["conditions"])))
        for row in rows
        if row["confirmed"]
    ]


def wish_of(finding: Finding, rules: Sequence[CauseRule]) -> SliceWish:
    """What must be taken of new images, so that these rules can be asked."""
    names = {name for rule in rules for name in rule.traits}
    views = tuple(source for source in SOURCES if source in KEYS and any(_view(name) == source for name in names))
    measured = any(name.removesuffix(_OF_IMAGE) in MEASURES for name in names)
    own = tuple(finding.arrays["embedding"].tolist()) if "embedding" in finding.arrays else ()
    sources: tuple[SliceSource, ...] = views
    return SliceWish(sources, measured, own if "embedding" in views else ())


def _view(trait: str) -> str:
    return trait.rpartition(" ")[0]


def trait_columns(
    finding: Finding, rows: RowTable, order: NDArray[np.int64], predicted: NDArray[np.str_] | None
) -> dict[str, NDArray[Any]]:
    """What is known of new images, in this order, under the names that rules use; predicted: their class, by name."""
    metadata = without_prefix(metadata_columns(rows))
    columns = {name: _plain(np.asarray(column)[order]) for name, column in metadata.items()}
    for name in MEASURES:
        if (key := measure_key(name)) in rows:
            columns[f"{name}{_OF_IMAGE}" if name in metadata else name] = np.asarray(rows[key])[order]
    if predicted is not None:
        columns["predicted class"] = predicted
    names = finding.arrays["regions"].tolist() if "regions" in finding.arrays else []
    for number, name in enumerate(names):
        if (key := KEYS[_view(name)]) in rows:
            weights, offset = finding.arrays[f"region_weights-{number:02d}"], finding.arrays["region_offset"][number]
            columns[name] = (np.asarray(rows[key])[order] @ weights - offset).round(6)
    return columns


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(np.float64 if column.dtype.kind in "biuf" else np.str_)


def first_rules(
    rules: Sequence[CauseRule], columns: Mapping[str, NDArray[Any]], count: int
) -> tuple[NDArray[np.int64], list[CauseRule]]:
    """For each image the place of the first rule that holds, 0 for none; and the rules that could not be asked."""
    first, left_out = np.zeros(count, dtype=np.int64), []
    for one in rules:
        if set(one.traits) <= set(columns):
            first[one.rule.holds(columns) & (first == 0)] = one.place
        else:
            left_out.append(one)
    return first, left_out
