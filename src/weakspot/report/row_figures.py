"""Figures with a named row each, pure functions from arrays to SVG text: bars, boxes, strip, matrix, dendrogram.

What cannot be drawn gives "". Rows beyond the first few dozen are left out, and the figure says so.
"""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import numpy as np

from weakspot.formatting import counted, number
from weakspot.report.axes import Axis, Wording, is_real, linear_axis
from weakspot.report.svg import (
    LETTER,
    LONGEST,
    RIGHT,
    WIDTH,
    canvas,
    cut,
    draw_across,
    grid,
    line,
    margin,
    shape,
    text,
    written,
)

MOST_ROWS = 30
MOST_CELLS = 100
ROW = 22.0
_LONGEST_CONFUSION = 27
_HEAD, _FOOT = 8.0, 46.0
_LEVELS = 12
_LEGIBLE = 6.5
"""Smaller numbers inside cells would not be legible."""
_NAMED_ROWS, _NAMED_COLUMNS = 40, 20
"""In a matrix of more rows or columns their names would not be legible."""


def bars(
    labels: Sequence[str],
    values: np.ndarray,
    *,
    x_label: str,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
    marked: np.ndarray | None = None,
    wording: Wording = number,
) -> str:
    """A bar for each row, with the interval from `low` to `high` where there is one; `marked` ones stand out.

    values, low, high, marked: shape (rows,).
    """
    if not _rows_fit(labels, values) or not np.isfinite(np.asarray(values, float)).any():
        return ""
    lows, highs = (np.full(len(labels), np.nan) if end is None else np.asarray(end, float) for end in (low, high))
    shown = range(min(len(labels), MOST_ROWS))
    ends = np.concatenate([np.asarray(values, float)[: len(shown)], lows[: len(shown)], highs[: len(shown)], [0.0]])
    sentence = ", ".join(f"{labels[row]} {wording(float(values[row]))}" for row in list(shown)[:8])
    svg, across, bottom = _rows(f"{x_label}: {sentence}", labels, ends[np.isfinite(ends)], x_label, wording)
    out = np.zeros(len(labels), bool) if marked is None else np.asarray(marked, bool)
    for row in shown:
        _bar(svg, across, _HEAD + ROW * row, float(values[row]), float(lows[row]), float(highs[row]), bool(out[row]))
    line(svg, across.at(0), _HEAD, across.at(0), bottom)
    return written(svg)


def boxes(
    labels: Sequence[str],
    quantiles: np.ndarray,
    *,
    x_label: str,
    marked: np.ndarray | None = None,
    wording: Wording = number,
) -> str:
    """A box for each row: from the lower to the upper quartile with the median, and whiskers where five are given.

    quantiles: shape (rows, 3) or (rows, 5), rising.
    marked: shape (rows,).
    """
    held = np.asarray(quantiles)
    if held.ndim != 2 or held.shape[1] not in (3, 5) or not _rows_fit(labels, held[:, 0]):
        return ""
    held = held[:MOST_ROWS].astype(float)
    finite = held[np.isfinite(held)]
    if not finite.size:
        return ""
    middle = held.shape[1] // 2
    sentence = ", ".join(f"{label} {wording(median)}" for label, median in zip(labels, held[:8, middle], strict=False))
    svg, across, _ = _rows(f"Medians of {x_label}: {sentence}", labels, finite, x_label, wording)
    out = np.zeros(len(labels), bool) if marked is None else np.asarray(marked, bool)
    for row, levels in enumerate(held):
        if np.isfinite(levels).all():
            _box(svg, across, _HEAD + ROW * row, levels, bool(out[row]))
    return written(svg)


def strip(labels: Sequence[str], counts: np.ndarray, *, low: float, high: float, x_label: str, wording: Wording) -> str:
    """For each row a band of cells from `low` to `high`: the darker, the more of the row's counts lie there.

    counts: shape (rows, bins).
    """
    held = np.asarray(counts)
    if held.ndim != 2 or not held.size or not _rows_fit(labels, held[:, 0]):
        return ""
    held = held[:MOST_ROWS].astype(float)
    share = held / np.maximum(held.sum(1, keepdims=True), 1)
    most = [low + (high - low) * (int(row.argmax()) + 0.5) / held.shape[1] for row in held]
    sentence = ", ".join(f"{label} {wording(value)}" for label, value in zip(labels, most[:8], strict=False))
    where = f"Where most of each lie, by {x_label}: {sentence}"
    svg, across, _ = _rows(where, labels, np.array([low, high]), x_label, wording)
    left, step = across.at(low), (across.at(high) - across.at(low)) / held.shape[1]
    _cells(svg, np.sqrt(share / max(share.max(), 1e-12)), (left, _HEAD + 3), (step, ROW - 6), (step, ROW))
    for row in range(len(held)):
        line(svg, left, _HEAD + ROW * (row + 1) - 3, across.at(high), _HEAD + ROW * (row + 1) - 3, stroke_opacity="0.2")
    return written(svg)


