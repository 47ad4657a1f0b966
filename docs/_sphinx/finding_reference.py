"""Writes docs/reference-findings.md: what every built-in Finding holds, from the declarations. No torch is needed.

python docs/_sphinx/finding_reference.py
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from weakspot.core.outputs import ArraySpec, Outputs, ValueSpec
from weakspot.rooms import OTHERS, QUESTIONS, rooms

PAGE = Path(__file__).resolve().parents[1] / "reference-findings.md"
COMMAND = "python docs/_sphinx/finding_reference.py"
HEAD = f"""# What every Finding holds

This page is written by `{COMMAND}` from the declarations in the code
(`weakspot.rooms`): do not edit it by hand.

Units: a *share* lies between 0 and 1 and is printed in percent; a *count* is a whole number; a *flag* is true or false.
Better: which way is better; empty where neither is. A name with a star stands for a family, such as one number per
criterion. In *italics*: only there in some cases, for instance with labels or for some tasks.
The role of a column says how it is used: an id joins tables, a prediction is compared with a target.
"""


def page() -> str:
    """The whole page as Markdown."""
    parts = [HEAD]
    for title, findings in sections().items():
        parts.append(f"## {title}\n")
        parts += [described(name, outputs) for name, outputs in findings.items()]
    return "\n".join(parts)


def sections() -> dict[str, Mapping[str, Outputs]]:
    """The Findings under each heading: the rooms by their question, then the packages below them."""
    of_rooms = {f"{name.capitalize()}: {QUESTIONS[name]}": room.findings for name, room in rooms().items()}
    return {**of_rooms, **{name.capitalize(): import_module(f"weakspot.{name}.outputs").FINDINGS for name in OTHERS}}


def described(name: str, outputs: Outputs) -> str:
    """One Finding: tables of its numbers, columns and arrays, and what is drawn and shown."""
    tables = (
        table(("number", "unit", "better", "what it is"), map(number_row, outputs.summary, outputs.summary.values())),
        table(
            ("column", "unit", "role", "better", "what it is"),
            map(column_row, outputs.columns, outputs.columns.values()),
        ),
        table(("array", "axes", "what it is"), map(array_row, outputs.arrays, outputs.arrays.values())),
    )
    figures = "".join(f"- Figure: {cell(figure.caption)}\n" for figure in outputs.figures)
    pictures = f"- Pictures: {cell(outputs.pictures)}.\n" if outputs.pictures else ""
    by_sample = "".join(
        f"- By sample: `{column}` is the array `{values}`, for the samples in `{ids}`.\n"
        for column, (ids, values) in outputs.by_sample.items()
    )
    shown = f"{by_sample}{figures}{pictures}"
    return "\n".join([f"### `{name}`\n", *(one for one in tables if one), *([shown] if shown else [])])


def number_row(name: str, spec: ValueSpec) -> tuple[str, ...]:
    """A number of the summary."""
    of = f" (mean of the column `{spec.mean_of}`)" if spec.mean_of else ""
    return shown_name(name, optional=spec.optional), spec.unit, spec.better or "", cell(spec.about) + of


def column_row(name: str, spec: ValueSpec) -> tuple[str, ...]:
    """A column of the table."""
    return shown_name(name, optional=spec.optional), spec.unit, spec.role, spec.better or "", cell(spec.about)


def array_row(name: str, spec: ArraySpec) -> tuple[str, ...]:
    """An array."""
    return shown_name(name, optional=spec.optional), " × ".join(spec.axes), cell(spec.about)


def shown_name(name: str, *, optional: bool) -> str:
    """A name as code; in italics where it may be missing."""
    return f"*`{name}`*" if optional else f"`{name}`"


def table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    r"""A Markdown table; nothing where there are no rows.

    >>> table(("a", "b"), iter([("1", "2")]))
    '| a | b |\n|---|---|\n| 1 | 2 |\n'
    """
    lines = [f"| {' | '.join(row)} |" for row in rows]
    head = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n".join([*head, *lines]) + "\n" if lines else ""


def cell(text: str) -> str:
    r"""Text that ends no cell and begins no markup.

    >>> print(cell("p(a|b) of [x]"))
    p(a\|b) of \[x\]
    """
    for sign in "\\|*_[]<":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
