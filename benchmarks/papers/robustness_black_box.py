"""Table 6 of DeepRobust: the black box B with its hits and false alarms, by which neighbours tell score and truth.

    python benchmarks/papers/robustness_black_box.py [--data DATA]

writes robustness_black_box.csv beside this script: network by network, over five seeds that draw the neighbours
asked, from the stored classes of originals and 50 neighbours. A CPU does it in a minute. "shared": score and truth
from the same 50, as the published figures; "text": score from 15, truth from all 50, of which the 15 are a part, as
the paper's text has it; "fresh": score from 15, truth from the original and the other 35. The threshold is the
quantile of the training images that are weak. Weak is lower than the cutoff, as in the paper; "at or below" counts
ties, too, which only the 36 answers of "fresh" have.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED, machine, write_rows

from robustness import ALL, FRESH, NETS, QUERIES, argument_parser, images, order_of_looks
from weakspot.robustness import quantile_threshold, simpson_diversity, weak_inputs
from weakspot.statistics.ranking import auroc, detection

TABLE_6 = {
    "ResN-cifar10": ((0.939, 4714, 257), (0.622, 1454, 801)),
    "WideResN-cifar10": ((0.938, 3657, 171), (0.585, 986, 604)),
    "Vgg16Half-cifar10": ((0.945, 3397, 148), (0.682, 1087, 390)),
    "ResN-svhn": ((0.956, 8371, 365), (0.670, 1845, 858)),
    "WideResN-svhn": ((0.963, 6827, 227), (0.718, 1602, 514)),
    "Vgg16Half-svhn": ((0.976, 8608, 144), (0.779, 2138, 454)),
    "ResN-fashion_mnist": ((0.987, 6422, 81), (0.802, 2316, 546)),
    "WideResN-fashion_mnist": ((0.989, 6246, 70), (0.857, 2297, 360)),
    "Vgg16Half-fashion_mnist": ((0.991, 7078, 60), (0.847, 2393, 418)),
}
"""F1, true and false positives at 0.75 and at 0.5; 26,032 test images of SVHN."""
CUTOFFS = (0.75, 0.5)
DRAWS = {"shared": (ALL, ALL), "text": (list(range(QUERIES + 1)), ALL), "fresh": (list(range(QUERIES + 1)), FRESH)}
"""Which answers give the score, and which the truth."""


def rows_of(net: str, data: Path, seed: int) -> Iterator[dict[str, Any]]:
    """One network and one draw of the neighbours asked."""
    pixels, order = images(net.split("-")[1], data), order_of_looks(seed)
    with np.load(SHARED / "models" / "neighbours" / f"{net}-predicted.npz") as stored:
        said = {split: stored[split].astype(np.int64)[:, order] for split in ("train", "test")}
    right = {
        split: answers == pixels[f"y_{split}"].astype(np.int64).ravel()[:, None] for split, answers in said.items()
    }
    for draws, (asked, truth) in DRAWS.items():
        score = {split: -simpson_diversity(answers[:, asked]) for split, answers in said.items()}
        for place, cutoff in enumerate(CUTOFFS):
            for rule in ("below", "at_or_below") if draws == "fresh" else ("below",):
                weak = {split: weak_inputs(each[:, truth].mean(1), cutoff, rule) for split, each in right.items()}
                flagged = score["test"] >= quantile_threshold(score["train"], weak["train"])
                found = detection(flagged, weak["test"])
                published = TABLE_6[net][place]
                yield {
                    "net": net, "cutoff": cutoff, "draws": draws, "weak": rule.replace("_", " "),
                    "seed": seed, "weak_share": round(float(weak["test"].mean()), 4), "f1": round(float(found.f1), 4),
                    "tp": int((flagged & weak["test"]).sum()), "fp": int((flagged & ~weak["test"]).sum()),
                    "auroc": round(float(auroc(score["test"], weak["test"])), 4), "images": len(flagged),
                    "published_f1": published[0], "published_tp": published[1], "published_fp": published[2],
                    "machine": machine("cpu"),
                }  # fmt: skip


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    found = [row for net in NETS for seed in range(options.seeds) for row in rows_of(net, options.data, seed)]
    write_rows(Path(__file__).with_suffix(".csv"), found)
    for draws, cutoff, weak in dict.fromkeys((row["draws"], row["cutoff"], row["weak"]) for row in found):
        own = [row for row in found if (row["draws"], row["cutoff"], row["weak"]) == (draws, cutoff, weak)]
        means = (float(np.mean([row[name] for row in own])) for name in ("weak_share", "f1", "auroc"))
        print(draws, cutoff, weak, *(f"{mean:.4f}" for mean in means))


if __name__ == "__main__":
    main()
