"""The command line: parses, calls the library, prints. Everything heavy is imported inside the commands."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weakspot._version import __version__
from weakspot.asking import QUESTIONS
from weakspot.core.errors import ConfigError, WeakspotError

if TYPE_CHECKING:
    from weakspot.cli.config import Config
    from weakspot.core.finding import Finding

app = typer.Typer(
    help="Find where a neural network can't be trusted, see why, and prove the fix.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ConfigFile = Annotated[Path, typer.Argument(help="The file that says what to examine, usually weakspot.yaml.")]
RunFolder = Annotated[Path, typer.Argument(help="The folder of a Run.")]
RunOption = Annotated[
    Path | None, typer.Option("--run", help="Folder of the Run; by default runs/ and the file's name.")
]
Limit = Annotated[int | None, typer.Option(help="Examine at most so many samples of each split, drawn at random.")]
ProbeOption = Annotated[
    list[str] | None, typer.Option("--probe", help="Ask this probe too: its name, or module:Class.")
]
BatchSize = Annotated[int, typer.Option(help="Samples per forward pass.")]
ShardSize = Annotated[int, typer.Option(help="Samples per unit of work that is kept when a run is interrupted.")]
Workers = Annotated[int, typer.Option(help="Threads that read ahead.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1 …; by default what the file says.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]


SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="An option of the question, as name=value; may be given several times."),
]


@app.callback()
def main() -> None:
    """Find where a neural network can't be trusted, see why, and prove the fix."""


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


@app.command()
def demo(
    run: Annotated[Path, typer.Option("--run", help="Folder of the Run.")] = Path("runs/demo"),
    quiet: Quiet = False,
) -> None:
    """Examine an embedded model on embedded data, and write a report."""
    from weakspot.cli import work
    from weakspot.cli.demo import CONFIG

    _tell(work.examine(CONFIG, Path.cwd(), run, silent=quiet), run, as_json=False, quiet=quiet)
    report(run, quiet=quiet)


