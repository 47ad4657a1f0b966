"""What is measured of a guard: every score beside confidence, promises kept or not, and drift."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weakspot.core.finding import Estimate, Finding
from weakspot.estimates import interval_estimate, share_of
from weakspot.robustness.guard_fitting import FREE, PENALTY, FittedGuard, GuardInputs, class_probabilities, scored
from weakspot.robustness.guard_outputs import MEASURES, SCORES
from weakspot.robustness.guard_runtime import VERDICTS, GuardModule, drift_alarm, prediction_sets
from weakspot.robustness.metrics_promises import OperatingPoint
from weakspot.statistics import auroc, auroc_interval, average_precision, average_precision_interval
from weakspot.statistics.calibration import reliability

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_POINTS = 200
_CURVES = ("guard", "max_softmax")


def method_rows(fitted: FittedGuard, point: OperatingPoint) -> tuple[dict[str, np.ndarray], Flags]:
    """A row per score on the inputs that thresholds are set on, and what the guard flags there; fold by fold."""
    asked = {name: (score, fitted.wrong, fitted.levels[name], fitted.groups) for name, score in fitted.scores.items()}
    flagged = {name: point.held_out(*given) for name, given in asked.items()}
    thresholds = {name: point.threshold(*given) for name, given in asked.items()}
    return _rows(fitted.scores, flagged, fitted.wrong, thresholds), flagged["guard"]


def fitted_summary(fitted: FittedGuard, flagged: Flags, table: Mapping[str, np.ndarray]) -> dict[str, Estimate]:
    """The guard's own numbers, and the AUROC of confidence."""
    rival = measures(fitted.scores["max_softmax"], flagged, fitted.wrong)["auroc"]
    return {
        **measures(fitted.scores["guard"], flagged, fitted.wrong),
        "max_softmax_auroc": rival,
        "errors": Estimate(int(fitted.wrong.sum())),
    }


def measures(score: Floats, flagged: Flags, wrong: Flags) -> dict[str, Estimate]:
    """AUROC, average precision, recall, precision, false alarms and risk, each with its interval."""
    area, ranked, errors = auroc(score, wrong), average_precision(score, wrong), int(wrong.sum())
    both = 0 < errors < len(wrong)
    areas = {
        "auroc": interval_estimate(area, auroc_interval(area, errors, len(wrong) - errors)),
        "average_precision": interval_estimate(ranked, average_precision_interval(ranked, errors)),
    }
    return {
        **(areas if both else {name: Estimate(None) for name in areas}),
        "recall": share_of(flagged[wrong]),
        "precision": share_of(wrong[flagged]),
        "false_alarms": share_of(flagged[~wrong]),
        "risk": share_of(wrong[~flagged]),
    }


def _rows(
    scores: Mapping[str, Floats], flagged: Mapping[str, Flags], wrong: Flags, thresholds: Mapping[str, float]
) -> dict[str, np.ndarray]:
    names = [name for name in SCORES if name in scores]
    found = [measures(scores[name], flagged[name], wrong) for name in names]
    columns: dict[str, np.ndarray] = {"method": np.array(names), "about": np.array([SCORES[name] for name in names])}
    for measure in MEASURES:
        for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high")):
            values = [getattr(row[measure], part) for row in found]
            columns[measure + suffix] = np.array([np.nan if value is None else value for value in values], dtype=float)
    return {**columns, "threshold": np.array([thresholds[name] for name in names])}


def evaluation_parts(
    guard: GuardModule, fitted: Finding, inputs: GuardInputs, targets: NDArray[np.int64], classes: Sequence[str] | None
) -> dict[str, Any]:
    """Summary, table and arrays of a guard on labelled inputs."""
    scores = scored(guard, inputs)
    probabilities = class_probabilities(inputs, probabilities=guard.about["outputs"] == "probabilities")
    wrong = probabilities.argmax(1).numpy() != targets
    assert fitted.table is not None
    names, set_at = (fitted.table[name].to_pylist() for name in ("method", "threshold"))
    thresholds = dict(zip(names, set_at, strict=True))
    flagged = {name: score >= thresholds[name] for name, score in scores.items()}
    unfamiliar = _familiarity(guard, scores["unusual"]) <= guard.about["unfamiliar_rate"]
    promise = guard.about["promise"]
    shares = np.arange(1, _POINTS + 1) / _POINTS
    bins = reliability(scores["guard"], wrong)
    both = 0 < wrong.sum() < len(wrong)
    summary = {
        **measures(scores["guard"], flagged["guard"], wrong),
        "max_softmax_auroc": measures(scores["max_softmax"], flagged["guard"], wrong)["auroc"],
        "accepted_share": share_of(~flagged["guard"]),
        "promised": Estimate(f"{promise['aim'].replace('_', ' ')} of {promise['value']:g}"),
        **set_measures(guard, probabilities, targets, classes),
        "unfamiliar_share": share_of(unfamiliar),
        "error_share": share_of(wrong),
        "inputs": Estimate(len(inputs)),
    }
    arrays = {
        "accepted": shares,
        **{f"risk_{name}": _risk_curve(scores[name], wrong, shares) for name in _CURVES},
        **({"guard_reliability": np.stack([bins.probability, bins.frequency, bins.inputs])} if both else {}),
    }
    return {"summary": summary, "table": _rows(scores, flagged, wrong, thresholds), "arrays": arrays}


