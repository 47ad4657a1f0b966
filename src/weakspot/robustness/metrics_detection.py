"""How well detectors find the weak inputs, beside baselines: F1, precision, recall, average precision and AUROC.

The evaluation of Zhong et al. 2021 (`zhong2021`), with intervals and calibration.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weakspot.core.finding import Estimate
from weakspot.core.stateless_random import draw_keys, uniform
from weakspot.estimates import interval_estimate
from weakspot.robustness.detector_outputs import METHODS
from weakspot.statistics.calibration import brier_score, reliability
from weakspot.statistics.clustered import auroc_deviations, effective_size, grouped_share_interval
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
BY_GROUP = ("weak_share", "*_f1", "f1_*", "precision_*", "recall_*", "false_alarms_*", "auroc_*")
"""What these functions take by group."""
METRICS = ("f1", "precision", "recall", "false_alarms", "average_precision", "auroc")


@dataclass(frozen=True)
class MethodOutput:
    """What one detector or baseline says of some inputs.

    method: its name.
    score: highest for the inputs that it takes for the weakest.
    flagged: which inputs it flags as weak.
    probability: whether the score is meant as the probability of being weak.
    """

    method: str
    score: Floats
    flagged: Bools
    probability: bool = False


def detection_metrics(
    output: MethodOutput, weak: Bools, groups: NDArray[np.str_] | None = None
) -> dict[str, tuple[float, Interval]]:
    """F1, precision, recall, false alarms, average precision and AUROC of one method, with intervals; NaN if undefined.

    False alarms are the share of the strong inputs that are flagged. Intervals of precision, recall and false alarms
    are Wilson's, of F1 by way of the share TP/(TP + FP + FN), of average precision Boyd's, of the AUROC Hanley and
    McNeil's. Where inputs belong together (groups), they are those of the effective numbers of inputs; of average
    precision there is then none.
    """
    if groups is not None:
        return _grouped_metrics(output, weak, groups)
    counts, positives = detection(output.flagged, weak), int(weak.sum())
    negatives = len(weak) - positives
    undefined = Interval(np.asarray(np.nan), np.asarray(np.nan))
    both_kinds = 0 < positives < len(weak)
    ranked = average_precision(output.score, weak)
    area = auroc(output.score, weak)
    return {
        "f1": (counts.f1, f1_interval(counts.true_positives, counts.false_positives, counts.false_negatives)),
        "precision": (counts.precision, wilson_interval(counts.true_positives, counts.reported)),
        "recall": (counts.recall, wilson_interval(counts.true_positives, positives)),
        "false_alarms": (
            counts.false_positives / negatives if negatives else np.nan,
            wilson_interval(counts.false_positives, negatives),
        ),
        "average_precision": (ranked, average_precision_interval(ranked, positives) if positives else undefined),
        "auroc": (area, auroc_interval(area, positives, negatives) if both_kinds else undefined),
    }


def _grouped_metrics(output: MethodOutput, weak: Bools, groups: NDArray[np.str_]) -> dict[str, tuple[float, Interval]]:
    """The metrics with intervals that go by group."""
    undefined = Interval(np.asarray(np.nan), np.asarray(np.nan))
    values = {name: value for name, (value, _) in detection_metrics(output, weak).items()}
    found, said = weak & output.flagged, output.flagged
    shares = {"f1": (found, said | weak), "precision": (found, said), "recall": (found, weak)}
    shares["false_alarms"] = (said, ~weak)
    intervals = {
        name: grouped_share_interval(hit[of], groups[of]) if of.any() else undefined
        for name, (hit, of) in shares.items()
    }
    low, high = intervals["f1"]
    intervals["f1"] = Interval(2 * low / (1 + low), 2 * high / (1 + high))
    positives = int(weak.sum())
    if 0 < positives < len(weak):
        part = effective_size(auroc_deviations(output.score, weak), groups) / len(weak)
        intervals["auroc"] = auroc_interval(values["auroc"], positives * part, (len(weak) - positives) * part)
    return {name: (value, intervals.get(name, undefined)) for name, value in values.items()}


def metrics_table(
    outputs: Sequence[MethodOutput], weak: Bools, groups: NDArray[np.str_] | None = None
) -> dict[str, np.ndarray]:
    """One row per method, as columns: what it is, how many it flags, every metric with its interval, Brier score.

    The share of weak inputs is in the table, too: F1 depends on it, and flagging every input is no detector.
    """
    rows = [detection_metrics(output, weak, groups) for output in outputs]
    columns: dict[str, np.ndarray] = {
        "method": np.array([output.method for output in outputs]),
        "about": np.array([METHODS[output.method] for output in outputs]),
        "weak_share": np.full(len(outputs), float(weak.mean())),
        "flagged_share": np.array([float(output.flagged.mean()) for output in outputs]),
    }
    for metric in METRICS:
        columns[metric] = np.array([row[metric][0] for row in rows])
        columns[f"{metric}_low"] = np.array([float(row[metric][1].low) for row in rows])
        columns[f"{metric}_high"] = np.array([float(row[metric][1].high) for row in rows])
    columns["brier"] = np.array([brier_score(o.score, weak) if o.probability else np.nan for o in outputs])
    columns["calibration_error"] = np.array(
        [reliability(o.score, weak).error if o.probability else np.nan for o in outputs]
    )
    return columns


def metrics_summary(
    outputs: Sequence[MethodOutput], weak: Bools, groups: NDArray[np.str_] | None = None
) -> dict[str, Estimate]:
    """F1 of every method with its interval, and the average precision of the detectors."""
    summary: dict[str, Estimate] = {}
    for output in outputs:
        metrics = detection_metrics(output, weak, groups)
        is_detector = output.probability or output.method == "black_box"
        for metric in ("f1", "average_precision") if is_detector else ("f1",):
            value, interval = metrics[metric]
            summary[f"{output.method}_{metric}"] = (
                Estimate(None if np.isnan(value) else value)
                if np.isnan(value) or np.isnan(interval.low)
                else interval_estimate(value, interval)
            )
    return summary


def baselines(
    ids: Sequence[str], confidence: Floats, *, threshold: float, tuned: float, flagged: int, seed: int
) -> list[MethodOutput]:
    """What a detector must beat: top1, the tuned highest probability, as many inputs at random, and every input.

    confidence: the highest probability for each original.
    threshold: that of neighbour accuracy, which top1 applies to the confidence.
    tuned: the score threshold of the confidence, from training data.
    flagged: how many inputs the detector flags.

    Random numbers depend on the ids, so they are the same in any order.
    """
    drawn = uniform(draw_keys(ids, seed), 1)[:, 0]
    at_random = np.zeros(len(ids), dtype=np.bool_)
    at_random[np.argsort(drawn)[:flagged]] = True
    return [
        MethodOutput("top1", -confidence, confidence < threshold),
        MethodOutput("max_softmax", -confidence, -confidence >= tuned),
        MethodOutput("random", -drawn, at_random),
        MethodOutput("flag_all", np.zeros(len(ids)), np.ones(len(ids), dtype=np.bool_)),
    ]
