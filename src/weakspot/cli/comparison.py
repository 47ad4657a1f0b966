"""What `weakspot compare` prints: which inputs changed, one line for each fact, the groups that differ."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from weakspot.compare import Comparison, Difference
    from weakspot.compare.flips import FlippedInputs

_MOST_LINES = 8
_MOST_NAMES = 6


def print_comparison(comparison: "Comparison", *, every: bool) -> None:
    """For people: what changed, in some eight lines; with `every` all there is."""
    from weakspot.cli.printing import print_table, printable
    from weakspot.formatting import counted

    if comparison.flips is not None:
        _print_flips(comparison.flips, every=every)
    main = comparison.main or [one for one in comparison.differences if one.low is not None]
    shown = comparison.differences if every else main[:_MOST_LINES]
    rows = [_line(one, every=every) for one in shown]
    if rows:
        heads = ["what", "before", "after", "difference", "verdict"]
        print_table(["Finding", *heads, "how"] if every else heads, rows)
    for note in comparison.notes:
        typer.echo(printable(f"note: {note}"))
    tested = [one for one in comparison.differences if one.low is not None]
    more = "" if every else f"; all {len(comparison.differences)} numbers: --all"
    told = f"{len(comparison.shown())} differ" if comparison.shown() else "no difference shown"
    typer.echo(f"of {counted(len(tested), 'number')} with an interval, {told}{more}")


def _print_flips(flips: "FlippedInputs", *, every: bool) -> None:
    from weakspot.cli.printing import print_table, printable
    from weakspot.formatting import counted, percent

    typer.echo(
        f"of {counted(flips.inputs, 'input')}: {len(flips.fixed):,} fixed, {len(flips.broken):,} broken, "
        f"{len(flips.incorrect):,} still incorrect, {flips.correct:,} still correct"
    )
    for word, names in (("fixed", flips.fixed), ("broken", flips.broken)):
        if names:
            typer.echo(printable(f"  {word}: {_some(names, every=every)}"))
    groups = [one for one in flips.groups if every or one.verdict]
    if groups:
        rows = [
            [f"  {one.by} {one.group}", f"{one.inputs:,}", percent(one.before), percent(one.after), one.verdict or "–"]
            for one in groups
        ]
        print_table(["  accuracy of", "inputs", "before", "after", "verdict"], rows)


def _some(names: Sequence[str], *, every: bool) -> str:
    shown = names if every else names[:_MOST_NAMES]
    return ", ".join(shown) + (f" … and {len(names) - len(shown):,} more" if len(shown) < len(names) else "")


def _line(one: "Difference", *, every: bool) -> list[str]:
    from weakspot.formatting import label

    name = one.name if every else label(one.name)
    line = [name, *(_shown(value, one.unit) for value in (one.before, one.after)), _interval(one), one.verdict]
    return [one.finding, *line, one.how] if every else line


def _shown(value: float, unit: str) -> str:
    from weakspot.formatting import number, roughly

    if unit == "share" and 0 <= value <= 1:
        return roughly(value)
    return number(int(value)) if float(value).is_integer() else number(value)


def _interval(one: "Difference") -> str:
    """The difference with its interval; of shares in points of a hundred."""
    change, points = _signed(one.difference, one.unit), " points" if one.unit == "share" else ""
    if one.low is None or one.high is None:
        return f"{change}{points}"
    return f"{change} ({_signed(one.low, one.unit)} to {_signed(one.high, one.unit)}){points}"


def _signed(value: float, unit: str) -> str:
    """A change with its sign, to three digits.

    >>> _signed(0.0123, "share"), _signed(-3.0, "count"), _signed(0.5, "number")
    ('+1.23', '−3', '+0.5')
    """
    from weakspot.formatting import number

    real = 100 * value if unit == "share" else value
    text = number(int(real)) if float(real).is_integer() else number(float(f"{real:.3g}"))
    return ("+" if real > 0 else "") + text
