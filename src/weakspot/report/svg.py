"""What all figures are drawn with: a canvas that tells in words what it shows, shapes, texts, axes and a legend.

Colours come from the page: what must stand out has a class, all else is drawn in the colour of the text, so a figure
also reads well on its own.
"""

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

from weakspot.report.axes import Axis, Wording

WIDTH = 420
RIGHT, TOP = 402.0, 34.0
LETTER = 7.4
"""About how wide a letter is: a server cannot measure text."""
SERIES = 6
"""So many colours tell series apart; dashes do it besides."""
LONGEST = 20
_FONT = 13
_DASHES = ("", "7 4", "2 3")


def canvas(description: str, height: float) -> ET.Element:
    """An empty drawing, with what it shows in words."""
    return ET.Element(
        "svg",
        {
            "viewBox": f"0 0 {WIDTH} {height:.0f}",
            "role": "img",
            "aria-label": description,
            "font-family": "inherit",
            "font-size": str(_FONT),
            "fill": "currentColor",
        },
    )


def written(svg: ET.Element) -> str:
    """The drawing as text."""
    return ET.tostring(svg, encoding="unicode")


def shape(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """A shape with an outline in the colour of the text; underscores in names stand for hyphens."""
    named = {name.rstrip("_").replace("_", "-"): _value(value) for name, value in attributes.items()}
    return ET.SubElement(parent, tag, {"stroke": "currentColor", **named})


def line(parent: ET.Element, x1: float, y1: float, x2: float, y2: float, **attributes: Any) -> ET.Element:
    """A straight line."""
    return shape(parent, "line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def text(parent: ET.Element, x: float, y: float, words: str, *, anchor: str = "start", **attributes: str) -> None:
    """A line of text; `anchor` says which end of it stands at x."""
    anchored = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    ET.SubElement(parent, "text", {**anchored, **named}).text = words


def hint(parent: ET.Element, words: str) -> None:
    """What the browser says where the pointer rests on a shape."""
    ET.SubElement(parent, "title").text = words


_ARROW = " → "


def cut(name: str, most: int = LONGEST) -> str:
    """A name that fits beside a drawing; of a confusion both sides are cut, so that neither is lost.

    >>> cut("a name that is far too long", 12), cut("bottom right → bottom left", 20)
    ('a name that…', 'bottom… → bottom le…')
    """
    if len(name) <= most:
        return name
    first, arrow, second = name.partition(_ARROW)
    if not arrow:
        return name[: most - 1].rstrip() + "…"
    room = most - len(_ARROW)
    shown = cut(first, max(room // 2, room - len(second)))
    return f"{shown}{_ARROW}{cut(second, room - len(shown))}"


def margin(labels: Sequence[str]) -> float:
    """How much room labels need at the left."""
    return 12 + LETTER * max((len(label) + 2 * label.count("→") for label in labels), default=0)  # an arrow is wide


def series(number: int) -> dict[str, str]:
    """The attributes of the line of a series: its colour, and how it is dashed."""
    return {"class": f"s{number % SERIES}", "stroke-dasharray": _DASHES[number // SERIES % len(_DASHES)] or "none"}


def draw_across(svg: ET.Element, axis: Axis, wording: Wording, bottom: float) -> None:
    """Marks and values under a drawing, from the right; values that would touch the one before are left out."""
    free = float(WIDTH)
    for tick in reversed(axis.ticks):
        x, half = axis.at(tick), LETTER * len(wording(tick)) / 2
        line(svg, x, bottom, x, bottom + 5)
        middle = min(x, WIDTH - half - 4)
        if middle + half <= free:
            text(svg, middle, bottom + 20, wording(tick), anchor="middle")
            free = middle - half - LETTER


def draw_up(svg: ET.Element, axis: Axis, wording: Wording, left: float) -> None:
    """Lines across a drawing at the marked heights, with their values at the left."""
    for tick in axis.ticks:
        y = axis.at(tick)
        line(svg, left, y, RIGHT, y, stroke_opacity="0.2")
        text(svg, left - 8, y + 4, wording(tick), anchor="end")


def grid(svg: ET.Element, axis: Axis, top: float, bottom: float) -> None:
    """Lines from top to bottom at the marked values."""
    for tick in axis.ticks:
        line(svg, axis.at(tick), top, axis.at(tick), bottom, stroke_opacity="0.2")


def legend(svg: ET.Element, names: Sequence[str], top: float) -> None:
    """The names of series in two columns, each beside a piece of its line."""
    for number, name in enumerate(names):
        x, y = 12.0 + 200 * (number % 2), top + 20 * (number // 2)
        line(svg, x, y - 4, x + 26, y - 4, stroke_width="2.5", **series(number))
        text(svg, x + 33, y, cut(name, 22))


def legend_height(names: Sequence[str]) -> float:
    """How much room a legend needs."""
    return 20.0 * -(-len(names) // 2) + 6


def _value(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
