"""The interface of an engine, which computes the shards. Probes and results do not depend on it."""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

import torch

from weakspot.core.errors import ConfigError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.job import Job, Shard
from weakspot.core.progress import Progress
from weakspot.core.subject import Subject


class Work(Protocol):
    """Examines one shard and leaves its folders behind, whole or not at all. Can be pickled and run elsewhere."""

    @property
    def job(self) -> Job:
        """What there is to do."""

    def __call__(self, shard: Shard, progress: Progress) -> None:
        """Do that shard."""


@dataclass(frozen=True)
class Footprint:
    """What an engine takes: how many workers, and the most memory that this process and a worker had so far.

    worker_bytes and worker_gpu_bytes are None where the work is done in this process, and where there is no GPU.
    """

    workers: int
    driver_bytes: int
    worker_bytes: int | None = None
    worker_gpu_bytes: int | None = None


class Engine(ABC):
    """Runs `work` on every shard, in any order and anywhere; `run` is all that another engine must have."""

    busy_seconds: float = 0.0
    """What workers spent on the shards of the last run, all together; by it `plan` tells the time."""

    @property
    def usual_threads(self) -> int:
        """With how many threads a worker computes unless something else is asked for."""
        return torch.get_num_threads()

    def device(self, subject: Subject) -> torch.device:
        """Where the work is done."""
        return subject.device

    @abstractmethod
    def run(self, work: Work, shards: Sequence[Shard], progress: Progress) -> None:
        """Work off the shards; return when all their folders are there."""

    def warm_up(self, work: Work, shard: Shard, progress: Progress) -> None:
        """Let every worker do that shard once, so that what comes next is measured as it will be."""
        self.run(work, [shard], progress)

    def footprint(self) -> Footprint:
        """What the engine takes."""
        return Footprint(workers=1, driver_bytes=peak_memory())


class LocalEngine(Engine):
    """This process, one shard after another; reading ahead happens in threads within the shard."""

    def run(self, work: Work, shards: Sequence[Shard], progress: Progress) -> None:
        """Work off the shards."""
        begun = time.perf_counter()
        for shard in shards:
            work(shard, progress)
        self.busy_seconds = time.perf_counter() - begun


@contextmanager
def engine_at_work(options: ExecutionOptions, engine: Engine | None = None) -> Iterator[Engine]:
    """The engine that does the work: one that already runs, else the one that the options name, while it lasts."""
    if engine is not None:
        if options.engine != "local":
            raise ConfigError(f"the options name the engine {options.engine}, and engine= gives another: give one")
        yield engine
    elif options.engine == "local":
        yield LocalEngine()
    else:  # found by its name, as Ray is not needed otherwise
        named = {"address": options.address, "workers": options.engine_workers}
        asked = {**named, "gpus_per_worker": options.gpus_per_worker}
        made = import_module("weakspot.engines").RayEngine(**{k: v for k, v in asked.items() if v is not None})
        with made as started:
            yield cast(Engine, started)


def peak_memory() -> int:
    """The most memory, in bytes, that this process had at once."""
    try:
        import resource
    except ModuleNotFoundError as error:
        raise ConfigError("memory can be measured on Linux and macOS only: this system has no `resource`") from error
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