def _risk_curve(score: Floats, wrong: Flags, shares: Floats) -> Floats:
    """Of the least suspicious, the share that is wrong."""
    taken = np.maximum((shares * len(score)).round().astype(int), 1)
    return np.asarray(np.cumsum(wrong[np.argsort(score, kind="stable")])[taken - 1] / taken)


def set_measures(
    guard: GuardModule, probabilities: torch.Tensor, targets: NDArray[np.int64], classes: Sequence[str] | None
) -> dict[str, Estimate]:
    """Coverage and size of the prediction sets, of every kind; the guard's own first."""
    own = torch.from_numpy(targets)[:, None]
    summary: dict[str, Estimate] = {}
    for kind, quantile in guard.about["set_quantiles"].items():
        sets = prediction_sets(probabilities, kind, quantile, PENALTY, FREE)
        covered, sizes = sets.gather(1, own)[:, 0].numpy(), sets.sum(1).numpy()
        summary |= {f"coverage_{kind}": share_of(covered), f"set_size_{kind}": Estimate(float(sizes.mean()))}
        if kind == guard.about["set"]["method"]:
            summary |= {
                "coverage": share_of(covered),
                "worst_class_coverage": _worst_class(covered, targets, classes),
                "set_size": Estimate(float(sizes.mean())),
                "empty_sets": share_of(sizes == 0),
                "promised_coverage": Estimate(guard.about["promise"]["coverage"]),
            }
    return summary


def _worst_class(covered: Flags, targets: NDArray[np.int64], classes: Sequence[str] | None) -> Estimate:
    present = np.unique(targets)
    worst = min(present.tolist(), key=lambda own: covered[targets == own].mean())
    name = worst if classes is None else classes[worst]
    about = f"coverage of class {name}, where it is lowest of {len(present)}; the interval is of that class alone"
    return share_of(covered[targets == worst], about)


def _familiarity(guard: GuardModule, unusual: Floats) -> Floats:
    seen = guard.get_buffer("calibration_unusual").numpy()
    return (1 + len(seen) - np.searchsorted(seen, unusual)) / (len(seen) + 1)


def sample_columns(
    guard: GuardModule, inputs: GuardInputs, scores: Mapping[str, Floats], confidence: Floats
) -> tuple[dict[str, np.ndarray], dict[str, Estimate]]:
    """A row per input, those least to be trusted first; and how many of each verdict there are."""
    probabilities = class_probabilities(inputs, probabilities=guard.about["outputs"] == "probabilities")
    familiarity = _familiarity(guard, scores["unusual"])
    flagged = scores["guard"] >= guard.about["flag_threshold"]
    unfamiliar = familiarity <= guard.about["unfamiliar_rate"]
    verdict = np.where(unfamiliar, 2, flagged)
    table = {
        "id": inputs.ids,
        "prediction": probabilities.argmax(1).numpy(),
        "verdict": np.array(VERDICTS)[verdict],
        "wrong_probability": scores["guard"],
        "flagged": flagged,
        "familiarity": familiarity,
        "set_size": prediction_sets(probabilities, **guard.about["set"]).sum(1).numpy(),
        "confidence": confidence,
    }
    order = np.lexsort((inputs.ids, -scores["guard"], -verdict))
    summary = {
        "trusted_share": share_of(verdict == 0),
        "flagged_share": share_of(flagged),
        "unfamiliar_share": share_of(unfamiliar),
        "doubtful": Estimate(int((verdict > 0).sum())),
    }
    return {name: values[order] for name, values in table.items()}, summary


def drift_parts(
    guard: GuardModule, scores: Mapping[str, Floats], ids: NDArray[np.str_], times: Floats | None, rate: float
) -> tuple[dict[str, Estimate], dict[str, np.ndarray]]:
    """Whether the scores have changed, in the order of time; and the evidence on the way."""
    order = np.arange(len(ids)) if times is None else np.lexsort((ids, times))
    alarm = drift_alarm(guard, rate=rate)
    watched = np.stack([scores["guard"], scores["unusual"]], 1)[order]
    evidence = np.array([alarm.add(row) for row in watched.tolist()])
    ends = np.unique(np.linspace(1, len(order), min(_POINTS, len(order))).round().astype(int))
    wrong = np.array([part.mean() for part in np.split(watched[:, 0], ends[:-1])])
    summary = {"drifted": Estimate(alarm.first_alarm is not None), "alarm_rate": Estimate(rate)}
    if alarm.first_alarm is not None:
        number = alarm.first_alarm
        summary["first_alarm"] = Estimate(str(ids[order][number]), about=f"number {number + 1} of {len(ids)} in time")
    arrays = {
        "drift_inputs": ends,
        "drift_evidence": np.log10(evidence)[ends - 1],
        "drift_alarm": np.full(len(ends), -np.log10(rate)),
        "drift_wrong": wrong,
    }
    return summary, arrays
