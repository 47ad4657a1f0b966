"""Are two Findings the same but for the order of the samples and for how the work was cut?"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from weakspot.core.finding import Finding


def differences(first: Finding, second: Finding, *, tolerance: float = 0.0) -> list[str]:
    """What differs, in words; nothing where the Findings agree. Rows are compared by `id` where the table has one."""
    return [*_summary(first, second, tolerance), *_arrays(first, second, tolerance), *_media(first, second)]


def _summary(first: Finding, second: Finding, tolerance: float) -> Iterator[str]:
    if list(first.summary) != list(second.summary):
        yield f"summary has {list(first.summary)} and {list(second.summary)}"
        return
    for name, estimate in first.summary.items():
        for part in ("value", "low", "high"):
            one, other = getattr(estimate, part), getattr(second.summary[name], part)
            if one != other and not _close(one, other, tolerance):
                yield f"summary {name}.{part} is {one} and {other}"


def _close(one: object, other: object, tolerance: float) -> bool:
    if not (isinstance(one, int | float) and isinstance(other, int | float)):
        return False
    return bool(np.isclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))


def _arrays(first: Finding, second: Finding, tolerance: float) -> Iterator[str]:
    one, other = _ordered(first), _ordered(second)
    if one.keys() != other.keys():
        yield f"it holds {sorted(one)} and {sorted(other)}"
        return
    for name, values in one.items():
        if values.dtype != other[name].dtype or values.shape != other[name].shape:
            yield f"{name} is {values.dtype}{values.shape} and {other[name].dtype}{other[name].shape}"
        elif values.dtype.kind in "fc" and tolerance:
            if not np.allclose(values, other[name], rtol=tolerance, atol=tolerance, equal_nan=True):
                yield f"{name} differs by up to {np.nanmax(np.abs(values - other[name]))}"
        elif not np.array_equal(values, other[name], equal_nan=values.dtype.kind in "fc"):
            yield f"{name} differs"


def _ordered(finding: Finding) -> dict[str, np.ndarray]:
    """Arrays and columns; what belongs to the rows of a table with ids is put in the order of the ids."""
    arrays = {f"array {name}": np.asarray(array) for name, array in finding.arrays.items()}
    if finding.table is None:
        return arrays
    columns = {f"column {name}": _values(finding.table[name]) for name in finding.table.column_names}
    if "column id" not in columns:
        return {**arrays, **columns}
    order = np.argsort(columns["column id"], kind="stable")
    per_row = {name: array for name, array in arrays.items() if array.ndim and len(array) == len(order)}
    return {**arrays, **{name: array[order] for name, array in {**per_row, **columns}.items()}}


def _values(column: Any) -> np.ndarray:
    values = np.asarray(column.to_numpy())
    return values.astype(str) if values.dtype == object else values


def _media(first: Finding, second: Finding) -> Iterator[str]:
    if dict(first.media) != dict(second.media):
        yield f"pictures differ: {sorted(first.media)} and {sorted(second.media)}"