def matrix(
    labels: Sequence[str],
    values: np.ndarray,
    *,
    columns: Sequence[str] | None = None,
    wording: Wording = number,
    signed: bool = False,
    darkest: str = "high",
) -> str:
    """Rows by columns; the darker the cell, the higher its value, or with darkest="low" the lower.

    The first 100 rows and columns are drawn.

    values: shape (rows, columns). Without `columns` these are the rows again, and the diagonal is left out.
    signed: values below zero are drawn in another colour.
    """
    held, across = np.asarray(values), labels if columns is None else columns
    if held.ndim != 2 or held.shape != (len(labels), len(across)) or not is_real(held):
        return ""
    held = held[:MOST_CELLS, :MOST_CELLS].astype(float)
    if columns is None and not signed:
        held[np.eye(len(held), dtype=bool)] = np.nan
    if not np.isfinite(held).any():
        return ""
    names, heads = ([cut(label, 14) for label in some[:MOST_CELLS]] for some in (labels, across))
    left = margin(names) if len(names) <= _NAMED_ROWS else 12.0
    cell = min((RIGHT - left) / len(heads), 40.0)
    top = 22.0 if len(heads) > _NAMED_COLUMNS or max(map(len, heads)) <= 2 else 14 + LETTER * max(map(len, heads))
    sentence = f"{len(names)} by {len(heads)} values from {wording(np.nanmin(held))} to {wording(np.nanmax(held))}"
    svg = canvas(sentence + _outermost(labels, across, held), top + cell * len(names) + 10)
    _shade(svg, held, left, top, cell, signed=signed, darkest=darkest)
    _names(svg, names, heads, left, top, cell)
    _numbers(svg, held, left, top, cell, wording)
    return written(svg)


def dendrogram(labels: Sequence[str], tree: np.ndarray, order: np.ndarray, *, x_label: str) -> str:
    """Which rows are joined first: a tree from the rows at the left to their common root at the right.

    tree: shape (rows − 1, 4), as scipy's `linkage` gives it (two parts, height, size).
    order: the rows from top to bottom, shape (rows,).
    """
    held, places = np.asarray(tree), np.asarray(order)
    rows = len(places)
    if held.ndim != 2 or held.shape != (rows - 1, 4) or rows != len(labels) or not 2 <= rows <= MOST_CELLS:
        return ""
    if not np.isfinite(held).all():
        return ""
    names = [labels[int(row)] for row in places]
    first = held[0]
    sentence = f"{rows} rows; nearest of all, at {number(float(first[2]))}: {labels[int(first[0])]} and "
    svg, across, _ = _rows(
        sentence + str(labels[int(first[1])]), names, np.append(held[:, 2], 0.0), x_label, number, rows
    )
    heights = {int(row): _HEAD + ROW * (index + 0.5) for index, row in enumerate(places)}
    reached = dict.fromkeys(heights, 0.0)
    for step, (one, other, height, _) in enumerate(held):
        up, down = heights[int(one)], heights[int(other)]
        right = across.at(float(height))
        path = f"M{across.at(reached[int(one)]):.1f} {up:.1f}H{right:.1f}V{down:.1f}H"
        shape(svg, "path", d=f"{path}{across.at(reached[int(other)]):.1f}", fill="none", class_="accent")
        heights[rows + step], reached[rows + step] = (up + down) / 2, float(height)
    return written(svg)


def _rows_fit(labels: Sequence[str], values: np.ndarray) -> bool:
    return np.ndim(values) == 1 and 0 < len(labels) == len(values) and is_real(np.asarray(values))


def _rows(
    sentence: str, labels: Sequence[str], values: np.ndarray, x_label: str, wording: Wording, most: int = MOST_ROWS
) -> tuple[ET.Element, Axis, float]:
    """The canvas with the rows' names at the left and an axis under them."""
    names = [cut(str(label), _LONGEST_CONFUSION if "→" in str(label) else LONGEST) for label in labels[:most]]
    bottom = _HEAD + ROW * len(names)
    more = len(labels) - len(names)
    svg = canvas(sentence, bottom + _FOOT + (20 if more else 0))
    across = linear_axis(values, margin(names), RIGHT)
    for row, name in enumerate(names):
        text(svg, across.start - 8, _HEAD + ROW * (row + 0.5) + 4, name, anchor="end")
    grid(svg, across, _HEAD, bottom)
    draw_across(svg, across, wording, bottom)
    room = int((WIDTH - 4) / LETTER)
    text(svg, WIDTH / 2, bottom + _FOOT - 6, x_label[:room], anchor="middle")
    if more:
        text(svg, WIDTH / 2, bottom + _FOOT + 14, f"and {counted(more, 'further row')} not drawn", anchor="middle")
    return svg, across, bottom


