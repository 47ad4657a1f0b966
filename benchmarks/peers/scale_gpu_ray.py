"""The same plan in one process on a GPU, and with Ray's actors that share that GPU: times, memory, and what is equal.

    python benchmarks/peers/scale_gpu_ray.py [--device cuda] [--images 4096] [--train 2048] [--looks 8] [--repeats 2]

Every coverage criterion and neighbour accuracy of a trained ResNet-32 on street-view house numbers.
`scale_gpu_ray.csv`: seconds for the whole plan, interleaved with those of one process, and memory.
`scale_gpu_ray_agreement.csv`: for each Finding whether all of its bytes are equal; where not, how many of its numbers
differ, and by how much at most, as a share of the largest of their kind. One process against itself comes first: what
differs there differs by the GPU, not by Ray. Without a GPU, a few images on the CPU: only that it runs.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from measuring import interleaved, machine, ratio, write
from scale_gpu import CRITERIA, data, subject

from weakspot.core.engine import Engine, peak_memory
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.plan import Plan
from weakspot.core.run import Run
from weakspot.core.subject import Subject
from weakspot.data.sources import ArraySource
from weakspot.engines import RayEngine
from weakspot.registry import steps_for

HERE = Path(__file__).parent
ONE = "one process"
COVERAGE = {"criteria": CRITERIA, "baseline": False, "agreement": False, "confidence": True}


class Asked:
    """One plan for one model and data, worked off as often as one likes, each time from nothing."""

    def __init__(self, options: argparse.Namespace, model: Subject):
        self.plan = Plan.of(steps_for({"coverage": COVERAGE, "robustness": {"looks": options.looks}}))
        self._model = model
        self._how = ExecutionOptions(options.batch, options.shard_size, workers=1, threads=1)

    def of(self, sources: dict[str, ArraySource], engine: Engine | None = None) -> dict[str, Finding]:
        """Its Findings, by their names."""
        with tempfile.TemporaryDirectory() as folder:
            run = Run.create(Path(folder) / "run")
            found = self.plan.run(self._model, sources, run, execution=self._how, engine=engine)
            return {finding.name: _kept(finding) for finding in found}


def _kept(finding: Finding) -> Finding:
    """The Finding without its folder; its digest is that of the folder's bytes."""
    arrays = {name: np.array(values) for name, values in finding.arrays.items()}
    kept = Finding(finding.name, finding.about, finding.summary, finding.table, arrays, {}, finding.provenance)
    kept.__dict__["digest"] = finding.digest
    return kept


def numbers(finding: Finding) -> dict[str, np.ndarray]:
    """All that a Finding holds, by its place: estimates with their ends, columns of the table, arrays."""
    held = {f"array {name}": values for name, values in finding.arrays.items()}
    for name, estimate in finding.summary.items():
        held[f"summary {name}"] = np.array([estimate.value, estimate.low, estimate.high], dtype=object)
    for name in finding.table.column_names if finding.table is not None else ():
        held[f"column {name}"] = finding.table.column(name).to_numpy(zero_copy_only=False)
    return held


def unequal(one: np.ndarray, other: np.ndarray) -> tuple[int, float]:
    """How many entries differ, and by how much at most, as a share of the largest; infinity for shapes and words."""
    if one.shape != other.shape:
        return max(one.size, other.size), float("inf")
    try:
        first, second = one.astype(np.float64), other.astype(np.float64)
    except (TypeError, ValueError):
        differ = int(np.sum(one != other))
        return differ, float("inf") if differ else 0.0
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    apart, largest = np.abs(first - second)[~same], np.nanmax(np.abs(first), initial=0.0)
    return int(np.sum(~same)), float(np.max(apart, initial=0.0) / (largest or 1.0))


def agreement(named: str, what: str, one: dict[str, Finding], other: dict[str, Finding]) -> list[dict]:
    """A line for each Finding."""
    rows = []
    for name, finding in one.items():
        mine, theirs = numbers(finding), numbers(other[name])
        found = {place: unequal(values, theirs[place]) for place, values in mine.items()}
        worst = max(found, key=lambda place: found[place][1], default="")
        differing = sum(count for count, _ in found.values())
        rows.append(
            {
                "machine": named,
                "compared": what,
                "finding": name,
                "every_byte": finding.digest == other[name].digest,
                "numbers": sum(values.size for values in mine.values()),
                "differing": differing,
                "apart_at_most": f"{found[worst][1]:.2g}" if differing else "0",
                "where": worst if differing else "",
            }
        )
    return rows


def with_ray(options: argparse.Namespace, asked: Asked, sources: dict, workers: int) -> tuple[list[tuple], dict]:
    """Figures of so many workers beside one process, and their Findings."""
    on_gpu = options.device.startswith("cuda")
    told = f"{workers} worker{'s' if workers > 1 else ''}" + (", half a GPU each" if on_gpu else "")
    found: dict[str, Finding] = {}
    with RayEngine(workers=workers, gpus_per_worker=0.5 if on_gpu else None) as engine:
        begun = time.perf_counter()
        asked.of(data(256, 256), engine)
        started = time.perf_counter() - begun
        tasks = {ONE: lambda: asked.of(sources), told: lambda: found.update(asked.of(sources, engine))}
        seconds = interleaved(tasks, options.repeats, options.device)
        taken = engine.footprint()
    rows = [
        (f"{ONE}, beside {told}", float(np.median(seconds[ONE])), "s"),
        (told, float(np.median(seconds[told])), "s"),
        (f"{told} / {ONE}", ratio(seconds, told, ONE), "ratio"),
        (f"{told}: start, with a first small plan", started, "s"),
        (f"{told}: memory of a worker", (taken.worker_bytes or 0) / 1e6, "MB"),
    ]
    if taken.worker_gpu_bytes is not None:
        rows.append((f"{told}: GPU memory of a worker", taken.worker_gpu_bytes / 1e6, "MB"))
    return rows, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    has_gpu = torch.cuda.is_available()
    parser.add_argument("--device", default="cuda" if has_gpu else "cpu")
    parser.add_argument("--images", type=int, default=4096 if has_gpu else 128)
    parser.add_argument("--train", type=int, default=2048 if has_gpu else 128)
    parser.add_argument("--looks", type=int, default=8 if has_gpu else 2)
    parser.add_argument("--batch", type=int, default=256 if has_gpu else 32)
    parser.add_argument("--shard-size", type=int, default=256 if has_gpu else 32)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--results", type=Path, default=HERE)
    options = parser.parse_args()
    torch.set_num_threads(1)
    named, on_gpu = machine(options.device), options.device.startswith("cuda")
    asked, sources = Asked(options, subject("ResN", options.device)), data(options.train, options.images)
    here = asked.of(sources)
    figures = [(f"{ONE}: memory", peak_memory() / 1e6, "MB")]
    figures += [(f"{ONE}: GPU memory", torch.cuda.max_memory_reserved() / 1e6, "MB")] if on_gpu else []
    compared = agreement(named, f"{ONE}, twice", here, asked.of(sources))
    for workers in (1, 2):
        more, there = with_ray(options, asked, sources, workers)
        figures += more
        compared += agreement(named, f"{ONE}, Ray with {workers} worker{'s' if workers > 1 else ''}", here, there)
        size = {"images": options.images, "looks": options.looks}
        rows = [{"machine": named, **size, "what": w, "value": round(v, 3), "unit": u} for w, v, u in figures]
        write(options.results / "scale_gpu_ray.csv", rows)
        write(options.results / "scale_gpu_ray_agreement.csv", compared)


if __name__ == "__main__":
    main()
