"""The examination: every batch passes the model once per look, and every probe is shown what it asked for.

Begin reading with `observe_batches`: that loop is all of weakspot's dealings with the model.
"""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path

import numpy as np
import torch

from weakspot.core.engine import Engine, LocalEngine
from weakspot.core.errors import ProbeError, RunError
from weakspot.core.files import remove_folder, whole_folder, writing
from weakspot.core.finding import Finding
from weakspot.core.finite_check import FiniteCheck
from weakspot.core.forward_passes import passes, schedule, together
from weakspot.core.grouping import by_group
from weakspot.core.guarded_open import open_plain
from weakspot.core.job import Job, Shard
from weakspot.core.moving import moved
from weakspot.core.observation import Batch, Observation, Setting, released_rows
from weakspot.core.probe import Probe
from weakspot.core.progress import Progress, Silent, say, showing
from weakspot.core.sealed import damage, seal
from weakspot.core.source import read_ahead
from weakspot.core.state import merge_states
from weakspot.core.subject import Subject
from weakspot.core.threads import torch_threads

STATE = "state.npz"
_ATTEMPTS = 3
"""How often a damaged shard is done again."""


def run_job(job: Job, *, engine: Engine | None = None, progress: Progress | None = None, label: str = "") -> None:
    """Work off the shards that are still missing; `label` names the pass where progress is shown."""
    _work_off(job, [shard for shard in job.shards() if shard.missing], engine, progress, label)


def _work_off(job: Job, missing: Sequence[Shard], engine: Engine | None, progress: Progress | None, label: str) -> None:
    progress = progress or Silent()
    total, left = len(job.source.ids), sum(shard.stop - shard.start for shard in missing)
    progress.begin(label, total=total, done=total - left)
    try:
        with job.subject.borrowed(), torch_threads(job.execution.threads):
            (engine or LocalEngine()).run(ShardWork(job), missing, progress)
    finally:
        progress.end()


@dataclass(frozen=True)
class ShardWork:
    """The work on a job, as engines are handed it."""

    job: Job

    def __call__(self, shard: Shard, progress: Progress) -> None:
        """Do one shard."""
        run_shard(self.job, shard, progress)


def run_shard(job: Job, shard: Shard, progress: Progress) -> None:
    """Do one shard; where the GPU's memory is too small for the batches, do it again with batches of half the size."""
    done: list[int] = []

    def advance(samples: int) -> None:
        done.append(samples)
        progress.advance(samples)

    try:
        _try_shard(job, shard, advance)
    except torch.OutOfMemoryError as error:
        job.halve_batches(error)
        progress.advance(-sum(done))
        progress.tell(f"the GPU's memory is too small: continuing with batches of {job.batch_size}")
    else:
        return
    run_shard(job, shard, progress)  # out here, where the error no longer holds on to the batch's memory


def _try_shard(job: Job, shard: Shard, advance: Callable[[int], None]) -> None:
    """Show one shard to the probes that have not seen it, and keep what they made of it."""
    probes = [job.probes[index] for index in shard.missing]
    job.subject.record(job.recording.chosen)
    with ExitStack() as stack:
        targets = [job.shard_folder(index, shard.number) for index in shard.missing]
        folders = [stack.enter_context(whole_folder(target, first_wins=True)) for target in targets]
        writers = [writer for probe, to in zip(probes, folders, strict=True) for writer in probe.begin_shard(to)]
        for writer in writers:
            stack.callback(writer.close)
        seen = 0
        for shown, places in sweeps(probes, job.source.ids, shard):
            cut = [places[i : i + job.batch_size] for i in range(0, len(places), job.batch_size)]
            batches = read_ahead(job.read, cut, job.execution.reading_threads)
            with closing(batches):
                observe_batches(job.subject, batches, shown, job.setting, advance if not seen else _silent)
            seen = seen or len(places)
        if seen < shard.stop - shard.start:
            advance(shard.stop - shard.start - seen)
        for writer in writers:
            writer.finish()
        for probe, folder in zip(probes, folders, strict=True):
            with writing(folder):
                np.savez(folder / STATE, **probe.state())  # type: ignore[arg-type]
                seal(folder)


