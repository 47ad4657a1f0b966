"""Points of DeepRobust's Figures 7 and 10, from the stored answers: `python benchmarks/papers/robustness_curves.py`.

writes robustness_curves.csv beside this script, which figures.py draws. Figure 7: the ROC curve of λ over 15 neighbours
for weak images of the three ResNet-32 at 0.75, with the truth of all 50 neighbours, of which the 15 are a part, and of
the other 35. Figure 10: by how much neighbour accuracy changes from VGG to
ResNet-32, image by image, in bins of a tenth.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import machine, write_rows
from robustness_study import Stored

from robustness import ALL, FRESH, QUERIES, argument_parser
from weakspot.robustness import neighbour_accuracy, simpson_diversity

GRID = np.linspace(0, 1, 41)
CHANGES = np.linspace(-1, 1, 21)


def roc(score: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The share of true ones found at each share of false alarms."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)
    hits, wrong = np.cumsum(truth[order])[ends], np.cumsum(~truth[order])[ends]
    return np.asarray(np.interp(GRID, np.append(0, wrong / wrong[-1]), np.append(0, hits / hits[-1])))


def rows_of(data: str, folder: Path) -> Iterator[dict[str, Any]]:
    ours, theirs = Stored(f"ResN-{data}", folder), Stored(f"Vgg16Half-{data}", folder)
    said, labels = ours.said["test"], ours.labels["test"]
    score = -simpson_diversity(said[:, : QUERIES + 1])
    for truth, looks in (("all 50", ALL), ("the other 35", FRESH)):
        curve = roc(score, neighbour_accuracy(said[:, looks], labels) < 0.75)
        yield from (point("Figure 7", data, truth, at, value) for at, value in zip(GRID, curve, strict=True))
    counts = np.histogram(ours.accuracy["test"] - theirs.accuracy["test"], CHANGES)[0] / len(labels)
    yield from (point("Figure 10", data, "share", low, share) for low, share in zip(CHANGES, counts, strict=False))


def point(figure: str, data: str, line: str, at: float, value: float) -> dict[str, Any]:
    return {"figure": figure, "data": data, "line": line, "at": round(float(at), 3), "value": round(float(value), 4)}


def main() -> None:
    options = argument_parser(__doc__).parse_args()
    found = [row for data in ("cifar10", "fashion_mnist", "svhn") for row in rows_of(data, options.data)]
    write_rows(Path(__file__).with_suffix(".csv"), [{**row, "machine": machine("cpu")} for row in found])


if __name__ == "__main__":
    main()
