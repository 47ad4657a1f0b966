"""What the commands that examine share: what is said meanwhile, and what Ctrl-C means."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from weakspot.asking import session
from weakspot.asking.config import Config
from weakspot.asking.loading import Loaded
from weakspot.asking.progress import Bar
from weakspot.cli.printing import skipped_lines
from weakspot.core.finding import Finding
from weakspot.core.plan import Plan
from weakspot.core.progress import Silent
from weakspot.core.run import MANIFEST
from weakspot.core.source import Source
from weakspot.core.subject import Subject


def prepare(
    config: Config,
    folder: Path,
    *,
    limit: int | None = None,
    probes: Sequence[str] = (),
    sets: Path | None = None,
    silent: bool = False,
) -> tuple[Subject, dict[str, Source], Plan]:
    """The subject, its data and the plan that a configuration means; what the user should know of them is said."""
    loaded, planned = session.prepare(config, folder, limit=limit, probes=probes, sets=sets)
    if not silent:
        tell_notes(loaded)
    return loaded.subject, loaded.data, planned


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
        progress = Silent() if silent else Bar()
        run, findings = session.answered(planned, subject, data, target, execution=config.execution, progress=progress)
    for line in [] if silent else skipped_lines(run.manifest()["data"], str(run.folder / MANIFEST)):
        typer.echo(f"weakspot: {line}", err=True)
    return findings
