"""What the commands that examine share: from a configuration to a plan, and from a plan to Findings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from weakspot.cli.config import Config
from weakspot.cli.loading import Loaded, load, modules_beside, named
from weakspot.cli.printing import skipped_lines
from weakspot.cli.progress import Bar
from weakspot.core.errors import ConfigError
from weakspot.core.files import remove_folder
from weakspot.core.finding import Finding
from weakspot.core.plan import Plan
from weakspot.core.progress import Silent
from weakspot.core.run import MANIFEST, Run
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.registry import steps_for, steps_of


def run_folder(file: Path, config: Config, chosen: Path | None) -> Path:
    """Where the Run goes: as chosen, as the file says, or `runs/` and the file's name."""
    return chosen or file.parent / (config.run or Path("runs") / file.stem)


def prepare(
    config: Config,
    folder: Path,
    *,
    limit: int | None = None,
    probes: Sequence[str] = (),
    sets: Path | None = None,
    silent: bool = False,
) -> tuple[Subject, dict[str, Source], Plan]:
    """The subject, its data and the plan that a configuration means; what is asked is checked before anything runs."""
    planned = plan_for(config, folder, probes)
    loaded = load(config, folder, limit=limit, sets=sets)
    if not planned.steps:
        raise ConfigError("nothing is asked: name questions under ask, or a probe with --probe")
    with named(config, "data"):
        planned.check(loaded.data)
    if not silent:
        tell_notes(loaded)
    return loaded.subject, loaded.data, planned


def plan_for(config: Config, folder: Path, probes: Sequence[str]) -> Plan:
    """The plan for what is asked in the file and besides."""
    steps = []
    with modules_beside(folder):
        for name, options in config.ask.items():
            with named(config, "ask", name):
                steps += steps_of(name, options or {})
        return Plan.of(steps + steps_for({}, probes))


def tell_notes(loaded: Loaded) -> None:
    """Say once what the user should know about model and data."""
    for note in loaded.notes:
        typer.echo(f"weakspot: {note}", err=True)


@contextmanager
def resumable() -> Iterator[None]:
    """Say what Ctrl-C means here: typer takes it for itself, so that it never reaches the command's end."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("weakspot: stopped; the same command resumes from here", err=True)
        raise typer.Exit(130) from None


@contextmanager
def nothing_half_made(target: Path) -> Iterator[Run]:
    """The Run; where it was not there before and nothing came of it, no trace is left."""
    new, new_parent = not target.exists(), not target.parent.exists()
    run = Run.create(target)
    try:
        yield run
    except (Exception, SystemExit):
        if new and not run.names() and not any((target / "work").glob("*/shard-*")):
            remove_folder(target)
            with suppress(OSError):
                target.parent.rmdir() if new_parent else None
        raise


def examine(
    config: Config,
    folder: Path,
    target: Path,
    *,
    limit: int | None = None,
    probes: Sequence[str] = (),
    silent: bool = False,
) -> list[Finding]:
    """Answer what a configuration asks; the Findings that only others are built from are left out."""
    with resumable():
        subject, data, planned = prepare(
            config, folder, limit=limit, probes=probes, sets=target / "sets", silent=silent
        )
        with nothing_half_made(target) as run:
            progress = Silent() if silent else Bar()
            findings = planned.run(subject, data, run, execution=config.execution, progress=progress)
    for line in [] if silent else skipped_lines(run.manifest()["data"], str(run.folder / MANIFEST)):
        typer.echo(f"weakspot: {line}", err=True)
    groundwork = planned.groundwork()
    return [finding for finding in findings if finding.name not in groundwork]
