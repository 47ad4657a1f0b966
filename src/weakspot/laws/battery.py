"""The laws every probe keeps. Each is a function that raises `LawBroken` with what went wrong."""

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weakspot.core.engine import Engine, LocalEngine, Work
from weakspot.core.errors import WeakspotError
from weakspot.core.examine import run_job
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding, verify
from weakspot.core.job import Job, Shard
from weakspot.core.observation import Observation
from weakspot.core.outputs import Outputs
from weakspot.core.plan import Plan
from weakspot.core.probe import Probe
from weakspot.core.progress import Progress
from weakspot.core.run import Run
from weakspot.core.source import Source, Subset
from weakspot.core.state import Sum, declared, merge_states
from weakspot.core.step import Step
from weakspot.core.tasks import Task
from weakspot.laws.benches import Bench, bench
from weakspot.laws.compare import differences

_MOST_SHARDS = 8
"""Shards after which an examination is interrupted, at most."""


class LawBroken(WeakspotError):  # noqa: N818 - it reads as what happened
    """A probe breaks a law."""


class Trial:
    """A probe with options on a bench, examined in different ways."""

    def __init__(self, probe: type[Probe], task: Task, options: Mapping[str, Any]):
        self.step = Step.of(probe, **options)
        self.probe = probe
        self.bench: Bench = bench(task, flat="variation" in getattr(probe, "__dataclass_fields__", ()))

    def examine(
        self, *, data: Mapping[str, Source] | None = None, engine: Engine | None = None, **execution: Any
    ) -> Finding:
        """The probe's Finding; steps before it are examined in the same way."""
        with self.run() as run:
            return self.into(run, data=data, engine=engine, **execution)

    def into(
        self, run: Run, *, data: Mapping[str, Source] | None = None, engine: Engine | None = None, **execution: Any
    ) -> Finding:
        """The same, into a Run."""
        how = replace(ExecutionOptions(batch_size=8, shard_size=16, workers=0), **execution)
        return Plan.of([self.step]).run(self.bench.subject, data or self.bench.data, run, execution=how, engine=engine)[
            -1
        ]

    @contextmanager
    def run(self) -> Iterator[Run]:
        """A Run in a temporary folder."""
        with tempfile.TemporaryDirectory(prefix="weakspot-laws-") as folder:
            yield Run.create(Path(folder) / "run")

    @contextmanager
    def states(self, data: Source, shard_size: int) -> Iterator[tuple[Job, list[dict[str, np.ndarray]]]]:
        """The states of the shards of the last step over `data`."""
        with self.run() as run:
            findings = {}
            if self.step.upstream:
                plan = Plan.of(list(self.step.upstream.values()))
                made = plan.run(self.bench.subject, self.bench.data, run)
                findings = {step.key: finding for step, finding in zip(plan.steps, made, strict=True)}
            execution = ExecutionOptions(batch_size=8, shard_size=shard_size, workers=0)
            job = Job(self.bench.subject, data, [self.step.build(findings)], execution, run.folder / "work")
            run_job(job)
            yield job, [dict(np.load(job.shard_folder(0, shard.number) / "state.npz")) for shard in job.shards()]


def any_batch_size(trial: Trial) -> None:
    """The same result, to the last bit, for any batch size."""
    _agree(trial.examine(), [(f"batch size {size}", trial.examine(batch_size=size)) for size in (1, 5, 64)])


def any_shards(trial: Trial) -> None:
    """The same result for any number of shards and of reading threads."""
    whole = trial.examine(shard_size=64)
    _agree(whole, [(f"shards of {size}", trial.examine(shard_size=size, workers=2)) for size in (3, 20)])


def any_order(trial: Trial) -> None:
    """The same result for any order of the samples."""
    shuffled = {
        split: Subset(source, np.random.default_rng(1).permutation(len(source.ids)))
        for split, source in trial.bench.data.items()
    }
    _agree(trial.examine(), [("another order", trial.examine(data=shuffled))])


