"""What the commands print: for people as lines, for programs as entries of JSON."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from weakspot.core.costs import Cost
    from weakspot.core.engine import Footprint
    from weakspot.core.finding import Finding
    from weakspot.core.layers import Layer
    from weakspot.core.speed import Tried


def finding_entry(finding: "Finding", rows: int | None = None) -> dict[str, Any]:
    """A Finding without its arrays, with so many rows of its table."""
    from weakspot.core.digest import canonical

    held = 0 if finding.table is None else finding.table.num_rows
    entry = {"name": finding.name, "about": finding.about, "summary": canonical(finding.summary), "rows": held}
    if rows is None:
        return entry
    first = [] if finding.table is None else finding.table.slice(0, rows).to_pylist()
    return {**entry, "table": [{name: _plain(value) for name, value in row.items()} for row in first]}


def _plain(value: Any) -> Any:
    """A cell as JSON has it: what is no number there, and dates, as text."""
    from weakspot.core.digest import canonical

    return value.isoformat() if hasattr(value, "isoformat") else canonical(value)


_WIDE = 60
"""Longer values, such as sentences, do not push the descriptions of all others aside."""


def print_finding(finding: "Finding", rows: int) -> None:
    """Name, summary, and so many rows of the table."""
    typer.echo(f"\n{finding.name}: {finding.about}")
    names, values = list(finding.summary), [str(one).replace("\u00a0", " ") for one in finding.summary.values()]
    width, wide = max([20, *map(len, names)]), max([28, *(len(value) for value in values if len(value) <= _WIDE)])
    for name, value, estimate in zip(names, values, finding.summary.values(), strict=True):
        typer.echo(printable(f"  {name:<{width}} {value:<{wide}} {estimate.about}"))
    if rows and finding.table is not None:
        shown = finding.table.slice(0, rows)
        print_table(shown.column_names, [list(map(_cell, row.values())) for row in shown.to_pylist()])


def _cell(value: Any) -> str:
    """As in a table that people read: six digits of a float; all are in the Finding."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def printable(text: str, *, lines: bool = False) -> str:
    r"""Text that breaks no line and steers no terminal, whatever name of a class or sample it holds.

    >>> printable("cat\x1b[31m\n"), printable("a\nb", lines=True)
    ('cat\\x1b[31m\\n', 'a\nb')
    """
    if text.isprintable():
        return text
    return "".join(part if part.isprintable() or (lines and part == "\n") else ascii(part)[1:-1] for part in text)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns of equal width."""
    columns, *rows = ([printable(cell.replace("\u00a0", " ")) for cell in line] for line in [columns, *rows])
    widths = [max(len(line[i]) for line in [columns, *rows]) for i in range(len(columns))]
    for line in [columns, *rows]:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def cost_entry(cost: "Cost", names: Mapping[str, str]) -> dict[str, Any]:
    """One pass of a plan."""
    return {
        "split": cost.planned.split,
        "questions": [names[step.key] for step in cost.planned.steps],
        "reused": list(cost.reused),
        "samples": cost.samples,
        "forward_passes_per_sample": cost.forward_passes,
        "seconds": cost.seconds,
        "state_bytes": cost.state_bytes,
        "row_bytes": cost.row_bytes,
        "workers": cost.footprint.workers,
        "driver_bytes": cost.footprint.driver_bytes,
        "worker_bytes": cost.footprint.worker_bytes,
        "worker_gpu_bytes": cost.footprint.worker_gpu_bytes,
    }


def print_costs(costs: Sequence["Cost"], names: Mapping[str, str]) -> None:
    """The passes of a plan, what is asked in each, and what they cost."""
    for number, cost in enumerate(costs, start=1):
        typer.echo(
            f"pass {number} over {cost.planned.split}: {cost.samples:,} samples × {cost.forward_passes} forward "
            f"passes, about {cost.seconds:,.0f} s, state {cost.state_bytes / 1e6:,.1f} MB, "
            f"rows {cost.row_bytes / 1e6:,.1f} MB"
        )
        for step in cost.planned.steps:
            name = names[step.key]
            typer.echo(f"  {name}{' (there already)' if name in cost.reused else ''}")
    taken = costs[-1].footprint
    disk = sum(cost.row_bytes + cost.state_bytes for cost in costs)
    typer.echo(
        f"in all about {sum(cost.seconds for cost in costs):,.0f} s, disk {disk / 1e6:,.1f} MB{_on_workers(taken)}"
    )


def _on_workers(taken: "Footprint") -> str:
    """How much memory is needed, and where."""
    if taken.worker_bytes is None:
        return f", memory {taken.driver_bytes / 1e6:,.0f} MB"
    gpu = "" if taken.worker_gpu_bytes is None else f" and {taken.worker_gpu_bytes / 1e6:,.0f} MB on its GPU"
    return (
        f" on {taken.workers} worker{'s' * (taken.workers > 1)}, memory {taken.driver_bytes / 1e6:,.0f} MB here, "
        f"{taken.worker_bytes / 1e6:,.0f} MB{gpu} for each worker"
    )


def print_inference_options(tried: Sequence["Tried"]) -> None:
    """How fast the model runs with each choice of inference options, and what that changes."""
    rows = [
        [way.name, "", "", way.trouble]
        if way.per_second is None or way.speedup is None
        else [way.name, f"{way.per_second:,.0f}/s", _speedup(way), _changes(way.changed)]
        for way in tried
    ]
    print_table(["options", "samples", "speed", "against float32"], rows)


def _speedup(way: "Tried") -> str:
    """With the range of the repeats, and "not sure" where some were faster and some slower than the plain way."""
    if way.slowest is None or way.fastest is None:
        return f"{way.speedup:.2f}×"
    doubt = "" if way.sure else ", not sure"
    return f"{way.speedup:.2f}× ({way.slowest:.2f} to {way.fastest:.2f}){doubt}"


def _changes(changed: Mapping[str, float]) -> str:
    most = f"outputs differ by {changed['largest_difference']:.2g} at most"
    share = changed.get("answers_changed")
    return most if share is None else f"{most}, {share:.1%} of the answers change"


def print_answers(findings: Sequence["Finding"]) -> None:
    """Each question with its answer in a sentence."""
    from weakspot.report.headlines import answer, by_room

    for room, of_room in by_room(findings).items():
        answered = answer(room, of_room)
        sentence = "".join(part.text for part in answered.sentence).replace("\u00a0", " ")
        typer.echo(f"{answered.question} {printable(sentence)}")


def skipped_lines(data: Mapping[str, Mapping[str, Any]], run: str, *, most: int = 3) -> list[str]:
    """For each split with samples that were left out, how many, and the first of them with the reason."""
    lines = []
    for split, noted in data.items():
        skipped = noted.get("skipped")
        if skipped:
            lines.append(
                f"{len(skipped)} samples of {split} cannot be used and were left out; all are listed in {run}:"
            )
            lines += [f"  {printable(reason)}" for reason in list(skipped.values())[:most]]
    return lines


def print_layers(layers: Sequence["Layer"]) -> None:
    """Name, kind, shape of the output, and the activation that follows."""
    rows = [
        [layer.label, layer.kind, "×".join(map(str, layer.shape)), layer.activation or "", "yes" * layer.weighted]
        for layer in layers
    ]
    print_table(["layer", "kind", "output", "activation", "in all"], rows)
