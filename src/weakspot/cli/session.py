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
from weakspot.core.progress import Silent
from weakspot.core.run import MANIFEST


def tell_notes(loaded: Loaded, *, silent: bool) -> None:
    """Print what the user should know about model and data."""
    for note in () if silent else loaded.notes:
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
        loaded, planned = session.prepare(config, folder, limit=limit, probes=probes, sets=target / "sets")
        tell_notes(loaded, silent=silent)
        progress = Silent() if silent else Bar()
        run, findings = session.answered(
            planned, loaded.subject, loaded.data, target, execution=config.execution, progress=progress
        )
    for line in [] if silent else skipped_lines(run.manifest()["data"], str(run.folder / MANIFEST)):
        typer.echo(f"weakspot: {line}", err=True)
    return findings
