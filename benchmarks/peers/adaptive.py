"""How many looks sequential rules save, and what they cost in verdicts, on the stored predictions of nine networks.

    python benchmarks/peers/adaptive.py [DATA]

DATA, by default $WEAKSPOT_DATA, is a folder with cifar10.npz and fashion-mnist.npz. The predictions and SVHN come from
$WEAKSPOT_SHARED, by default a folder `shared` beside the checkout. Writes a CSV beside itself. Nothing is timed: the
figures are the same on every machine.

Bars for the rule "predictive" at an error rate of 0.02: at least 2.5 times fewer looks than 51, under 1 % other
verdicts for inputs whose neighbour accuracy is more than 0.1 away from the threshold.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import SHARED, write

from weakspot.statistics.sequential import StoppingRule, certain_rule, predictive_rule, wald_rule

NETS = [f"{net}-{data}" for data in ("cifar10", "fashion_mnist", "svhn") for net in ("ResN", "WideResN", "Vgg16Half")]
LOOKS = 51
RULES: dict[str, Callable[[float], StoppingRule]] = {
    "certain": lambda threshold: certain_rule(LOOKS, threshold),
    "predictive 0.01": lambda threshold: predictive_rule(LOOKS, threshold, 0.01),
    "predictive 0.02": lambda threshold: predictive_rule(LOOKS, threshold, 0.02),
    "predictive 0.05": lambda threshold: predictive_rule(LOOKS, threshold, 0.05),
    "wald 0.05": lambda threshold: wald_rule(LOOKS, threshold, 0.05),
}


def test_labels(data: str, folder: Path) -> np.ndarray:
    path = SHARED / "data" / "svhn.npz" if data == "svhn" else folder / f"{data.replace('_', '-')}.npz"
    if not path.exists():
        sys.exit(f"needs {path}: name the folder with the public data, or set $WEAKSPOT_DATA")
    with np.load(path) as stored:
        return np.asarray(stored["y_test"])


def tried(rule: StoppingRule, right: np.ndarray, threshold: float) -> dict[str, Any]:
    counts = right.cumsum(1)
    stop, below = rule.verdicts(counts, np.broadcast_to(np.arange(1, LOOKS + 1), counts.shape))
    first = stop.argmax(1)
    accuracy = right.mean(1)
    other = below[np.arange(len(right)), first] != (accuracy <= threshold)
    far = np.abs(accuracy - threshold) > 0.1
    looks = float((first + 1).mean())
    return {
        "looks_per_input": round(looks, 2),
        "times_fewer": round(LOOKS / looks, 2),
        "other_verdicts_far": round(float(other[far].mean()), 5),
        "other_verdicts": round(float(other.mean()), 5),
    }


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    for net in NETS:
        with np.load(SHARED / "models" / "neighbours" / f"{net}-predicted.npz") as stored:
            right = stored["test"] == test_labels(net.split("-")[1], folder)[:, None]
        for threshold in (0.75, 0.5):
            for name, rule in RULES.items():
                yield {
                    "machine": "any",
                    "net": net,
                    "threshold": threshold,
                    "rule": name,
                    **tried(rule(threshold), right, threshold),
                }


def main() -> None:
    found = list(rows(Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("WEAKSPOT_DATA", "data"))))
    write(Path(__file__).with_suffix(".csv"), found)
    for name in RULES:
        for threshold in (0.75, 0.5):
            own = [row for row in found if row["rule"] == name and row["threshold"] == threshold]
            mean = {key: float(np.mean([row[key] for row in own])) for key in ("times_fewer", "other_verdicts")}
            worst = max(row["other_verdicts_far"] for row in own)
            print(f"{name} at {threshold}: {mean['times_fewer']:.2f} times fewer, {mean['other_verdicts']:.2%} other "
                  f"verdicts, at most {worst:.2%} far from the threshold")  # fmt: skip


if __name__ == "__main__":
    main()
