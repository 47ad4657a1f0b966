"""What retraining does to each kind of eye: the detector of glasses, before and after, by kind and by the true answer.

    python benchmarks/papers/causes_kinds.py [--nets 0 2] [--budget 235] [--device cuda] [--weights FOLDER]

writes causes_kinds.csv beside this script: the accuracy on the fresh test set, after one training on the unsafe set and
one on random images that weigh as much, as causes_retraining.py has them. Nets that are not in FOLDER are trained.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from causes_cases import Case, chosen, retraining_data
from causes_eyes import detector, planted
from measuring import machine, write

from weakspot.core.source import Source
from weakspot.repair import Recipe, proved

KINDS = ("usual", "dark", "blurred", "tilted", "reflecting")


def rows(case: Case, net: int, budget: int, folder: Path) -> list[dict[str, Any]]:
    """One row per kind, true answer and model."""
    causes, unsafe, limit = chosen(case, budget, folder)
    made = proved(
        case.subject,
        retraining_data(case, causes, unsafe, "fresh test", limit),
        recipe=Recipe(),
        repeats=1,
        methods=("random images repeated",),
        validation=0.0,
    )
    kind, true = kinds_and_answers(case.data["fresh test"])
    labelled = np.isin(case.data["improvement"].ids, unsafe.table["id"].to_pylist())
    pool_kind, pool_true = (values[labelled] for values in kinds_and_answers(case.data["improvement"]))
    models = {name: np.atleast_2d(right)[0] for name, right in made.finding.arrays.items() if name in _models(made)}
    return [
        {
            "net": net,
            "labels": budget,
            "model": model,
            "kind": name,
            "true": answer,
            "images": int(own.sum()),
            "right": round(float(right[own].mean()), 3),
            "labels_of_the_kind": int(((pool_kind == name) & (pool_true == number)).sum()),
            "one_class_clusters": unsafe.summary["one_class_clusters"].value,
        }
        for model, right in models.items()
        for name in KINDS
        for number, answer in enumerate(case.subject.classes or ())
        if (own := (kind == name) & (true == number)).any()
    ]


def kinds_and_answers(source: Source) -> tuple[np.ndarray, np.ndarray]:
    """What was planted in each image, and its true class."""
    kinds = np.array([planted(name) for name in source.ids])
    return kinds, source.read(np.arange(len(kinds))).known_targets.cpu().numpy()


def _models(made: Any) -> list[str]:
    return [name for name in made.finding.arrays if name.startswith(("before", "after"))]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--nets", nargs="+", type=int, default=[0, 2])
    asked.add_argument("--budget", type=int, default=235)
    asked.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked.add_argument("--weights", type=Path, default=Path(__file__).parent)
    given = asked.parse_args()
    found = []
    for net in given.nets:
        case = detector("glasses", given.device, given.weights, seed=net)
        with tempfile.TemporaryDirectory() as folder:
            found += rows(case, net, given.budget, Path(folder) / "run")
    write(Path(__file__).with_suffix(".csv"), [{"machine": machine(given.device), **row} for row in found])


if __name__ == "__main__":
    main()