@app.command()
def examine(
    config: ConfigFile,
    run: RunOption = None,
    limit: Limit = None,
    probe: ProbeOption = None,
    batch_size: BatchSize = 64,
    shard_size: ShardSize = 1024,
    workers: Workers = 2,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer what the file asks. Interrupted, the same command goes on where it stopped."""
    from weakspot.cli.config import read_config

    execution = {"batch_size": batch_size, "shard_size": shard_size, "workers": workers}
    how = {"limit": limit, "probes": probe or [], "execution": execution, "device": device}
    _answer(config, read_config(config), run, how, as_json=as_json, quiet=quiet)


def _ask(room: str) -> Any:
    """The command that asks one question of a room."""

    def ask(
        config: ConfigFile,
        settings: SetOption = None,
        run: RunOption = None,
        limit: Limit = None,
        batch_size: BatchSize = 64,
        device: Device = None,
        as_json: Json = False,
        quiet: Quiet = False,
    ) -> None:
        from weakspot.cli.config import read_config

        read = read_config(config)
        options = {**(read.ask.get(room) or {}), **_settings(settings or [])}
        asked = read.model_copy(update={"ask": {room: options}})
        how = {"limit": limit, "execution": {"batch_size": batch_size}, "device": device}
        _answer(config, asked, run, how, as_json=as_json, quiet=quiet)

    return ask


for _room, _question in QUESTIONS.items():
    app.command(_room, help=f"{_question} Asks this alone, with the file's options and those given here.")(_ask(_room))


@app.command()
def plan(
    config: ConfigFile,
    run: RunOption = None,
    limit: Limit = None,
    probe: ProbeOption = None,
    batch_size: BatchSize = 64,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Say what an examination would cost in passes, time, memory and disk, by trying a few batches."""
    from weakspot.cli import work
    from weakspot.cli.config import read_config
    from weakspot.cli.printing import cost_entry, print_costs
    from weakspot.core.job import Execution
    from weakspot.core.run import MANIFEST, Run

    read = read_config(config)
    subject, data, planned = work.prepare(read, config.parent, limit=limit, probes=probe or [], device=device)
    folder = work.run_folder(config, read, run)
    there = Run.open(folder) if (folder / MANIFEST).exists() else None
    costs = list(planned.costs(subject, data, there, execution=Execution(batch_size=batch_size)))
    if as_json:
        typer.echo(json.dumps([cost_entry(cost, planned.names) for cost in costs], indent=1))
    else:
        print_costs(costs, planned.names)


@app.command()
def layers(config: ConfigFile, device: Device = None, as_json: Json = False) -> None:
    """List the layers of the model, with their shapes and the activation that follows each."""
    from dataclasses import asdict

    import numpy as np

    from weakspot.cli.config import read_config
    from weakspot.cli.loading import load
    from weakspot.cli.printing import print_layers

    subject, data = load(read_config(config), config.parent, device=device)
    found = subject.layers(next(iter(data.values())).read(np.arange(1)).inputs)
    if as_json:
        typer.echo(json.dumps([{**asdict(layer), "label": layer.label} for layer in found], indent=1))
    else:
        print_layers(found)


@app.command()
def show(
    run: RunFolder,
    name: Annotated[str | None, typer.Argument(help="A Finding of the Run; without it all are shown.")] = None,
    rows: Annotated[int, typer.Option(help="Rows of the table to print.")] = 10,
    as_json: Json = False,
) -> None:
    """Print the Findings of a Run."""
    from weakspot.cli.printing import finding_entry, print_finding
    from weakspot.core.run import Run

    opened = Run.open(run)
    findings = [opened[name]] if name else list(opened)
    if as_json:
        typer.echo(json.dumps([finding_entry(finding) for finding in findings], indent=1))
        return
    for finding in findings:
        print_finding(finding, rows if name else 0)


@app.command()
def laws(
    probe: Annotated[str, typer.Argument(help="The probe: its name, or module:Class.")],
    folder: Annotated[Path, typer.Option(help="Where the module lies.")] = Path(),
    quiet: Quiet = False,
) -> None:
    """Try every law on a probe: any batch size, shards, order, engine and interruption give the same Finding."""
    from weakspot.asking import find_probe
    from weakspot.cli.loading import modules_beside
    from weakspot.laws import LAWS, check

    with modules_beside(folder):
        found = find_probe(probe)
        check(found)
    if not quiet:
        typer.echo(f"{found.name()} keeps all {len(LAWS)} laws, for {', '.join(found.tasks)}")


@app.command()
def report(
    run: RunFolder,
    output: Annotated[Path | None, typer.Option(help="The file to write; by default report.html in the Run.")] = None,
    quiet: Quiet = False,
) -> None:
    """Write a Run as one HTML file that opens without a network."""
    from weakspot.core.run import Run
    from weakspot.report.html import write_report

    written = write_report(Run.open(run), output or run / "report.html")
    if not quiet:
        typer.echo(f"report: {written}")


def run() -> None:
    """The command `weakspot`: exit code 0 when all is well, 1 when a gate failed, 2 for an error."""
    try:
        app()
    except WeakspotError as error:
        typer.echo(f"weakspot: {error}", err=True)
        sys.exit(2)


def _answer(
    file: Path, config: "Config", run: Path | None, how: Mapping[str, Any], *, as_json: bool, quiet: bool
) -> None:
    """Answer what a configuration asks, and print it."""
    from weakspot.cli import work

    target = work.run_folder(file, config, run)
    findings = work.examine(config, file.parent, target, silent=quiet or as_json, **how)
    _tell(findings, target, as_json=as_json, quiet=quiet)


def _settings(given: Sequence[str]) -> dict[str, Any]:
    """From `name=value` to options; values are read as YAML."""
    import yaml

    options = {}
    for setting in given:
        name, separator, value = setting.partition("=")
        if not separator or not name:
            raise ConfigError(f"--set {setting!r} sets nothing: expected name=value")
        options[name] = yaml.safe_load(value)
    return options


def _tell(findings: Sequence["Finding"], target: Path, *, as_json: bool, quiet: bool) -> None:
    from weakspot.cli.printing import finding_entry, print_finding

    if as_json:
        typer.echo(json.dumps([finding_entry(finding) for finding in findings], indent=1))
    elif not quiet:
        for finding in findings:
            print_finding(finding, rows=0)
        typer.echo(f"run: {target}")
