"""What the commands that examine share: from a configuration to a plan, and from a plan to Findings."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from weakspot.asking import steps_for
from weakspot.cli.config import Config
from weakspot.cli.loading import load, modules_beside
from weakspot.cli.progress import Bar
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.core.job import Execution
from weakspot.core.plan import Plan
from weakspot.core.progress import Silent
from weakspot.core.run import Run
from weakspot.core.source import Source, limited
from weakspot.core.subject import Subject


def run_folder(file: Path, config: Config, chosen: Path | None) -> Path:
    """Where the Run goes: as chosen, as the file says, or `runs/` and the file's name."""
    return chosen or file.parent / (config.run or Path("runs") / file.stem)


def prepare(
    config: Config, folder: Path, *, limit: int | None, probes: Sequence[str], device: str | None
) -> tuple[Subject, dict[str, Source], Plan]:
    """The subject, its data and the plan that a configuration means."""
    subject, data = load(config, folder, device=device)
    with modules_beside(folder):
        planned = Plan.of(steps_for(config.ask, probes))
    if not planned.steps:
        raise ConfigError("nothing is asked: name questions under ask, or a probe with --probe")
    return subject, {split: limited(source, limit) for split, source in data.items()}, planned


@contextmanager
def goes_on() -> Iterator[None]:
    """Say what Ctrl-C means here: typer takes it for itself, so that it never reaches the command's end."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("weakspot: stopped; the same command goes on from here", err=True)
        raise typer.Exit(130) from None


def examine(
    config: Config,
    folder: Path,
    target: Path,
    *,
    limit: int | None = None,
    probes: Sequence[str] = (),
    execution: Mapping[str, int] | None = None,
    device: str | None = None,
    silent: bool = False,
) -> list[Finding]:
    """Answer what a configuration asks; the Findings that only others are built from are left out."""
    with goes_on():
        subject, data, planned = prepare(config, folder, limit=limit, probes=probes, device=device)
        how, progress = Execution(**(execution or {})), Silent() if silent else Bar()
        findings = planned.run(subject, data, Run.create(target), execution=how, progress=progress)
    groundwork = planned.groundwork()
    return [finding for finding in findings if finding.name not in groundwork]
