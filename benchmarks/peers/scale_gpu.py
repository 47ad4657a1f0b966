"""`examine` with every coverage criterion against the bare forward pass, and the same numbers on CPU and GPU.

    python benchmarks/peers/scale_gpu.py [--device cuda] [--images 20480] [--train 2048] [--compared 1024] [--repeats 5]

NC, KMNC with NBC and SNAC, TKNC with TKNP, IDC, LSC, DSC and the model's confidence in one pass over street-view house
numbers (from the first again up to the number asked for), on a trained ResNet-32 and WideResNet-28-2. `bare` is the
model alone on batches that lie on the device. `all criteria, batches on the device` is what the frame and the criteria
add to that; `all criteria, examined` also reads and copies the images, and keeps rows and states on disk. Bar: 1.25
times the bare pass with the batches on the device.

CPU and GPU: the whole plan on both. Every number of a summary may differ by 0.005 (a share of neurons or of
combinations), the confidence in a class by 0.001; with TensorFloat-32, torch's default for convolutions, by 0.01.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from measuring import SHARED, architectures, interleaved, machine, ratio, write

from weakspot.core.examine import observe_batches, run_job
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.job import Job
from weakspot.core.plan import Plan
from weakspot.core.progress import Silent
from weakspot.core.run import Run
from weakspot.core.subject import Subject
from weakspot.data.sources import ArraySource
from weakspot.registry import steps_for

BAR = 1.25
CRITERIA = ["nc", "kmnc", "nbc", "snac", "tknc", "tknp", "idc", "lsc", "dsc"]
QUESTION = {"coverage": {"criteria": CRITERIA, "baseline": False, "agreement": False, "confidence": True}}
SUMMARY, CONFIDENCE, CONFIDENCE_TF32 = 0.005, 0.001, 0.01


def subject(name: str, device: str, *, cuda_graphs: bool = False) -> Subject:
    nets = architectures()
    net = nets.load_half_precision(nets.build(name, "svhn"), str(SHARED / "models" / f"{name}-svhn.safetensors"))
    return Subject(net, classes=10, scores="logits", device=device, cuda_graphs=cuda_graphs)


def data(train: int, test: int) -> dict[str, ArraySource]:
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        return {split: _taken(stored, split, count) for split, count in (("train", train), ("test", test))}


def _taken(stored: Mapping[str, np.ndarray], split: str, count: int) -> ArraySource:
    """As many images as asked for, from the first again where there are not enough."""
    images, classes = stored[f"x_{split}"], stored[f"y_{split}"]
    which = np.arange(count) % len(images)
    return ArraySource(images[which], classes[which], channels="last")


def found_by(plan: Plan, asked: Subject, sources: dict[str, ArraySource], batch: int) -> dict[str, Finding]:
    """The Findings of the whole plan, by the steps' keys."""
    with tempfile.TemporaryDirectory() as folder:
        made = plan.run(asked, sources, Run.create(Path(folder) / "run"), execution=ExecutionOptions(batch_size=batch))
        return {step.key: _in_memory(finding) for step, finding in zip(plan.steps, made, strict=True)}


def _in_memory(finding: Finding) -> Finding:
    return replace(finding, arrays={name: np.array(values) for name, values in finding.arrays.items()})