def sweeps(probes: Sequence[Probe], ids: Sequence[str], shard: Shard) -> list[tuple[list[Probe], np.ndarray]]:
    """The probes that see a shard together, and the places of the samples that any of them wants: no others are read.

    A pass with relevance costs three times as much as one without: where it is wanted of at most half of the samples
    that others want, it is a sweep of its own, over full batches of these.
    """
    names = tuple(ids[place] for place in range(shard.start, shard.stop))
    wanted = []
    for wants in (probe.wants(names) for probe in probes):
        wanted.append(np.ones(len(names), dtype=bool) if wants is None else released_rows(names, wants))
    everyone = np.any(wanted, axis=0).sum()
    few = [each.sum() * 2 <= everyone and probe.needs.attribution for probe, each in zip(probes, wanted, strict=True)]
    groups = ([index for index, apart in enumerate(few) if bool(apart) is alone] for alone in (False, True))
    return [
        ([probes[index] for index in group], shard.start + np.flatnonzero(np.any([wanted[i] for i in group], axis=0)))
        for group in groups
        if group
    ]


def _silent(samples: int) -> None:
    """Progress is that of the first sweep."""


def observe_batches(
    subject: Subject,
    batches: Iterable[Batch],
    probes: Sequence[Probe],
    setting: Setting,
    advance: Callable[[int], None],
) -> None:
    """Look at every batch as often as anyone wants, and show each look to those who asked for it."""
    forward_passes, finite_check = schedule(probes, subject, setting), FiniteCheck()
    with ExitStack() as stack:
        forward = stack.enter_context(subject.borrowed())
        stack.enter_context(torch.no_grad())
        for forward_pass in forward_passes:
            stack.enter_context(forward_pass.recorder.hooked())
        for batch in moved(batches, subject.device):
            waiting = np.ones((len(probes), len(batch)), dtype=bool)
            for index, probe in enumerate(probes):
                probe.begin_batch(batch)
                wants = probe.wants(batch.ids)
                if wants is not None:
                    waiting[index] = released_rows(batch.ids, wants)
            for group in together(forward_passes, batch):
                members = list(group[0].probes)
                wanted = np.any(waiting[members], axis=0)
                if not wanted.any():
                    continue
                for seen in passes(group, subject, forward, batch.select(wanted), setting, finite_check):
                    for index in members:
                        if waiting[index].any():
                            released = probes[index].observe(Observation(seen, waiting[index, wanted]))
                            if released is not None:
                                waiting[index] &= ~released_rows(batch.ids, released)
            for probe in probes:
                probe.close(batch.ids)
            advance(len(batch))
        finite_check.check()


def finish(job: Job, index: int, *, engine: Engine | None = None, progress: Progress | None = None) -> Finding:
    """Merge the shards of one probe in their order, and let it make its Finding, damaged ones done again."""
    _do_damaged_again(job, index, engine, progress)
    probe = job.probes[index]
    folders = [job.shard_folder(index, shard.number) for shard in job.shards()]
    probe.load_state(reduce(partial(merge_states, type(probe)), map(read_state, folders)))
    with (
        tempfile.TemporaryDirectory(prefix="rows-", dir=job.probe_folder(index)) as scratch,
        torch_threads(job.execution.threads),
        showing(progress),
    ):
        probe.open_rows(folders, Path(scratch))
        finding = probe.finish()
        if not isinstance(finding, Finding):
            raise ProbeError(f"{probe.name()}.finish() gave {type(finding).__name__}, expected a Finding")
        return by_group(finding, job.setting, probe.by_group).with_provenance(**job.provenance(probe))


def _do_damaged_again(job: Job, index: int, engine: Engine | None, progress: Progress | None) -> None:
    """Do those shards of a probe again that are not as they were written, and say so."""
    name, shards = job.probes[index].name(), job.shards()
    for attempt in range(_ATTEMPTS + 1):
        reasons = {shard.number: damage(job.shard_folder(index, shard.number)) for shard in shards}
        damaged = [replace(shard, missing=(index,)) for shard in shards if reasons[shard.number]]
        if not damaged:
            return
        first = job.shard_folder(index, damaged[0].number)
        if attempt == _ATTEMPTS:
            raise RunError(
                f"{first} is damaged each time it is written ({reasons[damaged[0].number]}): check the disk, or choose "
                "another folder"
            )
        say(
            progress,
            f"{len(damaged)} of {len(shards)} shards of {name} were damaged and are done again; the first is "
            f"{first.name} ({reasons[damaged[0].number]})",
        )
        for shard in damaged:
            remove_folder(job.shard_folder(index, shard.number))
        _work_off(job, damaged, engine, progress, f"{name}: damaged shards")


def read_state(folder: Path) -> dict[str, np.ndarray]:
    """What a probe made of one shard."""
    with open_plain(folder / STATE, links=False) as file, np.load(file, allow_pickle=False) as stored:
        return dict(stored)
