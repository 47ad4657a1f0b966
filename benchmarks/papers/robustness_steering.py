"""DeepRobust's Table 7 and Figure 8: weak frames of three steering networks under rain and fog.

    python benchmarks/papers/robustness_steering.py [--device cuda] [--seeds 0 1 2 3 4] [--weights FOLDER]

writes robustness_steering.csv beside this script. Networks, blocks of time and smoothed labels are those of
steering_nets.py; FOLDER holds their weights. Each seed is another training of the network, with its own weather. 50
neighbours, half rain (Automold's heavy rain), half fog; an answer is right if its squared error is at most λ times the
mean squared error of the frames that the detector learns from, λ = 3 (for the first seed also 1 and 5).

DeepRobust-W learns from the frames that the network was trained on, as in the paper ("train"), or from the validation
blocks, which it never saw ("validation"). Both are judged on the test blocks. "random" flags as many frames as W does,
"flag_all" every frame; the share of weak frames stands beside. `right_weak` is the share of weak frames among those
predicted correctly as they are (the paper: 45.8 % at 0.75).
"""

import itertools
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
import steering_nets
from measuring import machine, read_rows, write_rows

from weakspot import Finding, Plan, Run, Step, Subject
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.source import Source
from weakspot.data.sources import ArraySource
from weakspot.looks import Fog, Neighbour, Rain
from weakspot.robustness import DetectorEvaluation, NeighbourTolerance, SquaredError

PUBLISHED = {
    "chauffeur": (0.416, 0.346), "epoch": (0.789, 0.682), "dave2": (0.541, 0.409),
}  # fmt: skip
WEATHER = Rain() | Fog()
VARIED = {"variation": WEATHER, "weak_if": "at_or_below"}
FIGURES = ("weak_share", "f1", "f1_low", "f1_high", "precision", "recall", "average_precision", "auroc")


def sources(drive: steering_nets.Drive, labels: np.ndarray) -> dict[str, Source]:
    return {
        part: ArraySource(drive.frames[drive.part == part], labels[drive.part == part], channels="last")
        for part in ("train", "validation", "test")
    }


def rows(subject: Subject, data: dict[str, Source], seed: int, looks: int) -> Iterator[dict[str, Any]]:
    tolerances = (3.0, 1.0, 5.0) if seed == 0 else (3.0,)
    asked = list(itertools.product((0.75, 0.5), tolerances))
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run")
        accuracy = found(
            subject, data, run, {(split, *key): near(split, *key, seed, looks) for key in asked for split in data}
        )
        error = found(subject, data, run, {"error": Step.of(SquaredError)})["error"]
        learnable = [key for key in asked if both_kinds(accuracy["train", *key], key[0])]
        judged = found(subject, data, run, {key: detector(*key, seed, looks) for key in learnable})
        for key in asked:
            what = {"threshold": key[0], "tolerance": key[1], **right_and_weak(accuracy["test", *key], error, *key)}
            table = judged[key].table if key in judged else None
            for row in [] if table is None else table.to_pylist():
                yield {**what, "method": row["method"], **{name: round(float(row[name]), 4) for name in FIGURES}}
            if table is None:
                yield {**what, "method": "nothing to learn", **dict.fromkeys(FIGURES, "")}


def near(split: str, threshold: float, tolerance: float, seed: int, looks: int) -> Step:
    options = {**VARIED, "looks": looks, "seed": seed, "threshold": threshold, "tolerance": tolerance}
    return Step.of(NeighbourTolerance, split=split, early_stopping="never", **options)


def detector(threshold: float, tolerance: float, seed: int, looks: int) -> Step:
    options = {**VARIED, "looks": looks, "seed": seed, "threshold": threshold, "tolerance": tolerance}
    return Step.of(DetectorEvaluation, training={**options, "queries": 0, "sample": None}, looks=looks)


def found(subject: Subject, data: dict[str, Source], run: Run, steps: Mapping[Any, Step]) -> dict[Any, Finding]:
    """The Findings of some steps, by the same keys."""
    plan = Plan.of(list(steps.values()))
    findings = plan.run(subject, data, run, execution=ExecutionOptions(batch_size=128, shard_size=2048))
    by_step = {step.key: finding for step, finding in zip(plan.steps, findings, strict=True)}
    return {key: by_step[step.key] for key, step in steps.items()}


def both_kinds(accuracy: Finding, threshold: float, least: int = 20) -> bool:
    """Whether there are weak and strong frames enough to learn from."""
    assert accuracy.table is not None
    weak = int((accuracy.table["neighbour_accuracy"].to_numpy() <= threshold).sum())
    return least <= weak <= accuracy.table.num_rows - least


def right_and_weak(accuracy: Finding, error: Finding, threshold: float, tolerance: float) -> dict[str, float]:
    """How many frames are predicted correctly as they are, and how many of these are weak."""
    assert accuracy.table is not None
    limit = tolerance * float(error.summary["mean_squared_error"].value)  # type: ignore[arg-type]
    right = accuracy.table["squared_error"].to_numpy() <= limit
    weak = accuracy.table["neighbour_accuracy"].to_numpy() <= threshold
    return {"right": round(float(right.mean()), 4), "right_weak": round(float(weak[right].mean()), 4)}


def strip(subject: Subject, test: Source, path: Path) -> None:
    """A frame, and the same in rain and in fog."""
    from PIL import Image

    batch = test.read(np.array([len(test.ids) // 3]))
    look = Neighbour(WEATHER, 0, subject.bounds)
    shown = [batch.inputs, *(look.images(batch.inputs, batch.ids, number) for number in (1, 2))]
    pixels = np.concatenate([(255 * each[0].permute(1, 2, 0).numpy()).round() for each in shown], 1)
    Image.fromarray(pixels.astype(np.uint8)).save(path)


def main() -> None:
    parser = steering_nets.argument_parser(__doc__, __file__)
    parser.add_argument("--nets", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    parser.add_argument("--looks", type=int, default=50)
    parser.add_argument("--figure", type=Path, help="where to draw a frame in rain and fog")
    options = parser.parse_args()
    drive, everything = steering_nets.drive(), [*read_rows(options.results)]
    for seed, net in itertools.product(options.seeds, options.nets):
        if any((row["net"], row["seed"]) == (net, str(seed)) for row in everything):
            continue
        model, width = steering_nets.loaded(net, options.weights, seed)
        subject = Subject(model, task="regression", bounds=(0, 1), device=options.device)
        data = sources(drive, drive.labels(width))
        if options.figure:
            strip(subject, data["test"], options.figure)
        for learns in ("train", "validation"):
            own = {"train": data[learns], "test": data["test"]}
            what = {"machine": machine(options.device), "net": net, "seed": str(seed), "learns_from": learns}
            everything += [{**what, **row} for row in rows(subject, own, seed, options.looks)]
        write_rows(options.results, everything, columns=list(everything[-1]))
        print(f"{net}, seed {seed}: done", flush=True)


if __name__ == "__main__":
    main()
