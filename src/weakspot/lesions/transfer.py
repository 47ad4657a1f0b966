"""Whether a lesion model carries over to other patients, such as another hospital's: without truth by their features,
with truth by how far the probabilities are off.

Lesions of a patient are alike, so patients are compared: the mean of each feature over a patient's lesions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from weakspot.core.finding import Estimate
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.location import LOCATION
from weakspot.statistics.intervals import (
    LEAST_RESAMPLED,
    percentile_interval,
    resampled_counts,
    too_few_to_resample,
)

FEATURES = ("entropy", "variance", "pcs", "mutual_information", "structural", "voxels", *LOCATION)
LEVEL = 0.05
"""The chance of calling any feature shifted where patients are alike, over all features together."""


def patient_features(lesions: LesionSet, patients: np.ndarray) -> dict[str, list[float]]:
    """The mean of each feature over each patient's lesions, by feature; sizes as logarithms."""
    names, of = np.unique(patients, return_inverse=True)
    counts = np.bincount(of, minlength=len(names))
    found = {}
    for feature in (name for name in FEATURES if name in lesions.columns):
        values = np.asarray(lesions.columns[feature], dtype=np.float64)
        values = np.log(values) if feature == "voxels" else values
        found[feature] = (np.bincount(of, weights=values, minlength=len(names)) / counts).tolist()
    for number in range(lesions.features.shape[1] - len(_NODE_MEASURES)):
        means = np.bincount(of, weights=lesions.node_means[:, number], minlength=len(names)) / counts
        found[f"intensity_{number}"] = means.tolist()
    return found


_NODE_MEASURES = ("label", "entropy", "variance", "pcs")


def shifts(learnt: Mapping[str, Sequence[float]], here: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of each feature the p-value of the rank test that patients are alike (Mann and Whitney 1947), times the features.

    Empty with fewer than five patients on a side.
    """
    both = [name for name in learnt if name in here]
    if not both or min(len(learnt[both[0]]), len(here[both[0]])) < LEAST_RESAMPLED:
        return {}
    return {
        name: min(1.0, len(both) * float(mannwhitneyu(learnt[name], here[name]).pvalue))
        if np.ptp([*learnt[name], *here[name]]) > 0
        else 1.0
        for name in both
    }


def shift_parts(
    learnt: Mapping[str, Sequence[float]], here: Mapping[str, Sequence[float]]
) -> tuple[dict[str, Estimate], dict[str, np.ndarray]]:
    """How many features are shifted, with their names; arrays of all features with their p-values."""
    found = shifts(learnt, here)
    if not found:
        return {}, {}
    shifted = sorted((name for name in found if found[name] < LEVEL), key=lambda name: found[name])
    names = f": {', '.join(shifted)}" if shifted else ""
    about = f"features of which these patients differ from those learnt from{names}; the calibration may not hold here"
    quiet = "features of which these patients differ from those learnt from"
    summary = {"shifted_features": Estimate(len(shifted), about=about if shifted else quiet)}
    return summary, {"shift_feature": np.array(list(found)), "shift_p": np.array(list(found.values()))}


def calibration_gap(probability: np.ndarray, wrong: np.ndarray, patients: np.ndarray) -> Estimate:
    """Mean probability less the share of false positives, with an interval from resampled patients.

    Where the interval lies off 0 the probabilities are too high, or too low, for these patients.
    """
    names, of = np.unique(patients, return_inverse=True)
    gap = float(np.mean(probability - wrong))
    about = "mean probability less the share of false positives"
    few = too_few_to_resample(len(names), "patients")
    if few:
        return Estimate(gap, about=f"{about}; {few}")
    counts = resampled_counts(len(names), seed=0)[:, of]
    with np.errstate(invalid="ignore"):
        interval = percentile_interval(counts @ (probability - wrong) / counts.sum(1))
    low, high = float(interval.low), float(interval.high)
    verdict = {1: "too high here", -1: "too low here"}.get(int(low > 0) - int(high < 0), "")
    told = f"{about}: the probabilities are {verdict}, the calibration does not carry over" if verdict else about
    return Estimate(gap, low, high, 0.95, told)


def known_features(about: Mapping[str, Any]) -> dict[str, list[float]]:
    """The features of the patients that a model learnt from; empty for older models."""
    return {str(name): list(map(float, values)) for name, values in (about.get("features") or {}).items()}
