"""What Ray costs and brings: two workers against one process, a shard's overhead, memory, many workers simulated.

    python benchmarks/peers/scale.py [--images 1024] [--repeats 3]

Bar: two workers on two cores take at most 1.3 times what one process takes that computes with both cores. Starting Ray
and its workers is told apart. Memory is what the driver and the largest worker hold at any moment of a pass over 1×,
2× and 4× as many images. `scale_simulation.csv` is the engine's own schedule with a made-up clock and the overheads
measured here: 1,000,000 images × 50 looks.
"""

import argparse
import os
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from measuring import SHARED, architectures, machine, write
from torch import nn

from weakspot.classes.probes import ClassPairs
from weakspot.core.engine import Engine, LocalEngine
from weakspot.core.examine import finish, run_job
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.job import Job
from weakspot.core.observation import Batch, Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.subject import Subject
from weakspot.coverage.neuron_probes import NeuronCoverage
from weakspot.data.sources import ArraySource
from weakspot.engines import RayEngine
from weakspot.engines.simulation import Costs, simulate
from weakspot.robustness import NeighbourAccuracy

HERE = Path(__file__).parent
BAR = 1.3
LOOKS = 4
H200_IMAGES_PER_SECOND = 15_000
"""Neighbours of 32×32 images per second on one GPU, as `neighbours.csv` has them."""


def questions() -> list[Probe]:
    return [NeuronCoverage(), ClassPairs(), NeighbourAccuracy(looks=LOOKS, early_stopping="never")]


def net() -> nn.Module:
    made = architectures()
    return made.load_half_precision(made.build("ResN", "svhn"), str(SHARED / "models" / "ResN-svhn.safetensors"))


def svhn(images: int) -> ArraySource:
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        return ArraySource(stored["x_test"][:images], stored["y_test"][:images], channels="last")


class Made:
    """As many images as one likes, none of which is kept: each is drawn from its place."""

    def __init__(self, count: int, size: int = 32):
        self.ids = tuple(f"{place:07d}" for place in range(count))
        self._size = size

    def read(self, positions: np.ndarray) -> Batch:
        shape = (3, self._size, self._size)
        drawn = [np.random.default_rng(place).random(shape, dtype=np.float32) for place in positions.tolist()]
        ids, targets = tuple(self.ids[place] for place in positions), torch.from_numpy(positions % 10)
        return Batch(ids, positions, torch.from_numpy(np.stack(drawn)), targets)

    def fingerprint(self) -> str:
        return f"made {len(self.ids)} {self._size}"


class Heavy(Probe):
    """Keeps the inputs as rows, to have something to fetch."""

    kept = Rows()

    def observe(self, seen: Observation) -> None:
        self.kept.append(seen.ids, inputs=seen.inputs)

    def finish(self) -> Finding:
        return self.finding()


class Nothing(nn.Module):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.flatten(1)[:, :10]


def timed(job_of, engine: Engine) -> tuple[float, Job]:
    """Seconds for all shards of a fresh job; what it needs besides, such as the data's fingerprint, is done before."""
    job = job_of(Path(tempfile.mkdtemp(prefix="weakspot-scale-")))
    job.shards()
    begun = time.perf_counter()
    run_job(job, engine=engine)
    return time.perf_counter() - begun, job


