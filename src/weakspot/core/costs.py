"""Estimates what a plan will cost (time, memory, disk) from a few measured batches."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from weakspot.core.answer_book import known_as
from weakspot.core.answers import FirstSamples
from weakspot.core.batch_size import chosen_batch_size, usual_shard_size
from weakspot.core.engine import Engine, Footprint, engine_at_work
from weakspot.core.examine import STATE, ShardWork, finish, read_state, run_job
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.forward_passes import schedule
from weakspot.core.job import Job
from weakspot.core.plan import Plan, PlannedPass
from weakspot.core.probe import Probe
from weakspot.core.progress import Silent
from weakspot.core.reuse import KeptFindings, request_of
from weakspot.core.run import Run
from weakspot.core.sealed import DIGESTS
from weakspot.core.source import Source, batch_limit, limited, with_made_splits
from weakspot.core.subject import Subject
from weakspot.core.threads import torch_threads
from weakspot.core.trial_run import trying

_TRIED = 3
"""Batches that each worker tries."""
_SHARE = 0.05
"""Of the samples of a pass a worker tries so many at most, or the few."""
_ROOM, _FEW = 64 << 20, 4
"""On a CPU a batch of the trial may hold so many bytes, by the measure of `chosen_batch_size`, or so few samples; of
samples so large that only the few fit, one batch is tried."""


@dataclass(frozen=True)
class Cost:
    """What a pass will cost, its Findings included; the memory is the most that was seen until the end of its trial."""

    planned: PlannedPass
    samples: int
    forward_passes: int
    seconds: float
    row_bytes: int
    state_bytes: int
    reused: tuple[str, ...]
    footprint: Footprint


def costs(
    plan: Plan,
    subject: Subject,
    data: Mapping[str, Source],
    run: Run | None,
    *,
    execution: ExecutionOptions | None = None,
    engine: Engine | None = None,
) -> Iterator[Cost]:
    """Say for each pass what it will cost, by trying a few batches; nothing is written to the Run."""
    plan.check(data)
    options = execution or ExecutionOptions()
    data = with_made_splits(data, (step.split for step in plan.steps))
    findings: dict[str, Finding] = {}
    tried: dict[str, FirstSamples] = {}
    model, there = known_as(subject, run.manifest()) if run else "", KeptFindings(run, Silent())
    with (
        engine_at_work(options, engine) as worker,
        tempfile.TemporaryDirectory(prefix="weakspot-plan-") as scratch,
        subject.borrowed(),
    ):
        options = replace(options, threads=options.threads or worker.usual_threads)
        for planned in plan.passes():
            source, steps = data[planned.split], planned.steps
            if run is not None:  # the fingerprint may read all data
                requests = {s.key: request_of(s, findings, model, source.fingerprint()) for s in steps}
                kept = {key: there.get(request) for key, request in requests.items()}
                findings |= {key: finding for key, finding in kept.items() if finding is not None}
            missing = [step for step in steps if step.key not in findings]
            probes = [step.build(findings) for step in missing]
            computed = {step.key for step in missing}
            reused = tuple(plan.names[s.key] for s in steps if s.key not in computed)
            if not missing:
                yield Cost(planned, len(source.ids), 0, 0.0, 0, 0, reused, worker.footprint())
                continue
            job = _trial(subject, source, probes, options, Path(scratch), worker, tried.get(planned.split))
            tried[planned.split] = job.first
            shard_size = options.shard_size or usual_shard_size(job.batch_size, job.device)
            cost = _measured(planned, len(source.ids), job, reused, shard_size, worker)
            seconds = cost.seconds
            for index, step in enumerate(missing):
                begun = time.perf_counter()
                with trying(len(job.source.ids), len(source.ids)) as trial:
                    findings[step.key] = finish(job, index)
                seconds += time.perf_counter() - begun if trial.seconds is None else trial.seconds
            yield replace(cost, seconds=seconds)


def _trial(
    subject: Subject,
    source: Source,
    probes: Sequence[Probe],
    options: ExecutionOptions,
    work: Path,
    engine: Engine,
    tried: FirstSamples | None,
) -> Job:
    """A job over a few batches for each worker, after a first sample has warmed everything up.

    On a CPU the batches are small, so that a trial needs little time and memory; on a GPU they are those of the
    examination, as small ones would take as long there. All passes try as many samples, as some need the same ones.

    tried: what an earlier pass over the split found out about the model.
    """
    device = engine.device(subject)
    first = Job(subject, limited(source, 1), probes, options, work, device=device, first=tried)
    missing = [shard for shard in first.shards() if shard.missing]
    with torch_threads(options.threads):
        for shard in missing:
            engine.warm_up(ShardWork(first), shard, Silent())
    size, batches = first.batch_size, _TRIED
    if device.type == "cpu":
        inputs = source.read(np.arange(1)).inputs
        fitting = chosen_batch_size(subject.model, inputs, first.setting.layers, device, room=_ROOM)
        size, batches = min(size, max(fitting, _FEW)), 1 if fitting <= _FEW else _TRIED
    fewest = min(_FEW, batch_limit(source) or _FEW)  # of whole volumes one alone
    each = max(fewest, min(batches * size, int(len(source.ids) * _SHARE)))
    size = min(size, each)
    few = limited(source, each * engine.footprint().workers)
    cut = replace(options, batch_size=size, shard_size=each)
    return Job(subject, few, probes, cut, work, device=device, first=first.first)


def _measured(
    planned: PlannedPass, samples: int, trial: Job, reused: tuple[str, ...], shard_size: int, engine: Engine
) -> Cost:
    begun = time.perf_counter()
    run_job(trial, engine=engine)
    seconds, tried, taken = time.perf_counter() - begun, len(trial.source.ids), engine.footprint()
    once = max(0.0, seconds - engine.busy_seconds / taken.workers)
    return Cost(
        planned,
        samples,
        forward_passes=len(schedule(trial.probes, trial.subject, trial.setting)),
        seconds=once + engine.busy_seconds / tried * busiest(samples, shard_size, taken.workers),
        row_bytes=_row_bytes(trial) * samples // tried,
        state_bytes=_state_bytes(trial),
        reused=reused,
        footprint=taken,
    )


def busiest(samples: int, shard_size: int, workers: int) -> int:
    """Samples of the worker that gets most: shards are not divided.

    >>> busiest(5000, 1024, 1), busiest(5000, 1024, 2), busiest(5000, 1024, 64)
    (5000, 3072, 1024)
    """
    shards = -(-samples // shard_size)
    return min(samples, -(-shards // workers) * shard_size)


def _row_bytes(job: Job) -> int:
    folders = [job.shard_folder(i, shard.number) for i in range(len(job.probes)) for shard in job.shards()]
    files = (path for folder in folders for path in folder.iterdir() if path.name not in (STATE, DIGESTS))
    return sum(path.stat().st_size for path in files)


def _state_bytes(job: Job) -> int:
    folders = [job.shard_folder(index, 0) for index in range(len(job.probes))]
    states = [array for folder in folders for array in read_state(folder).values()]
    return sum(8 * array.size if array.dtype.kind == "i" else array.nbytes for array in states)  # as it is in memory
