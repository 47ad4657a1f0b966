"""What compares samples after the pass: estimates and tables of the room, and neighbour accuracy of two models.

After Zhong et al. 2021 (`zhong2021`).
"""

from collections.abc import Sequence

import numpy as np

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.groups import common_groups
from weakspot.estimates import interval_estimate, share_of
from weakspot.robustness.finding_outputs import COMPARED_NEIGHBOURS
from weakspot.robustness.metrics import weak_inputs
from weakspot.robustness.metrics_features import (
    concentration_correlation,
    quartiles_of_counts,
    weak_strong_difference,
)
from weakspot.statistics.clustered import grouped_mean_interval, grouped_paired_interval
from weakspot.statistics.intervals import correlation_interval, normal_quantile, wilson_interval
from weakspot.statistics.paired import paired_difference_interval
from weakspot.statistics.thresholds import LowIf

_COLUMNS = ("id", "weak", "neighbour_accuracy", "looks_used")
_SMALL_CHANGE = 0.2
_QUERIES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)
_MOST_EFFECTS = 5


def mean_estimate(shares: np.ndarray) -> Estimate:
    """The mean of shares with its normal interval."""
    mean = float(shares.mean())
    spread = normal_quantile(0.95) * float(shares.std()) / len(shares) ** 0.5
    return Estimate(mean, max(mean - spread, 0.0), min(mean + spread, 1.0), 0.95)


def accuracy_columns(correct_looks: np.ndarray, looks_used: np.ndarray, total: int) -> dict[str, np.ndarray]:
    """Neighbour accuracy over the looks used with Wilson's interval, its bounds over all looks, and the counts."""
    low, high = wilson_interval(correct_looks, looks_used)
    at_least, at_most = accuracy_bounds(correct_looks, looks_used, total)
    return {
        "neighbour_accuracy": correct_looks / looks_used,
        "low": low,
        "high": high,
        "at_least": at_least,
        "at_most": at_most,
        "looks_used": looks_used,
        "correct_looks": correct_looks,
    }


