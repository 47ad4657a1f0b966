"""DeepInspect's Tables III and IV from the authors' own matrices (Tian et al. 2020): COCO and CIFAR-100.

python benchmarks/papers/classes_oracles.py   writes classes_oracles.csv beside this script; needs $WEAKSPOT_SHARED

The matrices hold the authors' distances and true confusion, so that the tables must come out to the last pair. For bias
three ways: as published, where a triplet counts only if labels show some confusion; without labels; and with the
paper's own wording of "near". For COCO also what the predicted labels alone say, without a look inside: how often two
classes are predicted together.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED, machine, write

from weakspot.classes import (
    average_bias,
    average_confusion_disparity,
    bias_errors,
    class_members,
    confusion_errors,
    label_coincidence,
    pair_confusion,
    pair_values,
    suspicious,
)
from weakspot.statistics import Detection, cost_effectiveness, spearman

KINDS = {"coco": "type2", "cifar100": "type1"}
PUBLISHED = {
    ("coco", "confusion"): "138 / 256, 31 / 0",
    ("cifar100", "confusion"): "206 / 584, 39 / 10",
    ("coco", "bias"): "249 / 278, 24 / 8",
    ("cifar100", "bias"): "310 / 543, 29 / 21",
}
CORRELATIONS = {("coco", "confusion"): "−0.55", ("coco", "bias"): "0.76", ("cifar100", "bias"): "0.62"}


def row(
    data: str, what: str, how: str, score: np.ndarray, truth: np.ndarray, found: Detection, top: Detection
) -> dict[str, Any]:
    """One line of Table III or IV: what is found at one standard deviation, and in the top 1 %."""
    curve = cost_effectiveness(score, suspicious(truth))
    return {
        "data": data,
        "errors": what,
        "score": how,
        "found": f"{found.true_positives} / {found.false_positives}, {top.true_positives} / {top.false_positives}",
        "published": PUBLISHED[data, what],
        "precision": round(found.precision, 3),
        "recall": round(found.recall, 3),
        "true_by_chance": round(found.by_chance, 1),
        "gain": round(curve.gain, 4),
        "correlation": round(spearman(score, truth), 3),
        "published_correlation": CORRELATIONS.get((data, what), ""),
        "machine": machine("cpu"),
    }


def confusion_row(data: str, how: str, distance: np.ndarray, confusion: np.ndarray) -> dict[str, Any]:
    found, top = (confusion_errors(distance, confusion, cutoff=cutoff) for cutoff in ("std", "top 1%"))
    truth = pair_values(pair_confusion(confusion))
    return row(data, "confusion", how, -pair_values(distance), truth, found, top)


def bias_row(data: str, how: str, score: np.ndarray, confusion: np.ndarray) -> dict[str, Any]:
    disparity = average_confusion_disparity(confusion)
    found, top = (bias_errors(score, disparity, cutoff=cutoff) for cutoff in ("std", "top 1%"))
    return row(data, "bias", how, pair_values(score), pair_values(disparity), found, top)


def rows() -> Iterator[dict[str, Any]]:
    for data, kind in KINDS.items():
        with np.load(SHARED / "oracles" / "deepinspect" / f"{data}.npz") as stored:
            oracle = dict(stored)
        distance, confusion = oracle["distance"], oracle[kind]
        yield confusion_row(data, "distance", distance, confusion)
        if data == "coco":
            yield confusion_row(data, "predicted together", -together(oracle, "predicted"), confusion)
            yield coincidence_row(oracle)
        yield bias_row(data, "as published, with labels", average_bias(distance, confusion=confusion), confusion)
        yield bias_row(data, "without labels", average_bias(distance), confusion)
        yield bias_row(data, "without labels, near by pairs", average_bias(distance, near="pairs"), confusion)


def together(oracle: dict[str, np.ndarray], which: str) -> np.ndarray:
    """How often two classes come together in the true or the predicted labels of COCO."""
    place = {name: number for number, name in enumerate(oracle["classes"].tolist())}
    sets = [[place[name] for name in text.split(";") if name in place] for text in oracle[which].tolist()]
    given = np.zeros((len(sets), len(place)), dtype=np.int64)
    for number, members in enumerate(sets):
        given[number, members] = 1
    matrix = label_coincidence(class_members(given, len(place)))
    np.fill_diagonal(matrix, 0)
    return matrix


def coincidence_row(oracle: dict[str, np.ndarray]) -> dict[str, Any]:
    """RQ1c: the distance against how often two labels come together."""
    blank = confusion_row("coco", "distance", oracle["distance"], oracle["type2"])
    found = spearman(pair_values(oracle["distance"]), pair_values(together(oracle, "labels")))
    return dict.fromkeys(blank, "") | {
        "data": "coco",
        "errors": "coincidence of true labels (RQ1c)",
        "score": "distance",
        "correlation": round(found, 3),
        "published_correlation": "0.96",
        "machine": machine("cpu"),
    }


def main() -> None:
    write(Path(__file__).with_suffix(".csv"), list(rows()))


if __name__ == "__main__":
    main()
