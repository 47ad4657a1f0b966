"""The Ray engine: the same probes and plans on the cores and GPUs of a cluster, or of this machine."""

import signal
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from math import inf
from types import TracebackType
from typing import Any

import torch

from weakspot.core.digest import digest
from weakspot.core.engine import Engine, Footprint, Work, peak_memory
from weakspot.core.environment import cores
from weakspot.core.errors import ConfigError
from weakspot.core.job import Job, Shard
from weakspot.core.progress import Progress
from weakspot.core.subject import Subject
from weakspot.engines.crew import Crew
from weakspot.engines.dispatch import Dispatch, Parcel
from weakspot.engines.ray_start import connect, hushed, own_token, ray_module, refuse_another, start
from weakspot.engines.ray_watch import RayLostError, RayWatch, abandon
from weakspot.engines.schedule import Patience
from weakspot.engines.travelling import cannot_travel, made_again, on_cpu, unmade, users_code_travels


class RayEngine(Engine):
    """Ray's actors, each with a copy of the model; Findings are, byte for byte, those of one process.

    address: of a cluster that is there, "auto" for the one of this machine; without it Ray is started here, on the
        loopback address alone, and stopped by `close` or at the end of a with block.
    workers: how many; by default one for each GPU where the model runs on one, else one for each core.
    gpus_per_worker: GPUs of each worker, or a part of one; by default 1 where the subject's device is a GPU, else 0.
    patience: when a worker is too slow, see `Patience`.

    Workers compute with one thread each unless `ExecutionOptions(threads=…)` says otherwise.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        gpus_per_worker: float | None = None,
        patience: Patience | None = None,
    ):
        if workers is not None and workers < 1:
            raise ConfigError(f"{workers} workers can do nothing: give 1 or more, or none for as many as there is room")
        if gpus_per_worker is not None and gpus_per_worker < 0:
            raise ConfigError(f"gpus_per_worker is {gpus_per_worker}: expected 0 or more")
        self._address, self._asked, self._gpus = address, workers, gpus_per_worker
        self._patience = patience or Patience()
        self._ray: Any = None
        self._ours = False
        self._watch: RayWatch | None = None
        self._lost = False
        self._hush = ExitStack()
        self._crew: Crew | None = None
        self._workers = 0
        self._sent: dict[str, tuple[Any, str | None, str, Any]] = {}
        """What has been stored for the workers: the thing itself, its fingerprint, a key, and where it is stored."""
        self._tried: dict[str, float] = {}
        """Seconds per sample that a trial took, by questions, model and device."""
        self.repeated: list[int] = []
        """Shards of the last job that were begun and done again, as their worker died or was given up."""

    @property
    def usual_threads(self) -> int:
        """One: many workers with a thread each get more done than few with many."""
        return 1

    def device(self, subject: Subject) -> torch.device:
        """A GPU where workers have one."""
        if self._gpus is None:
            return subject.device
        return torch.device("cuda" if self._gpus else "cpu")

    def run(self, work: Work, shards: Sequence[Shard], progress: Progress) -> None:
        """Work off the shards."""
        if shards:
            self._dispatch(work, shards, progress)

    def warm_up(self, work: Work, shard: Shard, progress: Progress) -> None:
        """Let every worker do that shard once; what comes of the copies is thrown away."""
        self._begin(work.job)
        copies = [Shard(number, shard.start, shard.stop, shard.missing) for number in range(self._workers)]
        one_each = replace(self._patience, ahead=1, slow=inf, hanging=inf)
        self._tried[_kind(work.job)] = self._dispatch(work, copies, progress, discard=True, patience=one_each)

    def _dispatch(
        self,
        work: Work,
        shards: Sequence[Shard],
        progress: Progress,
        *,
        discard: bool = False,
        patience: Patience | None = None,
    ) -> float:
        """The most seconds per sample that any shard took."""
        job, termination = work.job, _Termination()
        crew = self._begin(job)
        dispatch = Dispatch(
            self._ray,
            crew,
            self._parcel(job),
            job,
            shards,
            progress,
            workers=min(self._workers, len(shards)),
            patience=patience or self._patience,
            discard=discard,
            expected=self._tried.get(_kind(job), inf),
            check=partial(_check_all, termination, self._watch),
        )
        try:
            with termination.awaited():
                trouble = dispatch.run()
        except RayLostError:
            self._lost = True
            raise
        except BaseException:
            crew.dismiss_all()  # nobody knows what they are at
            raise
        finally:
            self.repeated, self.busy_seconds = dispatch.schedule.repeated, dispatch.busy_seconds
        if trouble is not None:
            raise trouble.exception()
        return dispatch.schedule.longest

    def footprint(self) -> Footprint:
        """How many workers there are, and the most memory that this process and one of them had."""
        if self._crew is None:
            return Footprint(self._asked or 1, peak_memory())
        memory, gpu = self._crew.memory()
        return Footprint(self._workers, peak_memory(), memory, gpu)

    def close(self) -> None:
        """End the workers, and Ray itself where it was started for them; what is done is kept."""
        if self._ray is None:
            return
        if self._lost:
            abandon()
        elif self._crew is not None:
            with suppress(self._ray.exceptions.RayError):
                self._crew.dismiss_all()
        if self._ours and not self._lost:
            self._ray.shutdown()
        self._hush.close()
        self._ray, self._crew, self._sent = None, None, {}

    def __enter__(self) -> "RayEngine":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _begin(self, job: Job) -> Crew:
        """Ray, and a crew for the job; both stay for the jobs to come."""
        threads, gpus = job.execution.threads or self.usual_threads, self._gpus_each(job)
        if self._ray is None:
            self._connect(gpus)
        cpus = threads if self._address is not None else 0  # here, the cores are all ours
        wanted = (cpus, gpus, job.device.type)
        if self._crew is not None and (self._crew.cpus, self._crew.gpus, self._crew.device) != wanted:
            self._crew.dismiss_all()
            self._crew = None
        if self._crew is None:
            self._crew = Crew(self._ray, cpus=cpus, gpus=gpus, device=job.device.type)
        self._workers = self._room(threads, gpus)
        return self._crew

    def _gpus_each(self, job: Job) -> float:
        return (1.0 if job.device.type == "cuda" else 0.0) if self._gpus is None else self._gpus

    def _connect(self, gpus: float) -> None:
        """Ray as it runs already in this process, at the address, or started here."""
        address = self._address
        ray = ray_module(alone=address is None or address.startswith(("127.", "localhost")))
        self._ours = not ray.is_initialized()
        self._hush.enter_context(hushed())
        if not self._ours:
            refuse_another(ray, address)
        elif address is not None:
            connect(ray, address)
        else:
            self._hush.enter_context(own_token())
            start(ray, cpus=cores(), gpus=torch.cuda.device_count() if gpus else 0)
        self._ray, self._watch = ray, RayWatch(ray, ours=self._ours and address is None)

    def _room(self, threads: int, gpus: float) -> int:
        """As many workers as were asked for, else as there is room for."""
        there = self._ray.cluster_resources()
        fit = int(there.get("GPU", 0) / gpus) if gpus else int(there.get("CPU", 0) / threads)
        if gpus and self._address is None and (self._asked or 1) > fit:
            raise ConfigError(
                f"this machine has GPUs for {fit} workers with {gpus:g} each, and {self._asked or 1} were asked for: "
                "ask for fewer, or let them share with gpus_per_worker 0.5"
            )
        return self._asked or max(1, fit)

    def _parcel(self, job: Job) -> Parcel:
        model = job.subject.model
        if hasattr(model, "travels_as"):
            self._ray.util.register_serializer(type(model), serializer=unmade, deserializer=made_again)
        with on_cpu(job.subject):
            subject = self._stored("the model", job.subject, job.subject, job.identity["subject"])
        source = self._stored("the data", job.source, job.source.original, job.identity["data"])
        return Parcel(subject, source, self._put("the questions", job.shell()))

    def _stored(self, label: str, thing: Any, same: Any, fingerprint: str | None) -> tuple[str, Any]:
        """A key for the thing and where it is stored: anew where `same` is another object than last time, or changed.

        A fingerprint alone would not do: not all that a model holds can be in it.
        """
        stored = self._sent.get(label)
        if stored is None or stored[0] is not same or stored[1] != fingerprint or fingerprint is None:
            self._sent[label] = same, fingerprint, uuid.uuid4().hex, self._put(label, thing)
        return self._sent[label][2:]

    def _put(self, label: str, thing: Any) -> Any:
        cloudpickle = self._ray.cloudpickle
        with users_code_travels(cloudpickle):
            try:
                return self._ray.put(thing)
            except Exception as error:  # whatever the user's objects raise
                raise cannot_travel(label, thing, cloudpickle.dumps, error) from error


def _check_all(termination: "_Termination", watch: RayWatch | None) -> None:
    termination.check()
    if watch is not None:
        watch.check()


def _kind(job: Job) -> str:
    """What a shard's time depends on, apart from its samples; a model without a fingerprint is never the same."""
    return digest(
        [job.identity["subject"] or uuid.uuid4().hex, job.device.type, [probe.identity() for probe in job.probes]]
    )


class _Termination:
    """A request to end, noted until there is time for it: raised inside Ray's own code it would be lost."""

    def __init__(self) -> None:
        self._asked: int | None = None

    def check(self) -> None:
        """End, if that was asked for."""
        if self._asked is not None:
            raise SystemExit(128 + self._asked)

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Take such requests; only a main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _note(self, number: int, frame: Any) -> None:
        self._asked = number
