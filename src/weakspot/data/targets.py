"""Targets from cells of a table: class numbers, label vectors, numbers. Plain functions; errors say where."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weakspot.core.errors import DataError
from weakspot.data.names import listed, readable, shown

_YES_NO = {"0": 0, "1": 1, "false": 0, "true": 1, "0.0": 0, "1.0": 1}


def class_numbers(
    cells: Sequence[Any], places: Sequence[str], classes: Sequence[str] | None
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Class numbers, int64 (samples,), with the classes' names where they are known.

    A cell is the name of a class, or else its number. Without `classes`, cells are all numbers, or all names, which
    are then numbered in alphabetical order.
    """
    texts = [_cell(cell, line, "a class") for cell, line in zip(cells, places, strict=True)]
    if classes is None:
        numeric = [_whole(text) is not None for text in texts]
        if all(numeric):
            return _in_range(texts, places, None), None
        if any(numeric):
            name, number = numeric.index(False), numeric.index(True)
            raise DataError(
                f"{places[number]}: target {shown(texts[number])!r} is a number, {places[name]}: target "
                f"{shown(texts[name])!r} is a name; write all as names or all as numbers, or give the classes"
            )
        classes = sorted(set(texts))
    number_of = {name: number for number, name in enumerate(classes)}
    if all(text in number_of for text in texts):
        return np.array([number_of[text] for text in texts], dtype=np.int64), tuple(classes)
    return _named_or_numbered(texts, places, classes, number_of), tuple(classes)


def _named_or_numbered(
    texts: Sequence[str], places: Sequence[str], classes: Sequence[str], number_of: dict[str, int]
) -> np.ndarray:
    for text, line in zip(texts, places, strict=True):
        if text not in number_of and _whole(text) is None:
            raise DataError(f"{line}: class {shown(text)!r} is not known: expected one of {listed(classes)}")
    if any(text in number_of for text in texts) and not all(_whole(text) is not None for text in texts):
        line = next(p for t, p in zip(texts, places, strict=True) if t not in number_of)
        raise DataError(f"{line}: this target is a number, others are names: write all as names, or all as numbers")
    return _in_range(texts, places, len(classes))


def _in_range(texts: Sequence[str], places: Sequence[str], count: int | None) -> np.ndarray:
    numbers = [_whole(text) for text in texts]
    for number, line in zip(numbers, places, strict=True):
        if number is None or number < 0 or (count is not None and number >= count):
            raise DataError(f"{line}: {out_of_range(number, count)}")
    return np.array(numbers, dtype=np.int64)


def out_of_range(number: Any, count: int | None) -> str:
    """What is wrong with a class number."""
    expected = "0 or more" if count is None else f"0 to {count - 1}"
    return f"class number {number} is out of range: expected {expected}, as classes are counted from 0"


def label_vectors(
    columns: Sequence[Sequence[Any]], places: Sequence[str], names: Sequence[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels from one column of 0 and 1 per class: int64 (samples, classes)."""
    vectors = np.zeros((len(places), len(columns)), dtype=np.int64)
    for number, column in enumerate(columns):
        for row, (cell, line) in enumerate(zip(column, places, strict=True)):
            text = _cell(cell, line, f"0 or 1 for {names[number]}").lower()
            if text not in _YES_NO:
                raise DataError(f"{line}: label {names[number]!r} is {shown(text)!r}: expected 0 or 1")
            vectors[row, number] = _YES_NO[text]
    return vectors, tuple(names)


def label_lists(
    cells: Sequence[Any], places: Sequence[str], classes: Sequence[str] | None, separator: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels from cells that list the names of the classes present, `cat;dog`: int64 (samples, classes)."""
    lists = [[readable(name.strip()) for name in str(cell or "").split(separator) if name.strip()] for cell in cells]
    class_names = tuple(classes) if classes is not None else tuple(sorted({name for names in lists for name in names}))
    if not class_names:
        raise DataError("no sample has any label: name the classes, or write labels into the target column")
    number_of = {name: number for number, name in enumerate(class_names)}
    vectors = np.zeros((len(cells), len(class_names)), dtype=np.int64)
    for row, (names, line) in enumerate(zip(lists, places, strict=True)):
        for name in names:
            if name not in number_of:
                raise DataError(f"{line}: label {shown(name)!r} is not known: expected some of {listed(class_names)}")
            vectors[row, number_of[name]] = 1
    return vectors, class_names


def number_columns(columns: Sequence[Sequence[Any]], places: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Numbers, one column each: float32 (samples, columns)."""
    values = np.zeros((len(places), len(columns)), dtype=np.float32)
    for number, column in enumerate(columns):
        for row, (cell, line) in enumerate(zip(column, places, strict=True)):
            values[row, number] = _finite(_cell(cell, line, f"a number for {names[number]}"), line, names[number])
    return values


def _finite(text: str, line: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= float(np.finfo(np.float32).max):
        raise DataError(f"{line}: {name} is {shown(text)!r}: expected a finite number")
    return value


def _cell(cell: Any, line: str, expected: str) -> str:
    text = "" if cell is None else readable(str(cell).strip())
    if not text:
        raise DataError(f"{line}: the target is missing: expected {expected}; fill it in, or remove the row")
    return text


def _whole(text: str) -> int | None:
    try:
        value = float(text) if not text.lstrip("+-").isdecimal() else int(text)
    except (ValueError, OverflowError):
        return None
    return int(value) if abs(value) < 2**53 and value == int(value) else None


def check_classes(targets: np.ndarray, ids: Sequence[str], count: int) -> None:
    """Refuse class numbers that are not whole numbers from 0 to `count` − 1, by the sample's id."""
    fits = (targets >= 0) & (targets < count) & (targets == np.floor(targets))
    if not fits.all():
        sample, number = np.argwhere(~fits)[0][0], targets[~fits][0].item()
        reason = out_of_range(number, count) if number == np.floor(number) else f"{number} is not a class number"
        raise DataError(f"the target of sample {shown(ids[sample])!r}: {reason}")