def _bar(svg: ET.Element, across: Axis, top: float, value: float, low: float, high: float, marked: bool) -> None:
    middle = top + ROW / 2
    if np.isfinite(value):
        left, right = sorted((across.at(0), across.at(value)))
        style = "column marked" if marked else "column"
        shape(svg, "rect", x=left, y=top + 4, width=right - left, height=ROW - 8, class_=style, stroke="none")
    if np.isfinite(low) and np.isfinite(high):
        ends = f"M{across.at(low):.1f} {middle - 4:.1f}v8M{across.at(high):.1f} {middle - 4:.1f}v8"
        path = f"{ends}M{across.at(low):.1f} {middle:.1f}H{across.at(high):.1f}"
        shape(svg, "path", d=path, fill="none", stroke_width="1.6")


def _box(svg: ET.Element, across: Axis, top: float, levels: np.ndarray, marked: bool) -> None:
    middle = top + ROW / 2
    quartiles = levels[1:4] if len(levels) == 5 else levels
    lower, median, upper = (across.at(float(level)) for level in quartiles)
    if len(levels) == 5:
        line(svg, across.at(float(levels[0])), middle, lower, middle)
        line(svg, upper, middle, across.at(float(levels[4])), middle)
    style = "box-of marked" if marked else "box-of"
    shape(svg, "rect", x=lower, y=top + 4, width=max(upper - lower, 1.0), height=ROW - 8, class_=style)
    line(svg, median, top + 3, median, top + ROW - 3, stroke_width="2.5")


def _cells(
    svg: ET.Element,
    shades: np.ndarray,
    corner: tuple[float, float],
    size: tuple[float, float],
    pitch: tuple[float, float],
    style_class: str = "",
) -> None:
    """Cells of the same shade as one path: a matrix of 100 rows stays small. Sizes and pitches go across and down."""
    levels = np.ceil(np.nan_to_num(shades) * _LEVELS).astype(int)
    outline = f"h{size[0]:.1f}v{size[1]:.1f}h-{size[0]:.1f}z"
    for level in range(1, _LEVELS + 1):
        places = [(corner[0] + c * pitch[0], corner[1] + r * pitch[1]) for r, c in np.argwhere(levels == level)]
        if places:
            path = "".join(f"M{x:.1f} {y:.1f}{outline}" for x, y in places)
            style = f"cell {style_class}".strip()
            shape(svg, "path", d=path, class_=style, fill_opacity=f"{0.6 * level / _LEVELS:.2f}", stroke="none")


def _shade(
    svg: ET.Element, held: np.ndarray, left: float, top: float, cell: float, *, signed: bool, darkest: str
) -> None:
    corner, pitch = (left, top), (cell, cell)
    size = (cell - min(1.0, cell / 8),) * 2
    if signed:
        scale = max(float(np.nanmax(np.abs(held))), 1e-12)
        _cells(svg, np.clip(held / scale, 0, 1), corner, size, pitch)
        _cells(svg, np.clip(-held / scale, 0, 1), corner, size, pitch, "below")
        return
    low, high = float(np.nanmin(held)), float(np.nanmax(held))
    shades = (held - low) / (high - low) if high > low else np.ones_like(held)
    _cells(svg, 1 - shades if darkest == "low" else shades, corner, size, pitch)


def _names(svg: ET.Element, names: Sequence[str], heads: Sequence[str], left: float, top: float, cell: float) -> None:
    small = {"font_size": f"{min(13.0, cell * 0.9):.1f}"}
    for index, name in enumerate(names if len(names) <= _NAMED_ROWS else ()):
        text(svg, left - 6, top + cell * (index + 0.5) + 4, name, anchor="end", **small)
    for index, name in enumerate(heads if len(heads) <= _NAMED_COLUMNS else ()):
        x = left + cell * (index + 0.5)
        if max(map(len, heads)) <= 2:
            text(svg, x, top - 8, name, anchor="middle", **small)
        else:
            text(svg, x + 4, top - 6, name, transform=f"rotate(-90 {x + 4:.1f} {top - 6:.1f})", **small)


def _numbers(svg: ET.Element, held: np.ndarray, left: float, top: float, cell: float, wording: Wording) -> None:
    size = min(11.0, cell / 3)
    longest = max(len(wording(float(value))) for value in held[np.isfinite(held)])
    if size < _LEGIBLE or longest * size * 0.6 > cell:
        return
    for (row, column), value in np.ndenumerate(held):
        if np.isfinite(value):
            x, y = left + cell * (column + 0.5), top + cell * (row + 0.5) + size / 3
            text(svg, x, y, wording(float(value)), anchor="middle", font_size=f"{size:.1f}")


def _outermost(labels: Sequence[str], heads: Sequence[str], held: np.ndarray) -> str:
    """Where the highest and the lowest value stand, in words."""
    width = held.shape[1]
    (top, right), (bottom, left) = (divmod(int(which(held)), width) for which in (np.nanargmax, np.nanargmin))
    return f"; highest at {labels[top]}, {heads[right]}; lowest at {labels[bottom]}, {heads[left]}"
