"""The same inputs in two tables, brought side by side by their ids."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from weakspot.core.errors import DataError
from weakspot.core.finding import Finding
from weakspot.core.groups import common_groups
from weakspot.statistics.intervals import Interval, mean_interval

ID = "id"
_METADATA = "metadata."
"""How columns begin that came with the data."""
_MEASURED = ("", "correct")
"""Roles of columns that say something of the model."""


def paired_mean_interval(before: ArrayLike, after: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Interval of the mean of after − before over the same inputs: d̄ ± t(n−1)·s/√n (Student 1908, `student1908`).

    before: a number for each input, shape (inputs,).
    after: the same afterwards.
    confidence: of the interval.

    >>> low, high = paired_mean_interval([1.0, 2.0, 3.0], [2.0, 3.0, 5.0])
    >>> round(float(low), 3), round(float(high), 3)
    (-0.101, 2.768)
    """
    change = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    if change.ndim != 1 or len(change) < 2:
        raise DataError(
            f"expected two columns of two numbers and more, got {change.shape}; pair them by the inputs' ids"
        )
    return mean_interval(change, confidence=confidence)


def paired_columns(before: Finding, after: Finding) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray | None]]:
    """Each column of truth values or real numbers that both tables have, over the inputs that both have.

    Columns declared as coordinates, ranks, codes, ends of intervals or metadata are left out, and so are whole numbers,
    which are codes more often than quantities. Inputs of which one side has no finite number are left out. The last is
    what each input belongs to; None where each stands for itself.
    """
    old, new = by_id(before.table), by_id(after.table)
    if old is None or new is None:
        return
    ids = np.intersect1d(old[ID].to_numpy(), new[ID].to_numpy())
    if not len(ids):
        return
    groups = common_groups(ids.tolist(), after, before)
    places = [np.searchsorted(table[ID].to_numpy(), ids) for table in (old, new)]
    for name in old.column_names:
        measured = after.outputs.column(name).role in _MEASURED and not name.startswith(_METADATA)
        if name in new.column_names and measured and _comparable(old.schema.field(name), new.schema.field(name)):
            one, other = (table[name].to_numpy()[rows] for table, rows in zip((old, new), places, strict=True))
            there = ~(_missing(one) | _missing(other))
            if there.sum() > 1:
                yield name, one[there], other[there], None if groups is None else groups[there]


def _missing(values: np.ndarray) -> np.ndarray:
    return ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)


def by_id(table: "pa.Table | None") -> "pa.Table | None":
    """The table in the order of its ids; none where rows are no inputs, each named once."""
    if table is None or ID not in table.column_names or not table.num_rows:
        return None
    ids = table[ID].to_numpy()
    return table.sort_by(ID) if len(np.unique(ids)) == len(ids) else None


def _comparable(one: "pa.Field", other: "pa.Field") -> bool:
    return any(kind(one.type) and kind(other.type) for kind in (pa.types.is_boolean, pa.types.is_floating))
