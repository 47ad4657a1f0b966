"""Points of DeepInspect's Figures 3, 6, 7, 10 and 11 from the authors' own matrices: COCO and CIFAR-100.

python benchmarks/papers/classes_curves.py   writes classes_curves.csv beside this script; needs $WEAKSPOT_SHARED

figures.py draws it. Figure 3: how the distances of the pairs are spread, and those of truly confused pairs. Figures 6
and 10: distance against confusion, bias against confusion disparity, one pair of eight. Figures 7 and 11: the share of
the true errors found by the share of the pairs looked at; bias by the labels, as the released code has it, and without.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from classes_oracles import KINDS, together
from measuring import SHARED, machine, write_rows

from weakspot.classes import average_bias, average_confusion_disparity, pair_confusion, pair_values, suspicious

GRID = np.linspace(0, 1, 41)
BINS, EVERY = 30, 8


def found_by_share(score: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The share of the true ones among the first of the ranking, highest scores first."""
    hits = np.append(0, np.cumsum(truth[np.argsort(-score, kind="stable")]))
    return np.asarray(np.interp(GRID, np.linspace(0, 1, len(hits)), hits / hits[-1]))


def rows_of(data: str, kind: str) -> Iterator[dict[str, Any]]:
    with np.load(SHARED / "oracles" / "deepinspect" / f"{data}.npz") as stored:
        oracle = dict(stored)
    distances, matrix = pair_values(oracle["distance"]), oracle[kind]
    confusion, disparity = pair_values(pair_confusion(matrix)), pair_values(average_confusion_disparity(matrix))
    wrong = suspicious(confusion)
    edges = np.linspace(distances.min(), distances.max(), BINS + 1)
    for name, own in (("all pairs", distances), ("truly confused", distances[wrong])):
        counts = zip(edges[:-1], np.histogram(own, edges)[0], strict=True)
        yield from (point("Figure 3", data, name, at, count) for at, count in counts)
    biased = {
        "with labels": average_bias(oracle["distance"], confusion=matrix),
        "without": average_bias(oracle["distance"]),
    }
    pairs = {"Figure 6": (distances, confusion), "Figure 10": (pair_values(biased["with labels"]), disparity)}
    for figure, (one, other) in pairs.items():
        yield from (point(figure, data, "pair", x, y) for x, y in zip(one[::EVERY], other[::EVERY], strict=True))
    ranked = {"distance": -distances} | (
        {"predicted together": -pair_values(-together(oracle, "predicted"))} if data == "coco" else {}
    )
    for name, score in ranked.items():
        yield from (
            point("Figure 7", data, name, *each) for each in zip(GRID, found_by_share(score, wrong), strict=True)
        )
    for name, own in biased.items():
        curve = found_by_share(pair_values(own), suspicious(disparity))
        yield from (point("Figure 11", data, name, *each) for each in zip(GRID, curve, strict=True))


def point(figure: str, data: str, line: str, at: float, value: float) -> dict[str, Any]:
    return {"figure": figure, "data": data, "line": line, "at": round(float(at), 5), "value": round(float(value), 5)}


def main() -> None:
    found = [row for data, kind in KINDS.items() for row in rows_of(data, kind)]
    write_rows(Path(__file__).with_suffix(".csv"), [{**row, "machine": machine("cpu")} for row in found])


if __name__ == "__main__":
    main()
