"""Figures as files of their own, for papers and slides."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.files import make_folder, whole_file, writing
from weakspot.report.drawings import DrawnFigure
from weakspot.report.html import figure_files

FORMATS = ("svg", "png", "pdf")
_PIXELS_PER_UNIT = 3
"""Of a PNG: as wide as a page at some 300 dots per inch."""
_COLOUR = re.compile(r"(--[\w-]+): (#[0-9a-f]{6});")
_DARK = re.compile(r"@media screen and \(prefers-color-scheme: dark\) \{.*?\n\}\n", re.DOTALL)


def write_figures(figures: Iterable[tuple[str, DrawnFigure]], folder: Path, format: str) -> list[Path]:
    """A file for each drawing, named after its Finding with a number; gives back where they lie."""
    if format not in FORMATS:
        raise ConfigError(f"format is {format!r}: expected one of {', '.join(FORMATS)}")
    made = [(name, _as(format, drawing)) for name, figure in figures for drawing in figure_files(figure)]
    with writing(folder):
        make_folder(folder)
    numbers: Counter[str] = Counter()
    written = []
    for name, content in made:
        numbers[name] += 1
        written.append(folder / f"{name}-{numbers[name]}.{format}")
        with writing(written[-1]), whole_file(written[-1]) as scratch:
            scratch.write_bytes(content)
    return written


def _as(format: str, drawing: str) -> bytes:
    if format == "svg":
        return drawing.encode()
    convert = getattr(_cairosvg(), f"svg2{format}")
    scale = {"scale": _PIXELS_PER_UNIT} if format == "png" else {}
    return convert(bytestring=with_plain_colours(drawing).encode(), **scale)  # type: ignore[no-any-return]


def with_plain_colours(drawing: str) -> str:
    """A drawing on white paper whose colours stand where they are used: most programs know no variables."""
    light = _DARK.sub("", drawing)
    for name, colour in _COLOUR.findall(light):
        light = light.replace(f"var({name})", colour)
    return light.replace("currentColor", dict(_COLOUR.findall(light))["--ink"])


def _cairosvg() -> Any:
    try:
        import cairosvg
    except ModuleNotFoundError as error:
        raise ConfigError("PNG and PDF need cairosvg: pip install 'weakspot[figures]'; SVG needs nothing") from error
    except OSError as error:  # the library cairo itself is missing
        raise ConfigError(f"PNG and PDF need the library cairo, which cannot be loaded: {error}") from error
    return cairosvg
