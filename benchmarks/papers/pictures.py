"""Figures of the report as SVG files for the documentation: their own colours and background, several side by side."""

import re
from collections.abc import Mapping

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Of Okabe and Ito 2008, told apart by colour-blind eyes."""
STYLE = "".join(f".s{number}{{stroke:{colour}}}" for number, colour in enumerate(COLOURS)) + (
    ".dots{stroke:#0072b2;stroke-width:3.5;stroke-linecap:round;stroke-opacity:.45}.dots.marked{stroke:#d55e00}"
    ".column{fill:#56b4e9;stroke:none}.column.marked{fill:#d55e00}"
)
WIDTH, TITLE = 420, 26


def standalone(svg: str) -> str:
    """A figure of the report as a file."""
    style = "".join(f".s{number}{{stroke:{colour}}}" for number, colour in enumerate(COLOURS))
    head, rest = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).split(">", 1)
    head = head.replace('font-family="inherit"', 'font-family="sans-serif" width="630"')
    return f'{head}><style>{style}</style><rect width="100%" height="100%" fill="white" stroke="none"/>{rest}\n'


def beside(panels: Mapping[str, str], *, across: int = 3) -> str:
    """Figures of the report in one file, by their titles, so many in a row."""
    rows = -(-len(panels) // across)
    tall = max(float(_size(svg)) for svg in panels.values())
    width, height = WIDTH * min(across, len(panels)), rows * (tall + TITLE)
    parts = []
    for number, (title, svg) in enumerate(panels.items()):
        left, top = WIDTH * (number % across), (number // across) * (tall + TITLE)
        parts.append(
            f'<text x="{left + WIDTH / 2:g}" y="{top + 18:g}" text-anchor="middle" font-weight="600">{title}</text>'
        )
        parts.append(
            svg.replace("<svg ", f'<svg x="{left}" y="{top + TITLE:g}" width="{WIDTH}" height="{_size(svg)}" ', 1)
        )
    size = f'viewBox="0 0 {width} {height:g}" role="img" font-family="sans-serif" font-size="14"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    inside = "".join(parts).replace('font-family="inherit"', "")
    return f'{head}<style>{STYLE}</style><rect width="100%" height="100%" fill="white"/>{inside}</svg>\n'


def _size(svg: str) -> str:
    found = re.search(r'viewBox="0 0 \d+ (\d+)"', svg)
    assert found is not None
    return found[1]
