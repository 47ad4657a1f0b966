"""One thing that is known of each sample: a number, a text or a truth value, in arrays that filter and sort quickly."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, isnan
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Kind = Literal["number", "text", "flag"]
Places = NDArray[np.int64]
_LONGEST = 500
"""Characters of a text that are shown."""
_LISTED = 50


@dataclass(frozen=True)
class SampleColumn:
    """A value for each sample, in the order of the samples.

    numbers: float64, NaN where there is none. Of a text it is the place in `texts`, by which it is also sorted; of a
        flag 0 or 1.
    whole: shown without decimals.
    several: each text is a set of labels, joined by + or ;.
    """

    name: str
    finding: str
    kind: Kind
    about: str
    numbers: NDArray[np.float64]
    texts: tuple[str, ...] = ()
    whole: bool = False
    several: bool = False

    def spread(self, places: Places, count: int) -> "SampleColumn":
        """The same values for `count` samples: row r belongs to sample `places[r]`."""
        numbers = np.full(count, np.nan)
        numbers[places] = self.numbers
        return replace(self, numbers=numbers)

    def named(self, name: str) -> "SampleColumn":
        """The same column under another name."""
        return replace(self, name=name)

    def values(self, places: Places) -> list[Any]:
        """As JSON holds them, for some samples."""
        taken = self.numbers[places].tolist()
        if self.kind == "text":
            return [None if isnan(code) else self.texts[int(code)] for code in taken]
        if self.kind == "flag":
            return [None if isnan(value) else value > 0 for value in taken]
        if self.whole:
            return [None if isnan(value) else int(value) for value in taken]
        return [value if isfinite(value) else None for value in taken]

    @property
    def bare(self) -> str:
        """The name without that of the Finding, which it has where several Findings have such a column."""
        return self.name.removeprefix(f"{self.finding}.")

    @cached_property
    def range(self) -> tuple[float | None, float | None]:
        """The smallest and the largest number."""
        there = self.numbers[np.isfinite(self.numbers)] if self.kind == "number" else np.empty(0)
        return (float(there.min()), float(there.max())) if len(there) else (None, None)

    @cached_property
    def frequent(self) -> list[str]:
        """The most frequent texts, alphabetically where they are as frequent."""
        if self.kind != "text":
            return []
        counts = np.bincount(self.numbers[~np.isnan(self.numbers)].astype(np.int64), minlength=len(self.texts))
        order = np.argsort(-counts, kind="stable")[:_LISTED]
        return [self.texts[code] for code in order.tolist() if counts[code]]

    def holds(self, other: "SampleColumn") -> bool:
        """Whether this column says all that the other does, and the same."""
        present = ~np.isnan(other.numbers)
        one, two = self.numbers[present], other.numbers[present]
        if self.kind != other.kind or np.isnan(one).any():
            return False
        if self.kind != "text" or self.texts == other.texts:
            return bool((one == two).all())
        mine, others = np.array(self.texts, object), np.array(other.texts, object)
        return bool((mine[one.astype(np.int64)] == others[two.astype(np.int64)]).all())


def column_of(
    name: str, finding: str, about: str, values: "pa.ChunkedArray", classes: list[str]
) -> SampleColumn | None:
    """A column of a table; None for what is neither number, text nor truth value, such as a list.

    Whole numbers in `target` and `prediction` are places in `classes`, where there are names.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if pa.types.is_boolean(kind):
        return SampleColumn(name, finding, "flag", about, _floats(values.cast(pa.int8())))
    if pa.types.is_integer(kind) and name in ("target", "prediction") and classes:
        return _class_column(name, finding, about, _floats(values), classes)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return SampleColumn(name, finding, "number", about, _floats(values), whole=pa.types.is_integer(kind))
    if pa.types.is_temporal(kind):
        values, kind = values.cast(pa.string()), pa.string()
    return _text_column(name, finding, about, values) if _is_text(kind) else None


def _is_text(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _floats(values: "pa.ChunkedArray") -> NDArray[np.float64]:
    as_double = values.cast(pa.float64(), safe=False)
    return np.asarray(as_double.to_numpy(zero_copy_only=False), dtype=np.float64).copy()


def _text_column(name: str, finding: str, about: str, values: "pa.ChunkedArray") -> SampleColumn:
    encoded = pc.dictionary_encode(pc.utf8_slice_codeunits(values, 0, _LONGEST)).combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # pyarrow gives either, by the number of chunks
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], pa.string()).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order) + 1)
    rank[order.to_numpy()], rank[-1] = np.arange(len(order)), np.nan
    codes = np.asarray(encoded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False), dtype=np.int64)
    return SampleColumn(name, finding, "text", about, rank[codes], tuple(encoded.dictionary.take(order).to_pylist()))


def _class_column(
    name: str, finding: str, about: str, numbers: NDArray[np.float64], classes: list[str]
) -> SampleColumn:
    """Class numbers as names; the order of the classes is the subject's own."""
    valid = (numbers >= 0) & (numbers < len(classes))
    if not (valid | np.isnan(numbers)).all():
        return SampleColumn(name, finding, "number", about, numbers, whole=True)
    return SampleColumn(name, finding, "text", about, numbers, tuple(classes))