def accuracy_bounds(correct_looks: np.ndarray, looks_used: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest neighbour accuracy that is still possible over `total` looks.

    >>> accuracy_bounds(np.array([3]), np.array([4]), 8)
    (array([0.375]), array([0.875]))
    """
    return correct_looks / total, (correct_looks + total - looks_used) / total


def distance_estimates(ratio: np.ndarray, weak: np.ndarray) -> dict[str, Estimate]:
    """How the distance ratio differs between weak and strong inputs."""
    difference = weak_strong_difference(ratio, weak)
    if difference is None:
        return {"distance_effect": Estimate(None, about="too few weak or too few strong inputs to compare")}
    return {
        "distance_weak": Estimate(difference.weak),
        "distance_strong": Estimate(difference.strong),
        "distance_effect": Estimate(difference.effect),
        "distance_p_value": Estimate(difference.p_value),
    }


def correlation_by_queries(
    predictions: np.ndarray, accuracy: np.ndarray
) -> tuple[dict[str, Estimate], dict[str, np.ndarray]]:
    """Spearman's ρ of Simpson's λ and neighbour accuracy: a number for all looks, arrays by the number of queries.

    As in the paper's table, only over the inputs whose looks are not all correct: the others would raise it.
    """
    looks = predictions.shape[1] - 1
    imperfect = accuracy < 1
    inputs = int(imperfect.sum())
    none = {"concentration_correlation": Estimate(None, about="too few inputs with a wrong look, or no differences")}
    if inputs <= 2:
        return none, {}
    queries = [m for m in _QUERIES if m < looks] + [looks]
    correlation = concentration_correlation(predictions[imperfect], accuracy[imperfect], queries)
    curve = {"queries": np.array(queries), "correlation": correlation}
    value = float(correlation[-1])
    if np.isnan(value):
        return none, curve
    return {"concentration_correlation": interval_estimate(value, correlation_interval(value, inputs))}, curve


def class_table(
    counts: np.ndarray, names: np.ndarray, threshold: float, weak_if: LowIf = "below"
) -> dict[str, np.ndarray]:
    """Neighbour accuracy class by class; counts (classes, looks + 2): inputs by their number of correct looks."""
    shares = np.arange(counts.shape[1]) / (counts.shape[1] - 1)
    inputs, weak = counts.sum(1), (counts * weak_inputs(shares, threshold, weak_if)).sum(1)
    low, high = wilson_interval(weak, inputs)
    worst_low, worst_high = wilson_interval(counts[:, -1], inputs)
    quartiles = np.stack([quartiles_of_counts(row, shares) for row in counts])
    return {
        "class": names,
        "weak_share": weak / inputs,
        "weak_low": low,
        "weak_high": high,
        "neighbour_accuracy": (counts * shares).sum(1) / inputs,
        "worst_case_accuracy": counts[:, -1] / inputs,
        "worst_case_low": worst_low,
        "worst_case_high": worst_high,
        **{f"quartile_{i + 1}": quartiles[:, i] for i in range(3)},
        "inputs": inputs,
    }


def effects_table(
    quantities: Sequence[tuple[str, str, np.ndarray]], looks: np.ndarray, correct: np.ndarray
) -> tuple[dict[str, Estimate], dict[str, np.ndarray]]:
    """Accuracy over the range of each quantity, the one with the largest effect first.

    quantities: name, unit and the borders of its bins.
    looks, correct: how many looks fell into each bin, and how many of them were correct, shape (quantities, bins).
    """
    accuracy = correct / np.maximum(looks, 1)
    low, high = wilson_interval(correct, looks)
    observed = np.where(looks > 0, accuracy, np.nan)
    effect = np.nanmax(observed, axis=1) - np.nanmin(observed, axis=1)
    order = np.lexsort((np.arange(len(quantities)), -effect))
    names = [quantities[row][0] for row in order]
    edges, bins = np.stack([quantities[row][2] for row in order]), looks.shape[1]
    effects = {
        f"effect_{i + 1}": Estimate(float(effect[row]), about=f"{names[i]}: in its best bin less in its worst")
        for i, row in enumerate(order[:_MOST_EFFECTS])
    }
    return {"hurts_most": Estimate(names[0]), **effects}, {
        "quantity": np.repeat(names, bins),
        "unit": np.repeat([quantities[row][1] for row in order], bins),
        "from": edges[:, :-1].ravel(),
        "to": edges[:, 1:].ravel(),
        "accuracy": accuracy[order].ravel(),
        "low": low[order].ravel(),
        "high": high[order].ravel(),
        "looks": looks[order].ravel(),
    }


def kind_estimates(kinds: Sequence[str], looks: np.ndarray) -> dict[str, Estimate]:
    """The share of correct looks of each kind of variation, and the kind with the lowest; looks (kinds, 2).

    >>> {name: one.value for name, one in kind_estimates(["rain", "fog"], np.array([[4, 1], [4, 3]])).items()}
    {'worst_kind': 'rain', 'under_rain': 0.25, 'under_fog': 0.75}
    """
    low, high = wilson_interval(looks[:, 1], looks[:, 0])
    share = looks[:, 1] / np.maximum(looks[:, 0], 1)
    return {
        "worst_kind": Estimate(kinds[int(share.argmin())]),
        **{
            f"under_{name.replace(' ', '_')}": Estimate(float(share[i]), float(low[i]), float(high[i]), 0.95)
            for i, name in enumerate(kinds)
        },
    }


def compared_neighbours(before: Finding, after: Finding, *, confidence: float = 0.95) -> Finding:
    """What changed between two Findings of `NeighbourAccuracy` over the same inputs.

    The share of weak inputs with the paired interval of its difference; where both Findings hold all looks
    (`early_stopping: never`), also the mean change of neighbour accuracy, and how many inputs change by less than 0.2,
    which is how the paper counts how alike two models are (Zhong et al. 2021, appendix A).
    """
    old, new = _by_id(before), _by_id(after)
    if old["id"].tolist() != new["id"].tolist():
        raise DataError("the two Findings are not of the same inputs: examine both models on the same data")
    groups = common_groups(old["id"].tolist(), after, before)
    changed = np.flatnonzero(old["weak"] != new["weak"])
    return Finding(
        name="robustness.compared_neighbours",
        about="What changed between two models in the neighbour accuracy of the same inputs.",
        summary=COMPARED_NEIGHBOURS.described(_changes(old, new, groups, confidence)),
        table=table_of(
            {
                "id": old["id"][changed],
                "change": np.where(new["weak"][changed], "became weak", "became strong"),
                "before": old["neighbour_accuracy"][changed],
                "after": new["neighbour_accuracy"][changed],
            }
        ),
        outputs=COMPARED_NEIGHBOURS,
        provenance={"before": before.digest, "after": after.digest, "confidence": confidence},
    )


def _changes(
    old: dict[str, np.ndarray], new: dict[str, np.ndarray], groups: np.ndarray | None, confidence: float
) -> dict[str, Estimate]:
    if groups is None:
        ends = paired_difference_interval(old["weak"], new["weak"], confidence=confidence)
    else:
        ends = grouped_paired_interval(old["weak"], new["weak"], groups, confidence=confidence)
    low, high = map(float, ends)
    verdict = "no difference shown" if low <= 0 <= high else "better" if high < 0 else "worse"
    difference = float(new["weak"].mean() - old["weak"].mean())
    return {
        "verdict": Estimate(verdict),
        "difference": Estimate(difference, low, high, confidence),
        "weak_before": Estimate(float(old["weak"].mean())),
        "weak_after": Estimate(float(new["weak"].mean())),
        "became_strong": Estimate(int((old["weak"] & ~new["weak"]).sum())),
        "became_weak": Estimate(int((~old["weak"] & new["weak"]).sum())),
        **_accuracy_change(old, new, groups, confidence),
        "inputs": Estimate(len(old["id"])),
    }


def _accuracy_change(
    old: dict[str, np.ndarray], new: dict[str, np.ndarray], groups: np.ndarray | None, confidence: float
) -> dict[str, Estimate]:
    """The mean change and the share of small changes; nothing where some looks were saved by early stopping."""
    if len({*old["looks_used"].tolist(), *new["looks_used"].tolist()}) != 1:
        return {}
    change = new["neighbour_accuracy"] - old["neighbour_accuracy"]
    mean, spread = float(change.mean()), normal_quantile(confidence) * float(change.std()) / len(change) ** 0.5
    low, high = mean - spread, mean + spread
    if groups is not None:
        low, high = map(float, grouped_mean_interval(change, groups, confidence=confidence))
    return {
        "neighbour_accuracy_change": Estimate(mean, low, high, confidence),
        "alike": share_of(np.abs(change) < _SMALL_CHANGE, groups=groups, confidence=confidence),
    }


def _by_id(finding: Finding) -> dict[str, np.ndarray]:
    if finding.table is None or not set(_COLUMNS) <= set(finding.table.column_names):
        raise DataError(f"{finding.name} is no Finding of NeighbourAccuracy: examine both models with that probe")
    table = finding.table.sort_by("id")
    return {name: np.asarray(table[name].to_numpy()) for name in _COLUMNS}


def weak_ids(finding: Finding) -> list[str]:
    """The ids of the weak inputs of a Finding of `NeighbourAccuracy`, the weakest first.

    Weak training inputs can be trained on, with variations of them. Never train on weak test inputs.
    """
    if finding.table is None or not {"id", "weak"} <= set(finding.table.column_names):
        raise DataError(f"{finding.name} is no Finding of NeighbourAccuracy: examine the model with that probe")
    columns = (finding.table[name].to_pylist() for name in ("id", "weak"))
    return [name for name, weak in zip(*columns, strict=True) if weak]
