"""Two models, or one before and after a repair: neighbour accuracy compared input by input."""

import numpy as np

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.statistics.intervals import normal_quantile, wilson_interval
from weakspot.statistics.paired import paired_difference_interval

_COLUMNS = ("id", "weak", "accuracy", "looks_used")
_SMALL_CHANGE = 0.2


def compared_neighbours(before: Finding, after: Finding, *, confidence: float = 0.95) -> Finding:
    """What changed between two Findings of `NeighbourAccuracy` over the same inputs.

    The share of weak inputs with the paired interval of its difference; where both Findings hold all looks (`release:
    never`), the mean change of neighbour accuracy too, and how many inputs change by less than 0.2, as the paper counts
    how alike two models are (Zhong et al. 2021, appendix A).
    """
    old, new = _by_id(before), _by_id(after)
    if old["id"].tolist() != new["id"].tolist():
        raise DataError("the two Findings are not of the same inputs: examine both models on the same data")
    changed = np.flatnonzero(old["weak"] != new["weak"])
    return Finding(
        name="robustness.compared_neighbours",
        about="What changed between two models in the neighbour accuracy of the same inputs.",
        summary=_summary(old, new, confidence),
        table=table_of(
            {
                "id": old["id"][changed],
                "change": np.where(new["weak"][changed], "became weak", "became strong"),
                "before": old["accuracy"][changed],
                "after": new["accuracy"][changed],
            }
        ),
        provenance={"before": before.digest, "after": after.digest, "confidence": confidence},
    )


def _summary(old: dict[str, np.ndarray], new: dict[str, np.ndarray], confidence: float) -> dict[str, Estimate]:
    low, high = map(float, paired_difference_interval(old["weak"], new["weak"], confidence=confidence))
    verdict = "no difference shown" if low <= 0 <= high else "better" if high < 0 else "worse"
    difference = float(new["weak"].mean() - old["weak"].mean())
    return {
        "verdict": Estimate(verdict, about="by the interval of the difference"),
        "difference": Estimate(difference, low, high, confidence, "share of weak inputs after less before, paired"),
        "weak_before": Estimate(float(old["weak"].mean()), about="share of weak inputs before"),
        "weak_after": Estimate(float(new["weak"].mean()), about="share of weak inputs after"),
        "became_strong": Estimate(int((old["weak"] & ~new["weak"]).sum()), about="inputs weak before only"),
        "became_weak": Estimate(int((~old["weak"] & new["weak"]).sum()), about="inputs weak after only"),
        **_accuracy_change(old, new, confidence),
        "inputs": Estimate(len(old["id"]), about="samples examined"),
    }


def _accuracy_change(old: dict[str, np.ndarray], new: dict[str, np.ndarray], confidence: float) -> dict[str, Estimate]:
    """The mean change and the share of small changes; nothing where inputs were released before all looks."""
    if len({*old["looks_used"].tolist(), *new["looks_used"].tolist()}) != 1:
        return {}
    change = new["accuracy"] - old["accuracy"]
    mean, spread = float(change.mean()), normal_quantile(confidence) * float(change.std()) / len(change) ** 0.5
    alike = int((np.abs(change) < _SMALL_CHANGE).sum())
    low, high = wilson_interval(alike, len(change), confidence=confidence)
    about = f"share of the inputs whose neighbour accuracy changes by less than {_SMALL_CHANGE}"
    return {
        "accuracy_change": Estimate(mean, mean - spread, mean + spread, confidence, "mean change, paired"),
        "alike": Estimate(alike / len(change), float(low), float(high), confidence, about),
    }


def _by_id(finding: Finding) -> dict[str, np.ndarray]:
    if finding.table is None or not set(_COLUMNS) <= set(finding.table.column_names):
        raise DataError(f"{finding.name} is no Finding of NeighbourAccuracy: examine both models with that probe")
    table = finding.table.sort_by("id")
    return {name: np.asarray(table[name].to_numpy()) for name in _COLUMNS}


def weak_ids(finding: Finding) -> list[str]:
    """The ids of the weak inputs of a Finding of `NeighbourAccuracy`, the weakest first: what to train on next."""
    if finding.table is None or not {"id", "weak"} <= set(finding.table.column_names):
        raise DataError(f"{finding.name} is no Finding of NeighbourAccuracy: examine the model with that probe")
    columns = (finding.table[name].to_pylist() for name in ("id", "weak"))
    return [name for name, weak in zip(*columns, strict=True) if weak]
