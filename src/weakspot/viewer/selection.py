"""Which samples a search and filters leave, and in which order."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from weakspot.core.errors import ConfigError
from weakspot.core.options import nearest
from weakspot.viewer.columns import Places, SampleColumn
from weakspot.viewer.reading import RunReader
from weakspot.viewer.sample_table import SampleTable, sample_table

OPERATORS = ("is", "not", "below", "above", "has")
ID = "id"
_KEPT = 32
"""Selections that are remembered."""
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Query:
    """A search in the ids, filters `column:operator:value`, and a column to sort by, downwards with `-` before it.

    Filters of different columns must all hold; of several `is` of one column any.
    """

    search: str = ""
    filters: tuple[str, ...] = ()
    sort: str = ""


def selected(run: RunReader, split: str, query: Query) -> Places:
    """The positions of the samples that a query leaves, in its order."""
    kept = run.kept(("selections", split), dict[Query, Places])
    selection = kept.get(query)
    if selection is None:
        selection = kept[query] = select(sample_table(run, split), query)
        for old in list(kept)[:-_KEPT]:  # a copy: others may be adding meanwhile
            kept.pop(old, None)
    return selection


def select(table: SampleTable, query: Query) -> Places:
    """The positions of the samples that a query leaves, in its order."""
    chosen = np.ones(len(table), dtype=bool)
    if query.search:
        chosen &= _bools(pc.match_substring(table.lowered, query.search.lower()))
    for mask in _by_column(table, query.filters):
        chosen &= mask
    places = np.flatnonzero(chosen)
    return places if not query.sort else places[_order(table, query.sort, places)]


def _by_column(table: SampleTable, filters: Sequence[str]) -> list[Mask]:
    """One mask per filter, those that ask one column to be one of several values together."""
    masks: dict[tuple[str, ...], Mask] = {}
    for number, text in enumerate(filters):
        name, operator, value = parsed(text, table.columns)
        mask = _holds(table, name, operator, value)
        key = (name, "is") if operator == "is" else (name, operator, str(number))
        masks[key] = mask | masks[key] if key in masks else mask
    return list(masks.values())


def parsed(text: str, columns: Iterable[str]) -> tuple[str, str, str]:
    """Column, operator and value of a filter; a column's own name may hold colons.

    >>> parsed("a:b:is:c:d", ["a", "a:b"])
    ('a:b', 'is', 'c:d')
    """
    names = [ID, *columns]
    for name in sorted((one for one in names if text.startswith(f"{one}:")), key=len, reverse=True):
        operator, colon, value = text[len(name) + 1 :].partition(":")
        if operator in OPERATORS and colon:
            return name, operator, value
    name = text.partition(":")[0]
    if name not in names:
        raise _unknown(name, "filter", names)
    operators = ", ".join(OPERATORS)
    raise ConfigError(f"{text[:80]!r} is no filter: expected column:operator:value with one of {operators}")


def _unknown(name: str, what: str, names: Sequence[str]) -> ConfigError:
    hint = nearest(name[:80], names).strip() or "choose one that the table lists"
    return ConfigError(f"there is no column {name[:80]!r} to {what} by; {hint}")


def _holds(table: SampleTable, name: str, operator: str, value: str) -> Mask:
    if name == ID:
        return _id_holds(table, operator, value)
    column = table.columns[name]
    missing = np.isnan(column.numbers)
    if value == "" and operator in ("is", "not"):
        return missing if operator == "is" else ~missing
    if operator == "has":
        return _text_has(column, value)
    if operator in ("is", "not"):
        equal: Mask = column.numbers == _wanted(column, value)
        return equal if operator == "is" else ~equal
    limit = _number(column, value)
    with np.errstate(invalid="ignore"):
        holds: Mask = column.numbers < limit if operator == "below" else column.numbers > limit
    return holds


def _id_holds(table: SampleTable, operator: str, value: str) -> Mask:
    if operator in ("is", "not"):
        same = _bools(pc.equal(table.ids, value))
        return same if operator == "is" else ~same
    if operator == "has":
        return _bools(pc.match_substring(table.lowered, value.lower()))
    raise ConfigError(f"the operator {operator} cannot be used with ids: expected is, not or has")


def _text_has(column: SampleColumn, value: str) -> Mask:
    """Whether a text holds the value as a part, or a set of labels all the labels of the value."""
    if column.kind != "text":
        raise ConfigError(f"{column.name} is no text: expected is, not, below or above")
    lowered, wanted = [text.lower() for text in column.texts], value.lower()
    if column.several:
        fits = [_labels(wanted) <= _labels(text) for text in lowered]
    else:
        fits = [wanted in text for text in lowered]
    return np.array([*fits, False])[np.nan_to_num(column.numbers, nan=len(fits)).astype(np.int64)]


def _labels(text: str) -> set[str]:
    return {label.strip() for label in re.split("[+;]", text)}


def _wanted(column: SampleColumn, value: str) -> float:
    """The number behind a value; NaN, which nothing equals, where no sample has it."""
    if column.kind == "text":
        return float(column.texts.index(value)) if value in column.texts else np.nan
    if column.kind == "flag":
        if value.lower() not in ("yes", "no", "true", "false"):
            raise ConfigError(f"{column.name} is yes or no, not {value[:80]!r}")
        return float(value.lower() in ("yes", "true"))
    return _number(column, value)


def _number(column: SampleColumn, value: str) -> float:
    if column.kind != "number":
        raise ConfigError(f"{column.name} is no number: expected is, not{' or has' if column.kind == 'text' else ''}")
    try:
        return float(value)
    except ValueError:
        raise ConfigError(f"{column.name} is a number, which {value[:80]!r} is not") from None


def _order(table: SampleTable, sort: str, places: Places) -> Places:
    """The order of some samples by a column; those without a value last, whichever way."""
    name, down = (sort[1:], True) if sort.startswith("-") and sort not in table.columns else (sort, False)
    if name == ID:
        order = pc.sort_indices(table.ids.take(pa.array(places)))
        indices = np.asarray(order.to_numpy(), dtype=np.int64)
        return indices[::-1] if down else indices
    if name not in table.columns:
        raise _unknown(name, "sort", list(table.columns))
    values = table.columns[name].numbers[places]
    return np.argsort(-values if down else values, kind="stable")


def _bools(values: object) -> Mask:
    return np.asarray(pa.array(values).to_numpy(zero_copy_only=False), dtype=bool)
