"""Figures of quantities against quantities, each a pure function from arrays to SVG text: curve, scatter, histogram.

Rooms name arrays and never plot; `weakspot.report.drawings` takes the values that a declared figure names. What cannot
be drawn gives "".
"""

from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from weakspot.formatting import number
from weakspot.report.axes import Axis, Wording, is_real, linear_axis, log_axis
from weakspot.report.svg import (
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    canvas,
    draw_across,
    draw_up,
    hint,
    legend,
    legend_height,
    line,
    margin,
    series,
    shape,
    text,
    written,
)

HEIGHT = 260
BOTTOM = 212.0
MOST_POINTS = 4000
MOST_LINES = 12


def curve(
    x: np.ndarray,
    y: np.ndarray,
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    band: tuple[np.ndarray, np.ndarray] | None = None,
    x_text: Wording = number,
    y_text: Wording = number,
) -> str:
    """A line through the points (x, y), its last point named; "" if there is no point that can be drawn.

    x, y: shape (points,).
    band: the lower and upper end of the interval of each point.
    x_text, y_text: how values are worded.
    """
    points = drawable(x, y, log_x=log_x)
    if not len(points):
        return ""
    edges = [drawable(x, edge, log_x=log_x) for edge in band or ()]
    heights = np.concatenate([points[:, 1], *(edge[:, 1] for edge in edges)])
    (first_x, first_y), (last_x, last_y) = points[0], points[-1]
    sentence = f"{y_label} by {x_label}: {y_text(first_y)} at {x_text(first_x)}, {y_text(last_y)} at {x_text(last_x)}"
    svg = canvas(sentence, HEIGHT)
    across, up = _frame(svg, _Scale(points[:, 0], x_label, x_text, log_x), _Scale(heights, y_label, y_text))
    if len(edges) == 2 and len(edges[0]) == len(edges[1]):
        around = np.concatenate([edges[0], edges[1][::-1]])
        shape(svg, "polygon", points=_path(around, across, up), class_="band", stroke="none")
    shape(svg, "polyline", points=_path(points, across, up), fill="none", class_="accent", stroke_width="2.5")
    end_x, end_y = across.at(last_x), up.at(last_y)
    shape(svg, "circle", cx=end_x, cy=end_y, r=4, class_="accent dot")
    falling = len(points) > 1 and points[-2, 1] > last_y
    text(svg, end_x, end_y + (20 if falling else -10), y_text(last_y), anchor="end", font_weight="600")
    return written(svg)


def curves(
    x: np.ndarray,
    lines: Mapping[str, np.ndarray],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    x_text: Wording = number,
    y_text: Wording = number,
) -> str:
    """Several lines over the same x, with a legend; the first twelve are drawn.

    x: shape (points,).
    lines: by name, each of shape (points,).
    """
    points_of = {name: drawable(x, y, log_x=log_x) for name, y in lines.items()}
    drawn = {name: points for name, points in points_of.items() if len(points)}
    drawn = dict(list(drawn.items())[:MOST_LINES])
    if not drawn:
        return ""
    every = np.concatenate(list(drawn.values()))
    ends = ", ".join(f"{name} {y_text(points[-1, 1])}" for name, points in drawn.items())
    svg = canvas(f"{y_label} by {x_label}; at the end: {ends}", HEIGHT + legend_height(list(drawn)))
    across, up = _frame(svg, _Scale(every[:, 0], x_label, x_text, log_x), _Scale(every[:, 1], y_label, y_text))
    for index, (name, points) in enumerate(drawn.items()):
        path = _path(points, across, up)
        hint(shape(svg, "polyline", points=path, fill="none", stroke_width="2.5", **series(index)), name)
    legend(svg, list(drawn), HEIGHT + 12)
    return written(svg)


