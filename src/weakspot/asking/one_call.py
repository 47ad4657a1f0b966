"""One call from a model and data, as Python has them, to the answers."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from weakspot.asking.answers import Answers
from weakspot.asking.config import Config, DataEntry, SubjectEntry, config_of
from weakspot.asking.loading import Loaded, model_named, own_fingerprint, unprepared, with_data
from weakspot.asking.progress import Bar
from weakspot.asking.session import answered
from weakspot.asking.splits import attacked_split, load_source
from weakspot.asking.task_check import check_tasks
from weakspot.asking.wrapping import source_of
from weakspot.core import driver
from weakspot.core.digest import digest
from weakspot.core.engine import Engine
from weakspot.core.errors import ConfigError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.options import shortened
from weakspot.core.output_choice import OutputChoice
from weakspot.core.plan import Plan
from weakspot.core.probe import Probe
from weakspot.core.progress import LOGGER, Logged, Progress
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.core.tasks import Scores, Task
from weakspot.performance.room import with_performance
from weakspot.registry import find_probe, steps_for

_DIGITS = 8
_FOR_NOTHING = "python:object"
"""Stands in a configuration for a model that is at hand."""


def ask(
    model: Subject | nn.Module | Callable[[Tensor], Any] | str | Path,
    test: Any = None,
    train: Any = None,
    pool: Any = None,
    *,
    data: Mapping[str, Any] | None = None,
    task: Task = "classification",
    class_names: Sequence[str] | int | None = None,
    scores: Scores | None = None,
    bounds: tuple[float, float] | None = None,
    preprocess: Callable[[Tensor], Tensor] | None = None,
    output: OutputChoice | None = None,
    device: str | None = None,
    fingerprint: str | None = None,
    probes: Sequence[str] = (),
    run: str | Path | None = None,
    limit: int | None = None,
    execution: ExecutionOptions | None = None,
    engine: Engine | None = None,
    progress: Progress | bool | None = None,
    **questions: Mapping[str, Any] | None,
) -> Answers:
    """Ask questions of a model, and get the Run that answers them.

    model: a module, any function of a batch, a Subject; or, as in `weakspot.yaml`, `module:name`, a `.pt2` or `.onnx`
        file.
    test, train, pool: the splits: a torch Dataset or DataLoader, an array or tensor, a tuple (inputs, targets), a
        source of `weakspot.data.sources`; or, as in `weakspot.yaml`, a folder, a file, or a mapping.
    data: further splits by their names.
    class_names: the classes' names, or how many there are: `classes` of `Subject`, which is a question here.
    task, scores, bounds, preprocess, output, device, fingerprint: as for `Subject`, where they belong if the model is
        one.
    probes: single probes besides, by name or `module:Class`.
    run: the folder of the Run. By default `runs/` with the name of the model and a digest of model and data: so the
        same call goes on where it stopped and computes nothing twice, and another model gets another folder.
    limit: at most so many samples of each split, drawn at random.
    execution, engine: how the work is cut and run.
    progress: True for a bar; by default passes are logged under the name `weakspot`.
    questions: each question or probe with its options, as under `ask` in `weakspot.yaml`.
    """
    _check_questions(questions)
    planned = Plan.of(steps_for(questions, probes))
    if not planned.steps:
        raise ConfigError("nothing is asked: name a question with its options, such as robustness={}")
    about = {"task": task, "classes": class_names, "scores": scores, "bounds": bounds, "preprocess": preprocess,
             "output": output, "device": device, "fingerprint": fingerprint}  # fmt: skip
    splits = {"test": test, "train": train, "pool": pool, **(data or {})}
    subject = _subject(model, about)
    check_tasks({**questions, **dict.fromkeys(probes)}, subject.task)
    loaded = _loaded(subject, {name: split for name, split in splits.items() if split is not None}, limit)
    planned = with_performance(planned, loaded.subject)
    planned.check(loaded.data)
    _tell(loaded)
    target = Path(run) if run is not None else _usual_folder(loaded)
    shown = Bar() if progress is True else progress or Logged()
    made, _ = answered(planned, loaded.subject, loaded.data, target, execution=execution, engine=engine, progress=shown)
    return Answers.open(made.folder)


def examine(
    subject: Subject,
    data: Any,
    probes: Sequence[Probe | str],
    *,
    execution: ExecutionOptions | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    work: Path | None = None,
) -> list[Finding]:
    """Ask all probes of all samples in one pass over the data; one Finding per probe, in their order.

    data: a source, a torch Dataset or DataLoader, an array or tensor, or a tuple (inputs, targets).
    probes: a probe that needs no options may be given by its name.
    work: a folder where finished shards are kept, so that an interrupted call resumes; without one they are kept in a
        temporary folder.
    """
    source = source_of(data, "the data are", subject.classes)
    made = [find_probe(probe)() if isinstance(probe, str) else probe for probe in probes]
    return driver.examine(subject, source, made, execution=execution, engine=engine, progress=progress, work=work)


def _check_questions(questions: Mapping[str, Any]) -> None:
    for name, options in questions.items():
        if options is not None and not isinstance(options, Mapping):
            hint = "; the names of the classes are class_names" if name == "classes" else ""
            raise ConfigError(
                f"{name} is {shortened(options)}: expected a question's options as a mapping, or {{}}{hint}"
            )


def _tell(loaded: Loaded) -> None:
    """Log what the user should know of model and data."""
    stated = [] if loaded.subject.prepares else unprepared(loaded.subject.model)
    for note in (*stated, *loaded.notes):
        LOGGER.warning("%s", note)


def _subject(model: Any, about: Mapping[str, Any]) -> Subject:
    """The model as a Subject, with what was said about it."""
    said = {name: value for name, value in about.items() if value is not None and (name, value) != _USUAL_TASK}
    if isinstance(model, Subject):
        if said:
            raise ConfigError(f"the model is a Subject already: say {', '.join(said)} where you make it")
        return model
    if isinstance(model, str | Path):
        entry = config_of({"model": str(model)}, {"test": _FOR_NOTHING}).subject
        model = model_named(entry, Path.cwd(), str(about["device"] or "auto"))
    own = own_fingerprint(model)
    return Subject(model, **{**({"fingerprint": own} if own else {}), **said})


_USUAL_TASK = ("task", "classification")


@dataclass(frozen=True)
class _Splits:
    """The splits as they were given; paths and mappings are read as in `weakspot.yaml`."""

    given: Mapping[str, Any]
    config: Config

    def sources(self, subject: Subject) -> dict[str, Source]:
        """Those that are no attack on another."""
        return {name: self._source(name, subject) for name in self.given if self._entry(name).attack is None}

    def attacked(self) -> dict[str, DataEntry]:
        """Those that are."""
        return {name: entry for name in self.given if (entry := self._entry(name)).attack is not None}

    def _entry(self, name: str) -> DataEntry:
        return self.config.data.get(name) or DataEntry(path=_FOR_NOTHING)

    def _source(self, name: str, subject: Subject) -> Source:
        if name not in self.config.data:
            return source_of(self.given[name], f"{name} is", subject.classes)
        said = SubjectEntry(model=_FOR_NOTHING, classes=_said_classes(subject))
        return load_source(name, self.config.data[name], Path.cwd(), subject, said)


def _loaded(subject: Subject, given: Mapping[str, Any], limit: int | None) -> Loaded:
    if not given:
        raise ConfigError("no data are given: give at least test=")
    written = {name: _as_written(split) for name, split in given.items() if isinstance(split, str | Path | Mapping)}
    config = config_of({"model": _FOR_NOTHING}, written or {"test": _FOR_NOTHING})
    splits = _Splits(given, config if written else config.model_copy(update={"data": {}}))
    loaded = with_data(subject, _said_classes(subject), splits.sources, limit=limit, place=_nowhere)
    for name, entry in splits.attacked().items():
        loaded.data[name] = attacked_split(entry, loaded.data, loaded.subject, None)
    return loaded


def _as_written(split: str | Path | Mapping[str, Any]) -> Any:
    return dict(split) if isinstance(split, Mapping) else str(split)


def _nowhere(*path: Any) -> AbstractContextManager[None]:
    """Where errors point to: Python shows the line itself."""
    return nullcontext()


def _said_classes(subject: Subject) -> list[str] | int | None:
    """What was said of the classes: their names, or how many there are."""
    names = subject.classes
    numbers = names is not None and names == tuple(map(str, range(len(names))))
    return None if names is None else len(names) if numbers else list(names)


def _usual_folder(loaded: Loaded) -> Path:
    """`runs/` with the name of the model, and a digest of model and data."""
    subject = loaded.subject
    of = [subject.fingerprint(), {name: source.fingerprint() for name, source in loaded.data.items()}]
    name = str(subject.describe()["model"]).rpartition(".")[2].strip("<>") or "model"
    return Path("runs") / f"{name}-{digest(of)[:_DIGITS]}"
