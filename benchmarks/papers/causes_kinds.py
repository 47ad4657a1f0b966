"""What retraining does to each kind of eye: the detector of glasses, before and after, by kind and by the true answer.

    python benchmarks/papers/causes_kinds.py [--nets 0 1 …] [--repeats 10] [--device cuda] [--out FOLDER]

writes causes_kinds.csv beside this script, or to --out: the accuracy on the fresh test set, mean of the repeats, after
training on the unsafe set, on random images, and on random images that weigh as much. Nets and trainings are those of
causes_retraining.py in the same folder; what is missing is trained.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from causes_eyes import detector, planted
from causes_repeats import Repeats
from measuring import write_rows

from weakspot.causes.unsafe_selection import one_class_clusters
from weakspot.core.source import Source

MODELS = ("before", "after-unsafe_set", "after-random_images", "after-random_images_repeated")


def rows(repeats: Repeats) -> list[dict[str, Any]]:
    """One row per kind, true answer and model."""
    data, answers = repeats.case.data, repeats.answers()
    kinds, true = kinds_and_answers(data["fresh test"])
    clusters = np.array([repeats.unsafe.clusters.get(name, 0) for name in data["pool"].ids])
    pool_kinds, pool_true = (values[clusters > 0] for values in kinds_and_answers(data["pool"]))
    one_class = one_class_clusters(clusters[clusters > 0], pool_true)
    return [
        {
            "case": repeats.case.name,
            "labels": repeats.budget,
            "model": model,
            "repeats": len(answers),
            "kind": kind,
            "true": answer,
            "images": int(own.sum()),
            "correct": round(float(np.mean([np.atleast_2d(one[f"fresh test {model}"])[0, own] for one in answers])), 3),
            "labels_of_the_kind": int(((pool_kinds == kind) & (pool_true == number)).sum()),
            "clusters": len(set(repeats.unsafe.clusters.values())),
            "one_class_clusters": len(one_class),
            "machine": str(answers[0]["machine"]),
        }
        for model in MODELS
        for kind in dict.fromkeys(kinds.tolist())
        for number, answer in enumerate(repeats.case.subject.classes or ())
        if (own := (kinds == kind) & (true == number)).any()
    ]


def kinds_and_answers(source: Source) -> tuple[np.ndarray, np.ndarray]:
    """What was planted in each image, and its true class."""
    kinds = np.array([planted(name) for name in source.ids])
    return kinds, source.read(np.arange(len(kinds))).known_targets.cpu().numpy()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--nets", nargs="+", type=int, default=[1, 2, 3, 4])
    asked.add_argument("--repeats", type=int, default=10)
    asked.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = asked.parse_args()
    found = []
    for net in given.nets:
        case = detector("glasses", given.device, given.out, seed=net)
        for budget in case.budgets:
            repeats = Repeats.kept(case, budget, given.out / "runs")
            for repeat in range(given.repeats):
                repeats.train(repeat)
            found += rows(repeats)
    write_rows(given.out / "causes_kinds.csv", found)


if __name__ == "__main__":
    main()
