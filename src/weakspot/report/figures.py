"""The kinds of figure a report knows, each a pure function from arrays to SVG text.

Rooms name a kind and never plot. Colours come from the page: what must stand out has a class, all else is drawn in the
colour of the text, so a figure also reads well on its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from weakspot.report.wording import number

WIDTH, HEIGHT = 420, 260
RIGHT, TOP, BOTTOM = 402.0, 34.0, 212.0
_FONT = 13
_LETTER = 7.4
"""About how wide a letter is: a server cannot measure text."""

Wording = Callable[[float], str]


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` drawn from `start` to `stop`, with marked values."""

    low: float
    high: float
    start: float
    stop: float
    ticks: tuple[float, ...]
    log: bool = False

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        low, high, own = (log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (self.stop - self.start) * ((own - low) / (high - low) if high > low else 0.5)


def curve(
    x: np.ndarray,
    y: np.ndarray,
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    x_text: Wording = number,
    y_text: Wording = number,
) -> str:
    """A line through the points (x, y), its last point named; "" if there is no point that can be drawn.

    x and y: shape (points,). `x_text` and `y_text` put values into words.
    """
    points = drawable(x, y, log_x=log_x)
    if not len(points):
        return ""
    up = linear_axis(np.append(points[:, 1], 0.0), BOTTOM, TOP)
    left = 12 + _LETTER * max(len(y_text(tick)) for tick in up.ticks)
    across = (log_axis if log_x else linear_axis)(points[:, 0], left, RIGHT)
    (first_x, first_y), (last_x, last_y) = points[0], points[-1]
    told = f"{y_label} by {x_label}: {y_text(first_y)} at {x_text(first_x)}, {y_text(last_y)} at {x_text(last_x)}"
    svg = _canvas(told)
    _draw_axes(svg, across, up, x_text, y_text)
    _text(svg, (left + RIGHT) / 2, HEIGHT - 8, x_label, anchor="middle")
    _text(svg, 2, 14, y_label)
    places = [(across.at(px), up.at(py)) for px, py in points]
    _draw_line(svg, places, y_text(last_y))
    return ET.tostring(svg, encoding="unicode")


def drawable(x: np.ndarray, y: np.ndarray, *, log_x: bool) -> np.ndarray:
    """The finite points in the order of x, shape (points, 2); none if x and y do not belong together.

    >>> drawable(np.array([3, 1, 0]), np.array([0.5, np.nan, 0.1]), log_x=True).tolist()
    [[3.0, 0.5]]
    """
    first, second = np.asarray(x), np.asarray(y)
    if first.ndim != 1 or first.shape != second.shape or not (_is_real(first) and _is_real(second)):
        return np.empty((0, 2))
    points = np.column_stack([first, second]).astype(np.float64)
    keep = np.isfinite(points).all(1) & ((points[:, 0] > 0) | (not log_x))
    return np.asarray(points[keep][np.argsort(points[keep, 0], kind="stable")])


def linear_axis(values: np.ndarray, start: float, stop: float) -> Axis:
    """An axis that ends on round numbers around the values.

    >>> linear_axis(np.array([0.0, 0.17]), 0, 1).ticks
    (0.0, 0.05, 0.1, 0.15, 0.2)
    """
    low, high = float(values.min()), float(values.max())
    high = high if high > low else low + 1
    step = round_step(high - low)
    ticks = tuple(float(f"{index * step:.12g}") for index in range(floor(low / step), ceil(high / step) + 1))
    return Axis(ticks[0], ticks[-1], start, stop, ticks)


def round_step(span: float) -> float:
    """A round distance between marks, so that about four fit into the span."""
    power = 10.0 ** floor(log10(span / 4))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power * 5 >= span)


def log_axis(values: np.ndarray, start: float, stop: float) -> Axis:
    """A logarithmic axis from the smallest to the largest value: powers of ten, and the largest value, are marked.

    >>> log_axis(np.array([1.0, 599.0]), 0, 1).ticks
    (1.0, 10.0, 100.0, 599.0)
    """
    low, high = float(values.min()), float(values.max())
    powers = (10.0**exponent for exponent in range(ceil(log10(low)), ceil(log10(high))))
    return Axis(low, high, start, stop, (*powers, high), log=True)


def _is_real(array: np.ndarray) -> bool:
    return array.dtype.kind in "biuf"


def _canvas(told: str) -> ET.Element:
    return ET.Element(
        "svg",
        {
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "role": "img",
            "aria-label": told,
            "font-family": "inherit",
            "font-size": str(_FONT),
            "fill": "currentColor",
        },
    )


def _draw_axes(svg: ET.Element, across: Axis, up: Axis, x_text: Wording, y_text: Wording) -> None:
    for tick in up.ticks:
        place = up.at(tick)
        _shape(svg, "line", x1=across.start, x2=RIGHT, y1=place, y2=place, **{"stroke-opacity": "0.2"})
        _text(svg, across.start - 8, place + 4, y_text(tick), anchor="end")
    free = float(WIDTH)
    for tick in reversed(across.ticks):
        place, half = across.at(tick), _LETTER * len(x_text(tick)) / 2
        _shape(svg, "line", x1=place, x2=place, y1=BOTTOM, y2=BOTTOM + 5)
        middle = min(place, WIDTH - half)
        if middle + half <= free:
            _text(svg, middle, BOTTOM + 20, x_text(tick), anchor="middle")
            free = middle - half - _LETTER


def _draw_line(svg: ET.Element, places: list[tuple[float, float]], last: str) -> None:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    _shape(svg, "polyline", points=path, fill="none", **{"class": "accent", "stroke-width": "2.5"})
    end_x, end_y = places[-1]
    _shape(svg, "circle", cx=end_x, cy=end_y, r=4, **{"class": "accent dot"})
    _text(svg, end_x, end_y - 10, last, anchor="end", **{"font-weight": "600"})


def _shape(parent: ET.Element, tag: str, **attributes: Any) -> None:
    written = {name: f"{v:.1f}" if isinstance(v, float) else str(v) for name, v in attributes.items()}
    ET.SubElement(parent, tag, {"stroke": "currentColor", **written})


def _text(parent: ET.Element, x: float, y: float, words: str, *, anchor: str = "start", **attributes: str) -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    ET.SubElement(parent, "text", {**place, **attributes}).text = words
