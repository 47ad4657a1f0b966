"""`weakspot causes`: from error-inducing images to root-cause clusters, and from these to a better model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weakspot.cli.arguments import (
    ConfigFile,
    ExaminationFlags,
    Json,
    Quiet,
    RunFolder,
    SetOption,
    takes_examination_flags,
)
from weakspot.cli.retraining import retrain
from weakspot.cli.room_commands import answer, ask_command, asking_alone, question, with_settings
from weakspot.core.errors import ConfigError

if TYPE_CHECKING:
    from weakspot.asking.config import Config

app = typer.Typer(cls=question("cluster"))
app.command("cluster", help=asking_alone("causes"))(ask_command("causes"))
app.command()(retrain)


@app.command()
@takes_examination_flags
def select(
    *,
    config: ConfigFile,
    budget: Annotated[
        int | None, typer.Option(help="Images to choose; by default as many as there are errors in clusters.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="What chooses: 'heat maps' (by default), 'rules', or a control: 'least confident', 'random'."
        ),
    ] = None,
    settings: SetOption = None,
    flags: ExaminationFlags,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose the unlabelled images that are worth labelling: near the clusters of errors, or by confirmed rules."""
    from weakspot.asking.config import read_config

    asked = selecting(with_settings(flags.applied(read_config(config)), "causes", settings), budget, by)
    answer(config, asked, flags, as_json=as_json, quiet=quiet)


def selecting(config: "Config", budget: int | None, by: str | None = None) -> "Config":
    """The configuration with the unsafe set asked for."""
    options = dict(config.ask["causes"] or {})
    written = options.get("select")
    chosen: dict[str, Any] = {} if budget is None else {"budget": budget}
    chosen |= {} if by is None else {"by": by}
    options["select"] = {**written, **chosen} if isinstance(written, Mapping) else chosen
    return config.model_copy(update={"ask": {"causes": options}})


@app.command()
def label(
    run: RunFolder,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the images to label to this new CSV file.")
    ] = None,
    labels: Annotated[Path | None, typer.Option("--import", help="Read labels from this CSV file.")] = None,
    status: Annotated[bool, typer.Option("--status", help="Say how many labels are still missing.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the images to label as a CSV file, and read the labels back, also of an incomplete file."""
    from weakspot.causes.labelling import UNSAFE, current_labels, export_labels, import_labels
    from weakspot.core.run import Run

    if not (export or labels or status):
        raise ConfigError("label does nothing: give --export FILE, --import FILE or --status")
    opened = Run.open(run)
    if UNSAFE not in opened:
        raise ConfigError(f"{run} has no images to label: choose some with `weakspot causes select CONFIG`")
    labelled = import_labels(opened, labels) if labels else current_labels(opened)
    if export:
        export_labels(opened[UNSAFE], export, labels=labelled)
    numbers: dict[str, Any] = {name: estimate.value for name, estimate in labelled.summary.items()}
    if as_json:
        typer.echo(json.dumps(numbers))
    elif not quiet:
        written = f"; wrote {export}" if export else ""
        typer.echo(f"{numbers['labelled']} labelled, {numbers['missing']} still missing{written}")


@app.command()
@takes_examination_flags
def export(
    *,
    config: ConfigFile,
    output: Annotated[Path | None, typer.Option(help="The new folder; by default clusters in the Run.")] = None,
    train: Annotated[
        bool, typer.Option(help="Also write the predictions for the training data, as train_results.csv.")
    ] = True,
    heat_maps: Annotated[
        bool, typer.Option("--heat-maps", help="Also write the heat maps of every layer; needs keep: all.")
    ] = False,
    settings: SetOption = None,
    flags: ExaminationFlags,
    quiet: Quiet = False,
) -> None:
    """Write a folder per root-cause cluster with its images and an animation, and the distances of every layer."""
    from weakspot.asking.config import read_config
    from weakspot.asking.progress import Bar
    from weakspot.asking.session import nothing_half_made, prepare, run_folder
    from weakspot.causes.export import export_clusters
    from weakspot.causes.room import train_results
    from weakspot.cli.session import resumable, tell_notes
    from weakspot.core.plan import Plan
    from weakspot.core.progress import Silent

    asked = with_settings(flags.applied(read_config(config)), "causes", settings)
    target = run_folder(config, asked, flags.run)
    folder = output or target / "clusters"
    if folder.exists():
        raise ConfigError(f"{folder} exists already: choose another with --output, or remove it")
    with resumable():
        loaded, planned = prepare(asked, config.parent, limit=flags.limit, sets=target / "sets")
        tell_notes(loaded, silent=quiet)
        steps = [step for step in planned.steps if step.key in planned.asked]
        if train and "train" in loaded.data:
            steps.append(train_results(asked.ask["causes"] or {}))
        with nothing_half_made(target) as opened:
            progress = Silent() if quiet else Bar()
            Plan.of(steps).run(loaded.subject, loaded.data, opened, execution=asked.execution, progress=progress)
            left_out = export_clusters(opened, loaded.data["test"], folder, heat_maps=heat_maps)
    if not quiet:
        typer.echo("\n".join([*left_out, f"clusters: {folder}"]))
