"""Table 5 of DeepRobust: the white box with more weak images in training, and by how many neighbours tell the truth.

    python benchmarks/papers/robustness_sampling.py [--cache FOLDER] [--device cuda] [--settings 0 1 2 6 12 25]
                                                    [--seeds 5] [--minutes 7]

writes robustness_sampling.csv beside this script: precision, recall and F1 at the threshold 0.5 of DeepRobust-W on the
three ResNet-32, one row per setting and seed; rows that are there are not made again. Settings are the weak emphases
0, 1 and 2 with 50 neighbours, and 6, 12, 25 and 200 neighbours without emphasis; 50 neighbours are the emphasis 0. Test
images are judged by the 50 stored neighbours. 200 are those and 150 more of every training image, which takes minutes
on a GPU and hours on a CPU.
"""

import itertools
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import machine, read_rows, write_rows

import robustness
from robustness import ALL, LOOKS, WHOLE_TRAINING_SET, Case, argument_parser
from weakspot.robustness import neighbour_accuracy
from weakspot.robustness.detector_network import fit_network
from weakspot.statistics.ranking import detection

PUBLISHED: dict[str, dict[str, dict[int, float]]] = {
    "ResN-cifar10": {
        "weak emphasis": {0: 0.581, 2: 0.612},
        "neighbours": {6: 0.49, 12: 0.492, 25: 0.572, 50: 0.581, 200: 0.562},
    },
    "ResN-fashion_mnist": {
        "weak emphasis": {0: 0.791, 1: 0.79, 2: 0.783},
        "neighbours": {6: 0.77, 12: 0.787, 25: 0.78, 50: 0.778, 200: 0.794},
    },
    "ResN-svhn": {
        "weak emphasis": {0: 0.577, 1: 0.612, 2: 0.463},
        "neighbours": {6: 0.518, 12: 0.59, 25: 0.624, 50: 0.618, 200: 0.603},
    },
}
"""F1; one is not legible in the text at hand."""
EMPHASES, NEIGHBOURS = (0, 1, 2), (6, 12, 25, 200)
FURTHER = 20243
"""Seed of the neighbours that are not stored."""
PART = 25
"""So many of them are asked and kept at a time."""


def trained(case: Case, setting: int, seed: int, device: str) -> list[dict[str, Any]]:
    """The rows of one training: two where it stands for an emphasis and for a number of neighbours."""
    emphasis, looks = (setting, LOOKS) if setting in EMPHASES else (0, setting)
    said = case.said["train"] if looks <= LOOKS else further(case, looks)
    accuracy = neighbour_accuracy(said[:, : looks + 1], case.labels["train"])
    how = replace(WHOLE_TRAINING_SET, weak_emphasis=emphasis, seed=seed, device=device)
    network = fit_network(case.features["train"], accuracy, 0.5, how).network
    flagged = network.probability(case.features["test"]) >= network.threshold
    found = detection(flagged, case.weak("test", ALL, 0.5))
    figures = {"f1": found.f1, "precision": found.precision, "recall": found.recall}
    rounded = {name: round(float(value), 4) for name, value in figures.items()}
    named = [("weak emphasis", emphasis)] if setting in EMPHASES else []
    named += [("neighbours", looks)] if emphasis == 0 else []
    return [
        {
            "net": case.net,
            "varied": varied,
            "setting": value,
            "seed": seed,
            **rounded,
            "published_f1": PUBLISHED[case.net][varied].get(value, ""),
            "machine": machine(device),
        }
        for varied, value in named
    ]


def further(case: Case, looks: int) -> np.ndarray:
    """The classes of the training images and of so many neighbours: the stored ones, then others."""
    return np.concatenate([case.said["train"], *(answers(case, first) for first in range(0, looks - LOOKS, PART))], 1)


def answers(case: Case, first: int) -> np.ndarray:
    """The classes of some neighbours that are not stored, from the first of them on; kept part by part."""
    path = case.cache / f"{case.net}-further-{first}.npy"
    if not path.exists():
        pixels = case.pixels["x_train"]
        drawn = robustness.neighbours().neighbour_parameters(len(pixels), max(NEIGHBOURS) - LOOKS, FURTHER)
        model = robustness.network(case.net, case.device)
        logits = robustness.asked(model, pixels, drawn[:, first : first + PART], case.device)
        np.save(path, np.concatenate([batch.argmax(2).astype(np.uint8) for batch in logits]))
    return np.asarray(np.load(path))


def in_order(row: dict[str, Any]) -> tuple[int, bool, int, int]:
    return list(PUBLISHED).index(row["net"]), row["varied"] == "neighbours", int(row["setting"]), int(row["seed"])


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--nets", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--settings", type=int, nargs="+", choices=(*EMPHASES, *NEIGHBOURS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".csv"))
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--limit", type=int, help="images of each kind, for a trial; give a cache of its own, too")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    found: list[dict[str, Any]] = [*read_rows(options.results)]
    settings = options.settings or (*EMPHASES, *NEIGHBOURS)
    for net in options.nets:
        known = {(int(row["setting"]), int(row["seed"])) for row in found if row["net"] == net}
        wanted = [each for each in itertools.product(range(options.seeds), settings) if each[::-1] not in known]
        case = Case(net, options.data, options.cache, options.device, limit=options.limit) if wanted else None
        for seed, setting in wanted:
            if case is not None and time.monotonic() < until:
                found = sorted([*found, *trained(case, setting, seed, options.device)], key=in_order)
                write_rows(options.results, found)
                print(f"{net}, {setting}, seed {seed}: done", flush=True)


if __name__ == "__main__":
    main()
