"""What DeepRobust finds of weak inputs: Tables 1, 2, 3, 8 and 9 and Figures 6, 7, 9 and 10, on nine networks.

    python benchmarks/papers/robustness_study.py [--cache FOLDER] [--device cuda]

writes robustness_study.csv beside this script: one row per table, network and quantity. All but Table 2 comes
from the classes that are stored with the networks; that wants the features of robustness.py, which are kept in
FOLDER. Published figures stand beside where there are any.
"""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED, machine, write_rows

from robustness import NETS, argument_parser, images, seen_once, unit
from weakspot.robustness import (
    centre_distance_ratio,
    concentration_correlation,
    neighbour_accuracy,
    simpson_diversity,
    weak_strong_difference,
)
from weakspot.statistics.ranking import auroc, spearman

TABLE_1 = {
    "Vgg16Half-cifar10": (89.0, 75.5), "ResN-cifar10": (89.3, 68.5), "WideResN-cifar10": (90.6, 74.8),
    "Vgg16Half-svhn": (94.5, 78.1), "ResN-svhn": (95.3, 78.9), "WideResN-svhn": (95.2, 81.0),
    "Vgg16Half-fashion_mnist": (93.4, 61.1), "ResN-fashion_mnist": (93.5, 63.0), "WideResN-fashion_mnist": (93.6, 64.2),
}  # fmt: skip
"""Accuracy, accuracy over neighbours."""
TABLE_2 = {
    "ResN-cifar10": (1.368, 0.786), "WideResN-cifar10": (1.736, 1.040), "Vgg16Half-cifar10": (1.163, 0.749),
    "ResN-svhn": (2.077, 0.860), "WideResN-svhn": (2.428, 1.111), "Vgg16Half-svhn": (1.420, 0.401),
    "ResN-fashion_mnist": (1.426, 0.749), "WideResN-fashion_mnist": (1.312, 0.642),
    "Vgg16Half-fashion_mnist": (1.332, 0.937),
}  # fmt: skip
"""Cohen's d at the thresholds 0.5 and 0.75."""
TABLE_3 = {
    "ResN-cifar10": 0.853, "WideResN-cifar10": 0.909, "Vgg16Half-cifar10": 0.946, "ResN-svhn": 0.970,
    "WideResN-svhn": 0.984, "Vgg16Half-svhn": 0.983, "ResN-fashion_mnist": 0.923, "WideResN-fashion_mnist": 0.962,
    "Vgg16Half-fashion_mnist": 0.8947,
}  # fmt: skip
UNCHANGED = {"cifar10": 0.60, "fashion_mnist": 0.76, "svhn": 0.81}
"""Figure 10: share of the images whose neighbour accuracy differs by less than 0.2 between two models."""
BINS = np.linspace(0, 1, 21)
QUERIES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)


class Stored:
    """The classes of one network's originals and neighbours, and how many are right."""

    def __init__(self, net: str, data: Path):
        pixels = images(net.split("-")[1], data)
        with np.load(SHARED / "models" / "neighbours" / f"{net}-predicted.npz") as stored:
            self.said = {split: stored[split].astype(np.int64) for split in ("train", "test")}
        self.labels = {split: pixels[f"y_{split}"].astype(np.int64).ravel() for split in ("train", "test")}
        self.accuracy = {split: neighbour_accuracy(self.said[split], self.labels[split]) for split in self.said}
        self.binned = {split: np.histogram(self.accuracy[split], BINS)[0] for split in self.said}


def row(table: str, net: str, quantity: str, value: float, published: Any = "") -> dict[str, Any]:
    return {"table": table, "net": net, "quantity": quantity, "value": round(value, 4), "published": published}


