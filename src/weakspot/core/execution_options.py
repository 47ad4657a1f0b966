"""How the work is cut and run: one set of options for the command line, `weakspot.yaml` and Python."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args, get_type_hints

from weakspot.core.environment import cores
from weakspot.core.options import OptionError, checked

MOST_THREADS = 1024
MOST_READING = 16
OF_RAY = ("address", "engine_workers", "gpus_per_worker")
_LEAST = {"batch_size": 1, "shard_size": 1, "workers": 0, "threads": 1, "engine_workers": 1, "gpus_per_worker": 0}


@dataclass(frozen=True)
class ExecutionOptions:
    """How the work is cut and run. Results agree for any choice; for equal choices they are equal to the last bit.

    batch_size: samples per forward pass; by default that of the Run so far, and for a new Run one that fits inputs,
        model and memory, see `weakspot.core.batch_size`.
    shard_size: samples per unit of work that is kept when a run is interrupted; by default 1,024, and on a GPU 16
        batches where that is more.
    workers: threads that read ahead; by default as many as there are cores, 16 at most.
    on_bad_sample: "stop" with its name, or "skip" it: every sample is then read once beforehand, those that cannot be
        used are left out of the data, and each Finding lists them.
    threads: how many torch uses; sums may differ in the last bit with their number. By default that of the Run so far,
        and for a new Run the engine's default.
    engine: "local", this process; or "ray". An engine that you made yourself is given as `engine=` instead.
    address, engine_workers, gpus_per_worker: of the engine ray, see `weakspot.engines.RayEngine`.
    """

    batch_size: Annotated[
        int | None,
        "Samples per forward pass; by default as when the run began, for a new run chosen to fit the memory.",
    ] = None
    shard_size: Annotated[
        int | None,
        "Samples per shard: finished shards are kept when a run is interrupted; by default 1024, on a GPU 16 batches.",
    ] = None
    workers: Annotated[int | None, "Threads that read batches ahead; by default as many as cores, 16 at most."] = None
    on_bad_sample: Annotated[
        Literal["stop", "skip"], "At a sample that cannot be used: stop and name it, or skip and list it."
    ] = "stop"
    threads: Annotated[
        int | None,
        "Threads of torch; by default as when the run began, for a new run one per core, or one with ray.",
    ] = None
    engine: Annotated[
        Literal["local", "ray"], "Where it runs: local, this process; or ray, on many cores, GPUs or machines."
    ] = "local"
    address: Annotated[str | None, "ray: a running cluster; by default Ray is started on this machine."] = None
    engine_workers: Annotated[
        int | None, "ray: how many workers; by default one per GPU, or per core where there is none."
    ] = None
    gpus_per_worker: Annotated[
        float | None, "ray: GPUs of each worker, or a part of one; by default 1 on a GPU, else 0."
    ] = None

    def __post_init__(self) -> None:
        for name, (annotation, _) in execution_fields().items():
            checked(name, getattr(self, name), annotation, of="execution")
        for name, least in _LEAST.items():
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise OptionError(name, f"execution: {name} is {getattr(self, name)}: expected {least} or more")
        for name in ("workers", "threads"):  # the system ends a program that asks for more than it has
            if (getattr(self, name) or 0) > MOST_THREADS:
                raise OptionError(name, f"execution: {name} is {getattr(self, name)}: expected {MOST_THREADS} at most")
        unused = [name for name in OF_RAY if getattr(self, name) is not None]
        if unused and self.engine != "ray":
            raise OptionError(unused[0], f"execution: {unused[0]} is for the engine ray: add engine ray")

    @property
    def reading_threads(self) -> int:
        """How many threads read ahead."""
        return min(cores(), MOST_READING) if self.workers is None else self.workers


def execution_fields() -> dict[str, tuple[Any, str]]:
    """The type and the meaning of each option, by name."""
    hints = get_type_hints(ExecutionOptions, include_extras=True)
    return {field.name: get_args(hints[field.name])[:2] for field in fields(ExecutionOptions)}