class _Backwards(Engine):
    """Another engine: shards in the opposite order, the work pickled as for another machine."""

    def run(self, work: Work, shards: Sequence[Shard], progress: Progress) -> None:
        for shard in reversed(shards):
            pickle.loads(pickle.dumps(work))(shard, progress)


def any_engine(trial: Trial) -> None:
    """The same bytes from an engine that works off the shards elsewhere and in another order."""
    if trial.examine(engine=_Backwards()).digest != trial.examine().digest:
        raise LawBroken("another engine gives another Finding: keep no state outside the declared one")


def any_merge(trial: Trial) -> None:
    """Parts merge in any order to the same state, and merging with an empty part changes nothing."""
    with trial.states(trial.bench.data[trial.step.split], shard_size=5) as (job, states):
        in_order = reduce(lambda a, b: merge_states(trial.probe, a, b), states)
        rng, left = np.random.default_rng(2), list(states)
        while len(left) > 1:
            first, second = (left.pop(rng.integers(len(left))) for _ in range(2))
            left.append(merge_states(trial.probe, first, second))
        empty = _empty_state(job.probes[0])
        for what, other in (("in another order", left[0]), ("with an empty part", _merged(trial, empty, in_order))):
            for name, values in in_order.items():
                if not np.allclose(values, other[name], rtol=1e-12, atol=0, equal_nan=True):
                    raise LawBroken(f"state {name!r} changes when merged {what}")


def interruption(trial: Trial) -> None:
    """An examination that is interrupted after any shard resumes and ends with the same bytes."""
    whole, survived, interrupted = trial.examine(shard_size=10), 0, True
    while interrupted and survived < _MOST_SHARDS:
        with trial.run() as run:
            interrupted = False
            try:
                trial.into(run, engine=_Failing(survived), shard_size=10)
            except _Interrupted:
                interrupted = True
            if trial.into(run, shard_size=10).digest != whole.digest:
                raise LawBroken(f"interrupted after {survived} shards, it ends with another Finding")
        survived += 1


class _Interrupted(Exception):  # noqa: N818 - as KeyboardInterrupt
    pass


class _Failing(Engine):
    def __init__(self, survived: int):
        self._left = survived

    def run(self, work: Work, shards: Sequence[Shard], progress: Progress) -> None:
        for shard in shards:
            if self._left == 0:
                raise _Interrupted
            LocalEngine().run(work, [shard], progress)
            self._left -= 1


def saved_and_loaded(trial: Trial) -> None:
    """A Finding comes back from disk unchanged."""
    with tempfile.TemporaryDirectory() as folder:
        made = trial.examine()
        made.save(Path(folder) / "finding")
        verify(Path(folder) / "finding")
        loaded = Finding.load(Path(folder) / "finding")
        if loaded.digest != made.digest or differences(made, loaded):
            raise LawBroken(f"saved and loaded, the Finding differs: {differences(made, loaded) or 'its digest'}")


def model_untouched(trial: Trial) -> None:
    """Parameters, buffers, training flags and hooks are as before, also after an exception inside the probe."""
    model = trial.bench.subject.model
    if not isinstance(model, nn.Module):
        raise LawBroken("the bench has no module to look after")
    model.train()
    before = _everything(model)
    trial.examine()
    _same_model(before, model, "after the examination")
    with _breaking(trial.probe):
        try:
            trial.examine()
        except _Interrupted:
            _same_model(before, model, "after an exception in the probe")
            return
    raise LawBroken("an exception in observe was swallowed")


@contextmanager
def _breaking(probe: type[Probe]) -> Iterator[None]:
    original = probe.observe

    def observe(self: Probe, seen: Observation) -> Iterable[str] | None:
        original(self, seen)
        raise _Interrupted

    probe.observe = observe  # type: ignore[method-assign]
    try:
        yield
    finally:
        probe.observe = original  # type: ignore[method-assign]