def speed(engine: RayEngine, images: int, repeats: int) -> tuple[list[tuple], float]:
    """Two workers of one thread, one process of two threads, one of one thread; the best of interleaved rounds."""
    subject, data = Subject(net(), classes=10, scores="logits"), svhn(images)
    shard = max(64, images // 16)

    def job_of(threads):
        how = ExecutionOptions(batch_size=64, shard_size=shard, workers=1, threads=threads)
        return lambda work: Job(subject, data, questions(), how, work)

    begun = time.perf_counter()
    timed(lambda work: Job(subject, svhn(128), questions(), ExecutionOptions(64, 64, 1, threads=1), work), engine)
    started = time.perf_counter() - begun
    kinds = {
        "two workers": (engine, 1),
        "one process, two threads": (LocalEngine(), 2),
        "one process": (LocalEngine(), 1),
    }
    seconds = {name: [] for name in kinds}
    for _ in range(repeats):
        for name, (doing, threads) in kinds.items():
            seconds[name].append(timed(job_of(threads), doing)[0])
    best = {name: min(times) for name, times in seconds.items()}
    ratios = [a / b for a, b in zip(seconds["two workers"], seconds["one process, two threads"], strict=True)]
    rows = [(f"{name}: {images} images × {1 + LOOKS} looks", best[name], "s", "") for name in kinds]
    rows += [
        ("two workers / one process with both cores", float(np.median(ratios)), "ratio", BAR),
        ("one process / two workers", best["one process"] / best["two workers"], "ratio", ""),
        ("start of Ray and its workers, with a first small job", started, "s", ""),
    ]
    return rows, best["one process"] / images / (1 + LOOKS)


def overhead(engine: RayEngine) -> tuple[list[tuple], Costs, float]:
    """Of a shard that is no work: the driver's processor, the wall, fetching, merging."""
    subject, small, count = Subject(Nothing(), classes=10), 8, 400
    data = Made(small * count, size=8)
    how = ExecutionOptions(batch_size=small, shard_size=small, workers=0, threads=1)
    seconds, processor = [], []
    for _ in range(2):
        before = time.process_time()
        took, job = timed(lambda work: Job(subject, data, [NeighbourAccuracy(looks=1)], how, work), engine)
        seconds.append((took - engine.busy_seconds / 2) / count)
        processor.append((time.process_time() - before) / count)
    begun = time.perf_counter()
    finish(job, 0)
    merge = (time.perf_counter() - begun) / count
    bandwidth, call = fetching(engine), waiting(engine)
    rows = [
        ("a shard: the driver's processor", min(processor) * 1e3, "ms", ""),
        ("a shard: what two workers take longer than the work itself", min(seconds) * 1e3, "ms", ""),
        ("a shard: merging at the end", merge * 1e3, "ms", ""),
        ("a call that is waited for, each time the driver looks", call * 1e6, "µs", ""),
        ("fetching rows where workers cannot write to the Run", bandwidth / 1e6, "MB/s", ""),
    ]
    return rows, Costs(sample=0.0, event=min(processor), latency=0.002, merge=merge, bandwidth=bandwidth), call


def waiting(engine: RayEngine, calls: int = 1536) -> float:
    """Seconds that the driver takes longer to look for answers, for every call that it waits for."""
    never = engine._ray.remote(num_cpus=10_000)(lambda: None)
    asked = [never.remote() for _ in range(calls)]
    begun = time.perf_counter()
    for _ in range(20):
        engine._ray.wait(asked, num_returns=calls, timeout=0)
    took = (time.perf_counter() - begun) / 20
    for answer in asked:
        engine._ray.cancel(answer, force=True)
    return took / calls


def fetching(engine: RayEngine) -> float:
    """Bytes per second, where the file by which workers see that they can write to the Run is kept from them."""
    touch = Path.touch
    Path.touch = lambda path: None if ".probe-" in path.name else touch(path)
    try:
        how = ExecutionOptions(batch_size=64, shard_size=512, workers=0, threads=1)
        seconds, job = timed(lambda work: Job(Subject(Nothing(), classes=10), Made(8192), [Heavy()], how, work), engine)
        size = sum(path.stat().st_size for path in job.probe_folder(0).rglob("*") if path.is_file())
        return size / max(1e-9, seconds - engine.busy_seconds / 2)
    finally:
        Path.touch = touch


class Watch:
    """The most memory that this process, and the largest worker, held at any moment."""

    def __init__(self, processes: list[int]):
        self._processes, self.largest, self._stop = processes, [0] * len(processes), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._stop.wait(0.05):
            for index, process in enumerate(self._processes):
                self.largest[index] = max(self.largest[index], resident(process))

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def resident(process: int) -> int:
    """Bytes that a process holds by itself; what it shares with others is counted to none."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def memory(engine: RayEngine, images: int) -> list[tuple]:
    subject = Subject(net(), classes=10, scores="logits")
    how, rows = ExecutionOptions(batch_size=64, shard_size=128, workers=1, threads=1), []
    asked = [NeuronCoverage(), ClassPairs(), NeighbourAccuracy(looks=1)]
    timed(lambda work: Job(subject, Made(images), asked, how, work), engine)
    workers = [member.about["process"] for member in engine._crew.members.values()]
    for times in (1, 2, 4):
        with Watch([os.getpid(), *workers]) as watch:
            timed(lambda work, many=images * times: Job(subject, Made(many), asked, how, work), engine)
        driver, *others = (size / 1e6 for size in watch.largest)
        rows += [(f"memory of the driver, {times}× {images} images", driver, "MB", "")]
        rows += [(f"memory of the largest worker, {times}× {images} images", max(others), "MB", "")]
    return rows


ROWS = {"written by workers": 0, "fetched, 100 B a sample": 100, "fetched, 100 kB a sample": 100_000}
"""How the rows come into the Run: the driver fetches them where workers do not share a file system with it."""


def simulated(named: str, pace: float, costs: Costs, call: float) -> list[dict]:
    """A core as measured here, and a GPU; each worker has about three calls that the driver waits for."""
    rows = []
    for kind, each in (("CPU core", pace), ("GPU", 1 / H200_IMAGES_PER_SECOND)):
        for where, size in ROWS.items():
            for shard_size in (1024, 128):
                for workers in (1, 8, 64, 512):
                    how = replace(
                        costs,
                        sample=50 * each,
                        event=costs.event + 2 * 3 * workers * call,
                        row_bytes=size,
                        bandwidth=costs.bandwidth if size else 0.0,
                        spread=0.1,
                    )
                    found = simulate(1_000_000, shard_size, workers, how)
                    rows.append(
                        {
                            "machine": named,
                            "worker": kind,
                            "rows": where,
                            "shard_size": shard_size,
                            "workers": workers,
                            "hours": round(found.seconds / 3600, 4),
                            "efficiency": round(found.efficiency, 3),
                            "driver_busy": round(found.driver_share, 4),
                            "limit": found.limit,
                        }
                    )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(2)
    named = machine("cpu")
    with RayEngine(workers=2) as engine:
        rows, pace = speed(engine, options.images, options.repeats)
        more, costs, call = overhead(engine)
        rows += more + memory(engine, options.images)
    keys = ("what", "value", "unit", "bar")
    measured = [(what, round(value, 3), unit, bar) for what, value, unit, bar in rows]
    write(HERE / "scale.csv", [{"machine": named, **dict(zip(keys, row, strict=True))} for row in measured])
    write(HERE / "scale_simulation.csv", simulated(named, pace, costs, call))


if __name__ == "__main__":
    main()