def speed(name: str, options: argparse.Namespace, *, batch: int, cuda_graphs: bool) -> list[dict]:
    plan, sources = Plan.of(steps_for(QUESTION)), data(options.train, options.images)
    examined = subject(name, options.device, cuda_graphs=cuda_graphs)
    found = found_by(plan, examined, {**sources, "test": data(0, 64)["test"]}, batch)
    steps = [step for step in plan.passes()[-1].steps if step.split == "test"]
    probes, how = [step.build(found) for step in steps], ExecutionOptions(batch_size=batch, shard_size=options.images)
    test = sources["test"]
    places = range(0, len(test.ids), batch)
    with tempfile.TemporaryDirectory() as work, examined.borrowed():
        job = Job(examined, test, probes, how, Path(work) / "resident")
        batches = [test.read(np.arange(i, min(i + batch, len(test.ids)))).to(examined.device) for i in places]
        number = iter(range(10_000))

        def bare() -> None:
            with torch.no_grad():
                for resident in batches:
                    examined.forward(resident.inputs)

        def asked() -> None:
            folder = Path(work) / f"rows-{next(number)}"
            folder.mkdir()
            writers = [writer for probe in job.probes for writer in probe.begin_shard(folder)]
            observe_batches(examined, batches, job.probes, job.setting, Silent().advance)
            for writer in writers:
                writer.finish()

        def whole() -> None:
            run_job(Job(examined, test, probes, how, Path(work) / f"whole-{next(number)}"))

        tasks = {"bare": bare, "all criteria, batches on the device": asked, "all criteria, examined": whole}
        seconds = interleaved(tasks, options.repeats, options.device)
    return [
        {
            "machine": machine(options.device),
            "net": f"{name}, batches of {batch}" + (", CUDA graphs" if cuda_graphs else ""),
            "task": task,
            "images_per_second": round(len(test.ids) / float(np.median(seconds[task]))),
            "ratio_to_bare": round(ratio(seconds, task, "bare"), 3),
            "bar": BAR if task.endswith("device") else "",
        }
        for task in tasks
    ]


@contextmanager
def tensor_float(allowed: bool) -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


def agreement(name: str, options: argparse.Namespace) -> list[dict]:
    """How far the numbers of the same plan lie apart on CPU and device."""
    plan, sources = Plan.of(steps_for(QUESTION)), data(options.train, options.compared)
    on_cpu = found_by(plan, subject(name, "cpu"), sources, options.batches[0])
    rows = []
    for allowed in (False, True) if options.device.startswith("cuda") else (False,):
        with tensor_float(allowed):
            there = found_by(plan, subject(name, options.device), sources, options.batches[0])
        numbers = f"{name}, {'TensorFloat-32' if allowed else 'float32'}"
        for step in plan.steps:
            if step.split == "test":
                one, other = on_cpu[step.key], there[step.key]
                rows.append(_apart(machine(options.device), numbers, one, other, allowed))
    return rows


def _apart(named: str, numbers: str, one: Finding, other: Finding, tf32: bool) -> dict:
    shared = [key for key in one.summary if isinstance(one.summary[key].value, int | float)]
    scaled = [abs(float(one.summary[k].value) - float(other.summary[k].value)) for k in shared]
    scale = [max(1.0, abs(float(one.summary[k].value))) for k in shared]
    summary = max((apart / size for apart, size in zip(scaled, scale, strict=True)), default=0.0)
    columns = [] if one.table is None else [c for c in one.table.column_names if c in ("max_softmax", "confidence")]
    sure = max((float(np.max(np.abs(_column(one, c) - _column(other, c)))) for c in columns), default=0.0)
    tolerance = CONFIDENCE_TF32 if tf32 else CONFIDENCE
    return {
        "machine": named,
        "net": numbers,
        "finding": one.name,
        "summary_apart": f"{summary:.2g}",
        "confidence_apart": f"{sure:.2g}" if columns else "",
        "within": summary <= SUMMARY and sure <= tolerance,
    }


def _column(finding: Finding, name: str) -> np.ndarray:
    return finding.table.column(name).to_numpy(zero_copy_only=False).astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--images", type=int, default=20480)
    parser.add_argument("--train", type=int, default=2048)
    parser.add_argument("--compared", type=int, default=1024)
    parser.add_argument("--batches", nargs="+", type=int, default=[512, 2048])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--nets", nargs="+", default=["ResN", "WideResN"])
    options = parser.parse_args()
    on_gpu = options.device.startswith("cuda")
    rows = [
        row
        for name in options.nets
        for batch in options.batches
        for graphs in ((False, True) if on_gpu else (False,))
        for row in speed(name, options, batch=batch, cuda_graphs=graphs)
    ]
    write(Path(__file__).with_suffix(".csv"), rows)
    if on_gpu:  # a CPU agrees with itself
        compared = [row for name in options.nets for row in agreement(name, options)]
        write(Path(__file__).with_name("scale_gpu_agreement.csv"), compared)


if __name__ == "__main__":
    main()