def _everything(model: nn.Module) -> list[Any]:
    tensors: list[tuple[str, Tensor]] = [*model.named_parameters(), *model.named_buffers()]
    values = [(name, tensor.detach().clone(), tensor.requires_grad, tensor.grad) for name, tensor in tensors]
    hooks = [
        (name, module.training, len(module._forward_hooks), len(module._forward_pre_hooks), len(module._backward_hooks))
        for name, module in model.named_modules()
    ]
    return [values, hooks]


def _same_model(before: list[Any], model: nn.Module, when: str) -> None:
    values, hooks = _everything(model)
    if hooks != before[1]:
        raise LawBroken(f"{when}, training flags or hooks differ")
    for (name, old, *flags), (_, new, *now) in zip(before[0], values, strict=True):
        if not torch.equal(old, new) or flags != now:
            raise LawBroken(f"{when}, {name} differs")


def counts_never_fall(trial: Trial) -> None:
    """More inputs never lower a count."""
    source = trial.bench.data[trial.step.split]
    half = Subset(source, range(len(source.ids) // 2))
    with trial.states(half, shard_size=64) as (_, few), trial.states(source, shard_size=64) as (_, all_):
        for name, state in declared(trial.probe).items():
            counted = isinstance(state, Sum) and few[0][name].dtype.kind == "i"
            if counted and (few[0][name] > all_[0][name]).any():
                raise LawBroken(f"state {name!r} falls when inputs are added")


def state_stays_small(trial: Trial) -> None:
    """The state does not grow with the data: what is kept per sample belongs into rows, on disk."""
    source = trial.bench.data[trial.step.split]
    half = Subset(source, range(len(source.ids) // 2))
    with trial.states(half, shard_size=64) as (_, few), trial.states(source, shard_size=64) as (_, all_):
        for name, values in few[0].items():
            if values.size < all_[0][name].size:
                raise LawBroken(f"state {name!r} grows with the data: declare it as Rows")


def options_documented(trial: Trial) -> None:
    """The docstring says what the probe does, and what each option is."""
    text = trial.probe.__doc__ or ""
    missing = [entry.name for entry in fields(trial.probe) if f"{entry.name}:" not in text]  # type: ignore[arg-type]
    if not text.strip() or missing:
        raise LawBroken(f"the docstring does not explain: {', '.join(missing) or 'the probe'}")


def outputs_as_declared(trial: Trial) -> None:
    """The Finding holds what the probe declares in `outputs`, and nothing else; a probe may declare nothing at all."""
    if trial.probe.outputs != Outputs():
        problems = trial.probe.outputs.problems(trial.examine())
        if problems:
            raise LawBroken("; ".join(problems))


LAWS: tuple[Callable[[Trial], None], ...] = (
    any_batch_size,
    any_shards,
    any_order,
    any_engine,
    any_merge,
    interruption,
    saved_and_loaded,
    model_untouched,
    counts_never_fall,
    state_stays_small,
    options_documented,
    outputs_as_declared,
)


def check(probe: type[Probe], **options: Any) -> None:
    """Try every law on a probe, for every task it examines; raises `LawBroken` at the first that does not hold."""
    for task in probe.tasks:
        for law in LAWS:
            try:
                law(Trial(probe, task, options))
            except LawBroken as broken:
                raise LawBroken(f"{probe.name()} breaks the law {law.__name__!r} ({task}): {broken}") from broken


def _agree(expected: Finding, others: Sequence[tuple[str, Finding]]) -> None:
    for what, finding in others:
        differing = differences(expected, finding)
        if differing:
            raise LawBroken(f"with {what}: {'; '.join(differing)}")


def _empty_state(probe: Probe) -> dict[str, np.ndarray]:
    return type(probe)(**{entry.name: getattr(probe, entry.name) for entry in fields(probe)}).state()  # type: ignore[arg-type]


def _merged(trial: Trial, first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return merge_states(trial.probe, merge_states(trial.probe, first, second), first)