def of_one(net: str, one: Stored) -> Iterator[dict[str, Any]]:
    """Tables 1, 3 and 8, Figures 6, 7 and 9."""
    said, accuracy = one.said["test"], one.accuracy["test"]
    right = said == one.labels["test"][:, None]
    yield row("Table 1", net, "natural accuracy", 100 * right[:, 0].mean(), TABLE_1[net][0])
    yield row("Table 1", net, "robust accuracy", 100 * right[:, 1:].mean(), TABLE_1[net][1])
    flawed = accuracy < 1
    correlation = concentration_correlation(said[flawed], accuracy[flawed], QUERIES)
    yield row("Table 3", net, "Spearman of accuracy and diversity", correlation[-1], TABLE_3[net])
    yield from (row("Figure 6", net, f"m = {m}", value) for m, value in zip(QUERIES, correlation, strict=True))
    for threshold, published in ((0.75, "> 0.97"), (0.5, "> 0.87")):
        shared = auroc(-simpson_diversity(said[:, :16]), accuracy <= threshold)
        fresh_truth = right[:, [0, *range(16, 51)]].mean(1) <= threshold
        yield row("Figure 7", net, f"AUROC at {threshold}, shared", shared, published)
        yield row("Figure 7", net, f"AUROC at {threshold}, fresh", auroc(-simpson_diversity(said[:, :16]), fresh_truth))
    train, test = one.binned["train"], one.binned["test"]
    yield row("Table 8", net, "Spearman of training and test bins", spearman(train, test))
    yield row("Table 8", net, "Pearson of training and test bins", float(np.corrcoef(train, test)[0, 1]))
    for split in ("train", "test"):
        shares = one.binned[split] / one.binned[split].sum()
        yield from (
            row("Figure 9", net, f"{split}, accuracy {low:.2f} to {low + 0.05:.2f}", share)
            for low, share in zip(BINS, shares, strict=False)
        )
        for threshold in (0.75, 0.5):
            yield row("Figure 9", net, f"{split}, weak at {threshold}", (one.accuracy[split] <= threshold).mean())


def between(data: str, nets: dict[str, Stored]) -> Iterator[dict[str, Any]]:
    """Table 9 and Figure 10: pairs of networks on the same data."""
    for (first, one), (second, other) in itertools.combinations(nets.items(), 2):
        pair = f"{first.split('-')[0]} and {second.split('-')[0]}, {data}"
        for split in ("train", "test"):
            bins = one.binned[split], other.binned[split]
            yield row("Table 9", pair, f"Spearman, {split}", spearman(*bins))
            yield row("Table 9", pair, f"Pearson, {split}", float(np.corrcoef(*bins)[0, 1]))
            without = float(np.corrcoef(bins[0][:-1], bins[1][:-1])[0, 1])
            yield row("Table 9", pair, f"Pearson without the last bin, {split}", without)
        change = np.abs(one.accuracy["test"] - other.accuracy["test"])
        yield row("Figure 10", pair, "accuracy changes by less than 0.2", (change < 0.2).mean(), UNCHANGED[data])
        by_chance = near_by_chance(one.accuracy["test"], other.accuracy["test"])
        yield row("Figure 10", pair, "accuracy differs by less than 0.2 between any two images", by_chance)
        by_image = spearman(one.accuracy["test"], other.accuracy["test"])
        yield row("Figure 10", pair, "Spearman of accuracy, image by image", by_image)


def near_by_chance(first: np.ndarray, second: np.ndarray) -> float:
    """Of all pairs of an image for one network and any image for the other, how many lie within 0.2."""
    (ours, times), (theirs, often) = (np.unique(accuracy, return_counts=True) for accuracy in (first, second))
    near = np.abs(ours[:, None] - theirs) < 0.2
    return float(times @ near @ often) / (len(first) * len(second))


def places(net: str, one: Stored, features: np.ndarray) -> Iterator[dict[str, Any]]:
    """Table 2: where weak images lie among the classes."""
    ratio = centre_distance_ratio(unit(features), one.labels["test"])
    for threshold, published in zip((0.5, 0.75), TABLE_2[net], strict=True):
        found = weak_strong_difference(ratio, one.accuracy["test"] <= threshold)
        assert found is not None
        yield row("Table 2", net, f"r of weak at {threshold}", found.weak)
        yield row("Table 2", net, f"r of strong at {threshold}", found.strong)
        yield row("Table 2", net, f"Cohen's d at {threshold}", found.effect, published)
        yield {**row("Table 2", net, f"Mann–Whitney p at {threshold}", 0), "value": f"{found.p_value:.1e}"}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=NETS)
    parser.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    for data in ("cifar10", "fashion_mnist", "svhn"):
        nets = {net: Stored(net, options.data) for net in options.nets if net.endswith(data)}
        for net, one in nets.items():
            features = seen_once(net, images(data, options.data), options.cache, options.device)["f_test"]
            found += [*of_one(net, one), *places(net, one, features)]
        found += between(data, nets)
    write_rows(options.results, [{**told, "machine": machine(options.device)} for told in found])


if __name__ == "__main__":
    main()
