"""How well a detector finds the weak inputs, beside the share of weak ones and beside what costs nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weakspot.core.draws import draw_keys, uniform
from weakspot.core.finding import Estimate
from weakspot.statistics.calibration import brier_score, reliability
from weakspot.statistics.intervals import (
    Interval,
    auroc_interval,
    average_precision_interval,
    f1_interval,
    wilson_interval,
)
from weakspot.statistics.ranking import auroc, average_precision, detection

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
FIGURES = ("f1", "precision", "recall", "average_precision", "auroc")
ABOUT = {
    "white_box": "DeepRobust-W: a network on the features of the input",
    "black_box": "DeepRobust-B: Simpson's diversity of the answers to the queries",
    "queries": "a network on the answers to the queries",
    "together": "a network on features and answers to the queries",
    "top1": "highest probability below the cutoff",
    "max_softmax": "highest probability, its threshold tuned on training data",
    "random": "as many as the detector flags, at random",
    "flag_all": "every input",
}
"""The detectors and the baselines they are measured against."""


@dataclass(frozen=True)
class Calls:
    """What one method says of some inputs: a score, highest for the weakest, and which it calls weak."""

    method: str
    score: Floats
    flagged: Bools
    probability: bool = False
    """Whether the score is meant as the probability of being weak."""


def figures(calls: Calls, weak: Bools) -> dict[str, tuple[float, Interval]]:
    """F1, precision, recall, average precision and AUROC of one method, each with its interval; NaN where undefined.

    The intervals of precision and recall are Wilson's, of F1 by way of the share TP/(TP + FP + FN), of average
    precision Boyd's, of the AUROC Hanley and McNeil's.
    """
    found, true = detection(calls.flagged, weak), int(weak.sum())
    nothing = Interval(np.asarray(np.nan), np.asarray(np.nan))
    both = 0 < true < len(weak)
    precision = average_precision(calls.score, weak)
    area = auroc(calls.score, weak)
    return {
        "f1": (found.f1, f1_interval(found.true_positives, found.false_positives, found.false_negatives)),
        "precision": (found.precision, wilson_interval(found.true_positives, found.reported)),
        "recall": (found.recall, wilson_interval(found.true_positives, true)),
        "average_precision": (precision, average_precision_interval(precision, true) if true else nothing),
        "auroc": (area, auroc_interval(area, true, len(weak) - true) if both else nothing),
    }


def comparison(calls: Sequence[Calls], weak: Bools) -> dict[str, np.ndarray]:
    """One row per method, as columns: what it is, how many it flags, every figure with its interval, Brier score.

    The share of weak inputs stands beside them: F1 follows it, and flagging everything is no detector.
    """
    told = [figures(entry, weak) for entry in calls]
    columns: dict[str, np.ndarray] = {
        "method": np.array([entry.method for entry in calls]),
        "about": np.array([ABOUT[entry.method] for entry in calls]),
        "weak_share": np.full(len(calls), float(weak.mean())),
        "flagged_share": np.array([float(entry.flagged.mean()) for entry in calls]),
    }
    for figure in FIGURES:
        columns[figure] = np.array([row[figure][0] for row in told])
        columns[f"{figure}_low"] = np.array([float(row[figure][1].low) for row in told])
        columns[f"{figure}_high"] = np.array([float(row[figure][1].high) for row in told])
    columns["brier"] = np.array([brier_score(c.score, weak) if c.probability else np.nan for c in calls])
    columns["calibration_error"] = np.array(
        [reliability(c.score, weak).error if c.probability else np.nan for c in calls]
    )
    return columns


def headline(calls: Sequence[Calls], weak: Bools) -> dict[str, Estimate]:
    """F1 of every method with its interval, and the average precision of the detectors."""
    told: dict[str, Estimate] = {}
    for entry in calls:
        for figure in ("f1", "average_precision")[: 2 if entry.probability or entry.method == "black_box" else 1]:
            value, (low, high) = figures(entry, weak)[figure]
            about = f"{figure.replace('_', ' ').replace('f1', 'F1')}; {ABOUT[entry.method]}"
            known = Estimate(None, about=about) if np.isnan(value) else None
            told[f"{entry.method}_{figure}"] = known or Estimate(value, float(low), float(high), 0.95, about)
    return told


def baselines(
    ids: Sequence[str], confidence: Floats, *, cutoff: float, tuned: float, flagged: int, seed: int
) -> list[Calls]:
    """What a detector must beat: top1, the tuned highest probability, as many at random, and everything.

    confidence: the highest probability for each original. tuned: its threshold, from training data. flagged: how many
    the detector calls weak. Chance depends on the ids, so it is the same in any order.
    """
    lots = uniform(draw_keys(ids, seed), 1)[:, 0]
    drawn = np.zeros(len(ids), dtype=np.bool_)
    drawn[np.argsort(lots)[:flagged]] = True
    return [
        Calls("top1", -confidence, confidence < cutoff),
        Calls("max_softmax", -confidence, -confidence >= tuned),
        Calls("random", -lots, drawn),
        Calls("flag_all", np.zeros(len(ids)), np.ones(len(ids), dtype=np.bool_)),
    ]