def scatter(
    x: np.ndarray,
    y: np.ndarray,
    *,
    x_label: str,
    y_label: str,
    marked: np.ndarray | None = None,
    names: tuple[str, str] = ("marked", "others"),
    log_x: bool = False,
) -> str:
    """A dot for each point (x, y); `marked` ones stand out, and `names` says what they and the others are.

    x, y, marked: shape (points,). Of more than 4,000 points every second, third … is drawn.
    """
    if np.ndim(x) != 1 or np.shape(x) != np.shape(y) or not is_real(x, y):
        return ""
    out = np.zeros(len(x), bool) if marked is None else np.asarray(marked, bool)
    points = np.column_stack([x, y, out]).astype(np.float64)
    points = points[np.isfinite(points).all(1) & ((points[:, 0] > 0) | (not log_x))]
    if not len(points):
        return ""
    points = points[:: -(-len(points) // MOST_POINTS)]
    kinds = [name for name, some in zip(names, (out.any(), (~out).any()), strict=True) if some]
    sentence = f"{len(points):,} points: {y_label} against {x_label}"
    svg = canvas(sentence, HEIGHT + (24 if marked is not None else 0))
    across, up = _frame(svg, _Scale(points[:, 0], x_label, log=log_x), _Scale(points[:, 1], y_label), zero=False)
    for value, style in ((0.0, "dots"), (1.0, "dots marked")):
        dots = points[points[:, 2] == value]
        if len(dots):
            path = "".join(f"M{across.at(px):.1f} {up.at(py):.1f}h0" for px, py, _ in dots)
            shape(svg, "path", d=path, class_=style, fill="none")
    if marked is not None:
        _kinds(svg, kinds, names)
    return written(svg)


def histogram(
    counts: np.ndarray,
    edges: np.ndarray,
    *,
    x_label: str,
    y_label: str = "inputs",
    marked: np.ndarray | None = None,
    names: tuple[str, str] = ("marked", "others"),
    x_text: Wording = number,
) -> str:
    """A column for each bin; `marked` of its counts stand out at its foot.

    counts, marked: shape (bins,).
    edges: shape (bins + 1,).
    """
    heights, borders = np.asarray(counts), np.asarray(edges)
    if heights.ndim != 1 or borders.shape != (len(heights) + 1,) or not is_real(heights, borders) or not heights.sum():
        return ""
    tallest = int(heights.argmax())
    sentence = (
        f"{number(int(heights.sum()))} {y_label} by {x_label}; "
        f"most, {number(int(heights[tallest]))}, from {x_text(borders[tallest])} to {x_text(borders[tallest + 1])}"
    )
    svg = canvas(sentence, HEIGHT + (24 if marked is not None else 0))
    across, up = _frame(svg, _Scale(borders, x_label, x_text), _Scale(heights, y_label))
    _columns(svg, heights, borders, across, up, "column")
    if marked is not None:
        _columns(svg, np.asarray(marked), borders, across, up, "column marked")
        _kinds(svg, list(names), names)
    return written(svg)


def drawable(x: np.ndarray, y: np.ndarray, *, log_x: bool) -> np.ndarray:
    """The finite points in the order of x, shape (points, 2); none if x and y do not belong together.

    >>> drawable(np.array([3, 1, 0]), np.array([0.5, np.nan, 0.1]), log_x=True).tolist()
    [[3.0, 0.5]]
    """
    first, second = np.asarray(x), np.asarray(y)
    if first.ndim != 1 or first.shape != second.shape or not is_real(first, second):
        return np.empty((0, 2))
    points = np.column_stack([first, second]).astype(np.float64)
    keep = np.isfinite(points).all(1) & ((points[:, 0] > 0) | (not log_x))
    return np.asarray(points[keep][np.argsort(points[keep, 0], kind="stable")])


class _Scale(NamedTuple):
    """One direction of a figure: the values to be shown, its name, and how a value is worded."""

    values: np.ndarray
    label: str
    wording: Wording = number
    log: bool = False


def _frame(svg: ET.Element, x: _Scale, y: _Scale, *, zero: bool = True) -> tuple[Axis, Axis]:
    """Both axes with their names; `zero`: the upward one begins at zero."""
    up = linear_axis(np.append(y.values, 0.0) if zero else y.values, BOTTOM, TOP)
    left = margin([y.wording(tick) for tick in up.ticks])
    across = (log_axis if x.log else linear_axis)(x.values, left, RIGHT)
    draw_up(svg, up, y.wording, left)
    draw_across(svg, across, x.wording, BOTTOM)
    most_letters = int((WIDTH - 4) / LETTER)
    text(svg, (left + RIGHT) / 2, HEIGHT - 8, x.label[:most_letters], anchor="middle")
    text(svg, 2, 14, y.label[:most_letters])
    return across, up


def _path(points: np.ndarray, across: Axis, up: Axis) -> str:
    return " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in points)


def _columns(svg: ET.Element, heights: np.ndarray, edges: np.ndarray, across: Axis, up: Axis, style: str) -> None:
    places = [across.at(float(edge)) for edge in edges]
    for left, right, height in zip(places[:-1], places[1:], heights, strict=True):
        top = up.at(float(height))
        if height:
            attributes = {"x": left, "y": top, "width": max(right - left - 0.6, 0.6), "height": BOTTOM - top}
            shape(svg, "rect", class_=style, stroke="none", **attributes)
    line(svg, across.start, BOTTOM, RIGHT, BOTTOM)


def _kinds(svg: ET.Element, there: list[str], names: tuple[str, str]) -> None:
    """What the two colours mean."""
    for index, (name, style) in enumerate(zip(names, ("dot marked", "dot"), strict=True)):
        if name in there:
            shape(svg, "circle", cx=18.0 + 200 * index, cy=HEIGHT + 12, r=5, class_=style, stroke="none")
            text(svg, 30 + 200 * index, HEIGHT + 16, name)
