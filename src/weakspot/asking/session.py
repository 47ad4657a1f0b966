"""From a configuration to a plan, and from a plan to a Run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from weakspot.asking.config import Config, SubjectEntry
from weakspot.asking.loading import Loaded, load, modules_beside, named
from weakspot.asking.task_check import check_tasks
from weakspot.asking.volume_checks import check_files
from weakspot.core.engine import Engine
from weakspot.core.errors import ConfigError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.files import remove_folder
from weakspot.core.finding import Finding
from weakspot.core.plan import Plan
from weakspot.core.progress import Progress
from weakspot.core.run import Run
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.performance.room import with_performance
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
) -> tuple[Loaded, Plan]:
    """The subject and data that a configuration names, and the plan; what is asked is checked before anything runs."""
    planned = plan_for(config, folder, probes)
    loaded = load(config, folder, limit=limit, sets=sets)
    if not planned.steps:
        raise ConfigError("nothing is asked: name questions under ask, or a probe with --probe")
    places = config.places
    with modules_beside(folder):
        where = None if places is None else lambda *path: f"{places.of(*path)}: "
        check_tasks({**config.ask, **dict.fromkeys(probes)}, loaded.subject.task, *([] if where is None else [where]))
    planned = with_performance(planned, loaded.subject)
    with named(config, "data"):
        planned.check(loaded.data)
        if config.execution.on_bad_sample == "stop":
            check_files(loaded.data, loaded.subject.model)
    return loaded, planned


def plan_for(config: Config, folder: Path, probes: Sequence[str]) -> Plan:
    """The plan for what is asked in the file and besides."""
    steps = []
    with modules_beside(folder):
        for name, options in config.ask.items():
            with named(config, "ask", name):
                steps += steps_of(name, with_all_members(options or {}, config.subject))
        return Plan.of(steps + steps_for({}, probes))


def with_all_members(options: Mapping[str, Any], entry: SubjectEntry) -> Mapping[str, Any]:
    """Options that sample by members, with as many looks as there are networks or folders, where none are named."""
    if options.get("sampling") != "members" or "looks" in options:
        return options
    weights, folders = entry.weights, entry.arguments.get("folders", ())
    count = len(weights) if isinstance(weights, list) else 1 if isinstance(folders, str) else len(folders)
    return {**options, "looks": count} if count else options


def answered(
    planned: Plan,
    subject: Subject,
    data: Mapping[str, Source],
    target: Path,
    *,
    execution: ExecutionOptions | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> tuple[Run, list[Finding]]:
    """The Run in the folder `target`, and its Findings; those that only others are built from are left out."""
    with nothing_half_made(target) as run:
        findings = planned.run(subject, data, run, execution=execution, engine=engine, progress=progress)
    groundwork = planned.groundwork()
    return run, [finding for finding in findings if finding.name not in groundwork]


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
