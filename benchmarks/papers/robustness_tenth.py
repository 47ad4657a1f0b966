"""Detectors of weak inputs on two networks on which nothing about them was settled: LeNet-5 on MNIST, a ConvNet.

    python benchmarks/papers/robustness_tenth.py [--nets LeNet5-mnist …] [--device cuda] [--seeds 0 1 2 3 4]

writes robustness_tenth.csv beside this script. The design of the detectors was settled over the nine networks of
robustness.py with their test images in sight; these two were looked at once, with all options at their defaults, which
includes a sample of 10,000 training images. Seeds draw neighbours, sample and training anew. The LeNet-5 is a
stored one ($WEAKSPOT_SHARED/models), the ConvNet that of importance_nets.py (its weights: FOLDER of --weights).
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
import steering_nets
from importance_nets import convnet, images
from measuring import SHARED, architectures, machine, read_rows, write_rows

from weakspot import Finding, Plan, Run, Step, Subject
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.source import Source, limited
from weakspot.robustness import DetectorEvaluation, MethodOutput, NeighbourAccuracy, quantile_threshold
from weakspot.robustness.metrics_detection import metrics_table

NETS = ("LeNet5-mnist", "ConvNet-cifar10")
SAMPLE = 10_000
FIGURES = ("weak_share", "f1", "f1_low", "f1_high", "precision", "recall", "average_precision", "auroc", "brier")


def setting(net: str, device: str, weights: Path) -> tuple[Subject, dict[str, Source]]:
    if net == "ConvNet-cifar10":
        one = convnet(device, weights)
        return one.subject, one.data
    models = architectures()
    path = str(SHARED / "models" / f"{net}.safetensors")
    model = models.load_half_precision(models.build("LeNet5", "mnist"), path)
    return Subject(model, classes=10, scores="logits", bounds=(0, 1), device=device), images("mnist", "none")


def shared_draws(train: Finding, test: Finding, threshold: float) -> dict[str, np.ndarray]:
    """The black box as the paper scores it: truth and diversity from the same 50 neighbours."""
    seen = [
        {name: finding.table[name].to_numpy() for name in ("neighbour_accuracy", "concentration")}  # type: ignore[index]
        for finding in (train, test)
    ]
    score_threshold = quantile_threshold(-seen[0]["concentration"], seen[0]["neighbour_accuracy"] <= threshold)
    score = -seen[1]["concentration"]
    return metrics_table(
        [MethodOutput("black_box", score, score >= score_threshold)], seen[1]["neighbour_accuracy"] <= threshold
    )


def rows(subject: Subject, data: dict[str, Source], seed: int, looks: int) -> Iterator[dict[str, Any]]:
    few = {"train": limited(data["train"], SAMPLE, seed=seed), "test": data["test"]}
    thresholds = (0.75, 0.5)
    options = {"looks": looks, "seed": seed, "weak_if": "at_or_below"}
    judged = {c: Step.of(DetectorEvaluation, training={**options, "threshold": c}, looks=looks) for c in thresholds}
    shared = {
        split: Step.of(NeighbourAccuracy, split=split, looks=looks, early_stopping="never", seed=seed) for split in few
    }
    plan = Plan.of([*judged.values(), *shared.values()])
    with tempfile.TemporaryDirectory() as folder:
        how = ExecutionOptions(batch_size=500, shard_size=5000)
        findings = plan.run(subject, few, Run.create(Path(folder) / "run"), execution=how)
        found = {step.key: finding for step, finding in zip(plan.steps, findings, strict=True)}
        for threshold in thresholds:
            table = found[judged[threshold].key].table
            assert table is not None
            yield from told("fresh", threshold, {name: table[name].to_numpy() for name in table.column_names})
            both = (found[shared[split].key] for split in few)
            yield from told("shared", threshold, shared_draws(*both, threshold))


def told(draws: str, threshold: float, table: dict[str, np.ndarray]) -> Iterator[dict[str, Any]]:
    for place, method in enumerate(table["method"]):
        figures = {name: round(float(table[name][place]), 4) for name in FIGURES}
        yield {"threshold": threshold, "draws": draws, "method": method, **figures}


def main() -> None:
    parser = steering_nets.argument_parser(__doc__, __file__)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=NETS)
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    parser.add_argument("--looks", type=int, default=50)
    parser.add_argument("--limit", type=int, help="test and training images, for a trial")
    options = parser.parse_args()
    everything: list[dict[str, Any]] = [*read_rows(options.results)]
    for net in options.nets:
        subject, data = setting(net, options.device, options.weights)
        data = {split: limited(source, options.limit) for split, source in data.items()}
        for seed in options.seeds:
            if any((row["net"], row["seed"]) == (net, str(seed)) for row in everything):
                continue
            what = {"machine": machine(options.device), "net": net, "seed": str(seed)}
            everything += [{**what, **row} for row in rows(subject, data, seed, options.looks)]
            write_rows(options.results, everything, columns=list(everything[-1]))
            print(f"{net}, seed {seed}: done", flush=True)


if __name__ == "__main__":
    main()
