"""One net put to DeepInspect's three research questions (Tian et al. 2020): a row for classes.csv, classes_trained.csv.

Beside the paper's score, the distance of activation probabilities, stands what the outputs alone say: how much
probability the images predicted as one class give to the other, which needs no look inside the net.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import machine

from weakspot import ExecutionOptions, Finding, Subject, examine
from weakspot.classes import pair_values
from weakspot.classes.coverage_probes import CRITERIA, ClassCoverage, ClassCriteria, ClassRanges
from weakspot.classes.probes import ClassPairs
from weakspot.core.source import Source
from weakspot.statistics import average_precision, cost_effectiveness

TAPS: dict[str, dict[str, Any]] = {
    "all outputs": {},
    "all activated": {"side": "activated"},
    "penultimate": {"layers": "penultimate"},
}
FIGURES = ("true_positives", "false_positives", "precision", "recall", "chance", "top_precision", "correlation", "gain")
EFFECTS = ("negligible", "small", "medium", "large")
_BATCH = 256


def study(
    subject: Subject, test: Source, train: Source | None, *, planted: np.ndarray | None = None, **known: Any
) -> list[dict[str, Any]]:
    """A row per place in the net that is looked at; the first one with RQ1, where there is a training set.

    planted: which pairs of classes were made to come together.
    """
    how = ExecutionOptions(batch_size=_BATCH)
    pairs = [ClassPairs(thumbnail=0, pictures=0, replicates=0, **options) for options in TAPS.values()]
    findings = examine(subject, test, pairs, execution=how)
    outputs, targets = answers(subject, test)
    separated = {} if train is None else separation(subject, test, train)
    rows = []
    for tap, finding in zip(TAPS, findings, strict=True):
        told = {**known, "images": len(test.ids), "figure": figure(subject, outputs, targets), "tap": tap}
        told |= {"pairs": finding.summary["pairs"].value, **pair_figures(finding)}
        told |= planted_figures(finding.arrays["distance"], planted)
        rows.append({**told, **{name: value if tap == "all outputs" else "" for name, value in separated.items()}})
    return [{**row, "machine": machine(str(subject.device))} for row in rows]


def pair_figures(finding: Finding) -> dict[str, Any]:
    """RQ2 and RQ3, and RQ1c where images have several labels; then what the outputs alone say."""
    told = finding.summary
    names = [f"{what}_{figure}" for what in ("confusion", "bias") for figure in FIGURES]
    others = [f"outputs_{what}_{figure}" for what in ("confusion", "bias") for figure in ("correlation", "gain")]
    return {
        name: rounded(told[name].value) if name in told else "" for name in (*names, "coincidence_correlation", *others)
    }


def separation(subject: Subject, test: Source, train: Source) -> dict[str, Any]:
    """RQ1a and RQ1b: what coverage tells of the classes, by training images, and ranges profiled on them."""
    how = ExecutionOptions(batch_size=_BATCH)
    coverage, ranges = examine(subject, train, [ClassCoverage(), ClassRanges()], execution=how)
    criteria = examine(subject, test, [ClassCriteria(ranges=ranges)], execution=how)[0]
    return {
        "coverage_p": f"{coverage.summary['p_value'].value:.1e}",
        **{f"coverage_{size}": rounded(coverage.summary[f"{size}_share"].value) for size in EFFECTS},
        **{f"{name}_alike": criteria.summary[f"{name}_alike"].value for name in CRITERIA},
    }


def answers(subject: Subject, source: Source) -> tuple[torch.Tensor, torch.Tensor]:
    """All outputs and targets."""
    outputs, targets = [], []
    with subject.borrowed(), torch.no_grad():
        for start in range(0, len(source.ids), _BATCH):
            batch = source.read(np.arange(start, min(start + _BATCH, len(source.ids)))).to(subject.device)
            outputs.append(subject.forward(batch.inputs).float().cpu())
            targets.append(batch.known_targets.cpu())
    return torch.cat(outputs), torch.cat(targets)


def figure(subject: Subject, outputs: torch.Tensor, targets: torch.Tensor) -> float:
    """Accuracy, or the mean average precision of several labels."""
    if subject.task == "classification":
        return rounded(float((outputs.argmax(1) == targets).double().mean()))
    columns = zip(outputs.T.numpy(), targets.T.numpy().astype(bool), strict=True)
    return rounded(float(np.mean([average_precision(score, true) for score, true in columns])))


def planted_figures(distance: np.ndarray, planted: np.ndarray | None) -> dict[str, Any]:
    """Whether the planted pairs are among the nearest: share of them in as many nearest pairs, mean rank, gain."""
    score = -pair_values(distance)
    if planted is None or len(planted) != len(score):  # a class that is hardly ever predicted has no distance
        return dict.fromkeys(("planted_among_nearest", "planted_mean_rank", "planted_gain"), "")
    nearest = rankdata(-score)
    count = int(planted.sum())
    return {
        "planted_among_nearest": rounded(float((nearest[planted] <= count).mean())),
        "planted_mean_rank": rounded(float(nearest[planted].mean() / len(nearest))),
        "planted_gain": rounded(cost_effectiveness(score, planted).gain),
    }


def rounded(value: Any) -> Any:
    """Four significant digits; nothing where there is no figure."""
    return "" if value is None else float(f"{value:.4g}") if isinstance(value, float) else value
