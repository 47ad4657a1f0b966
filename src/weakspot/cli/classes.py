"""`weakspot classes`: confused pairs, and the accuracy on unlabelled inputs from few labels."""

import json
from pathlib import Path
from typing import Annotated

import typer

from weakspot.cli.arguments import Json, Quiet, RunFolder
from weakspot.cli.room_commands import ask_command, asking_alone, question
from weakspot.core.errors import ConfigError

app = typer.Typer(cls=question("ask"))
app.command("ask", help=asking_alone("classes"))(ask_command("classes"))


@app.command()
def label(
    run: RunFolder,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the inputs to label to this new CSV file.")
    ] = None,
    labels: Annotated[Path | None, typer.Option("--import", help="Read labels from this CSV file.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the few inputs to label as a CSV file; read the labels back, and estimate the accuracy on all inputs."""
    from weakspot.causes.labelling import RunLabels
    from weakspot.classes.few_labels import PLAN, estimated_accuracy, export_plan, read_plan_labels
    from weakspot.cli.printing import finding_entry, print_finding
    from weakspot.core.run import Run

    opened = Run.open(run)
    plans = [name for name in opened.names() if name.partition("-")[0] == PLAN]
    if not plans:
        raise ConfigError(f"{run} has no inputs to label: ask classes with estimate: {{from: SPLIT, labels: N}}")
    plan, given = opened[plans[0]], RunLabels(opened)
    if labels:
        given.change(read_plan_labels(plan, labels))
    known = given.by_id()
    if export:
        export_plan(plan, export, known)
        if not quiet:
            typer.echo(f"wrote {export}")
        return
    finding = estimated_accuracy(plan, known)
    with opened.locked():
        opened.save(finding)
    if as_json:
        typer.echo(json.dumps(finding_entry(finding), indent=1))
    elif not quiet:
        print_finding(finding, rows=0)
