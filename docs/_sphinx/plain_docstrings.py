"""Docstrings as they are written here, plain text with formulas, as the reStructuredText that Sphinx reads."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

OPTION = re.compile(r"(?P<names>[A-Za-z_]\w*(?:, [A-Za-z_]\w*)*): (?P<text>\S.*)")
CLASS_NAME = re.compile(r"[A-Z]\w*[a-z]\w*")
_FIELDS = {"returns": ":returns:"}
MARKUP = re.compile(r"([\\*_|`])")


def setup(app: Any) -> dict[str, bool]:
    """Let every docstring be read so."""
    app.connect("autodoc-process-docstring", rewritten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def rewritten(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring, as autodoc asks for; a constant has its own or none."""
    text = inspect.cleandoc("\n".join(lines))
    inherited = what == "data" and text in (inspect.getdoc(thing), inspect.getdoc(type(thing)))
    lines[:] = [] if inherited else restructured(text)


def restructured(text: str) -> list[str]:
    r"""The lines of reStructuredText that say what a plain docstring says.

    Indented blocks stay as they are, as do examples; lines `name: text` become parameters; all else is a paragraph, in
    which nothing but `code` between backticks is special.

    >>> restructured("A sum, a*b_c.\n\nseed: of the `Draws`.")
    ['\\ A sum, a\\*b\\_c.', '', ':param seed: of the \\ :py:obj:`Draws`\\ .', '']
    >>> restructured("A sum.\n\nof: numbers\n    or more.\nreturns: their sum.")[2:]
    [':param of: numbers or more.', ':returns: their sum.', '']
    """
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text.strip("\n")) if block.strip()]
    return [line for number, block in enumerate(blocks) for line in (*_block(block, number == 0), "")]


def _block(lines: list[str], first: bool) -> Iterator[str]:
    if lines[0].lstrip().startswith(">>>"):
        yield from lines
    elif lines[0].startswith("    "):
        yield from ("::", "", *lines)
    elif not first and (end := _options_of(lines)):
        yield from _options(lines[:end])
        yield from ("", f"\\ {inline(lines[end:])}") if lines[end:] else ()
    else:
        yield f"\\ {inline(lines)}"


def _options_of(lines: list[str]) -> int:
    """How many of the lines describe options: all, or all before a sentence that begins on its own line; else 0."""
    ends = (number for number, line in enumerate(lines) if not OPTION.match(line) and not line.startswith("    "))
    end = next(ends, len(lines))
    whole = end == len(lines) or (end > 0 and lines[end][0].isupper() and lines[end - 1].endswith("."))
    return end if whole else 0


def _options(lines: list[str]) -> Iterator[str]:
    """`name: text` with its indented further lines, as fields."""
    options: list[tuple[str, list[str]]] = []
    for line in lines:
        found = OPTION.match(line)
        if found:
            options.append((found["names"], [found["text"]]))
        else:
            options[-1][1].append(line.strip())
    for names, text in options:
        yield from (f"{_FIELDS.get(name, f':param {name}:')} {inline(text)}" for name in names.split(", "))


def inline(lines: list[str]) -> str:
    r"""One line of text with nothing in it that reStructuredText would misread; names of classes become links.

    >>> inline(["x_i of", "`Rows`"])
    'x\\_i of \\ :py:obj:`Rows`\\ '
    """
    pieces = re.split("`+", " ".join(line.strip() for line in lines))
    if len(pieces) % 2 == 0:  # a backtick without its other half
        return MARKUP.sub(r"\\\1", "`".join(pieces))
    return "".join(_code(piece) if place % 2 else MARKUP.sub(r"\\\1", piece) for place, piece in enumerate(pieces))


def _code(text: str) -> str:
    return rf"\ :py:obj:`{text}`\ " if CLASS_NAME.fullmatch(text) else rf"\ ``{text}``\ "
