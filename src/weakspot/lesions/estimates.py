"""The numbers of the room's summaries: counts, Dice, Brier score, areas; with intervals over resampled patients."""

from collections.abc import Mapping

import numpy as np

from weakspot.core.finding import Estimate
from weakspot.lesions.lesion_model import Calibration
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.metrics_evaluation import Evaluation, mean_dice
from weakspot.statistics.calibration import brier_score, reliability
from weakspot.statistics.intervals import Interval, percentile_interval, resampled_counts, too_few_to_resample


def case_summary(table: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> dict[str, Estimate]:
    """How many cases and lesions there are, and how well they agree with the truth where that is known."""
    per_case = arrays["case_lesions"]
    summary = {
        "lesions": Estimate(len(table["voxels"]), about="lesions found"),
        "cases": Estimate(len(per_case), about="cases examined"),
        "without_lesion": Estimate(int((per_case == 0).sum()), about="cases without a lesion"),
    }
    if "case_dice" not in arrays:
        return summary
    true = np.asarray(table["true_positive"])
    return summary | {
        "true_positives": Estimate(int(true.sum()), about="lesions that agree with the truth"),
        "false_positives": Estimate(int((~true).sum()), about="lesions that do not"),
        "missed_lesions": Estimate(int(arrays["case_missed_lesions"].sum()), about="true lesions that none touches"),
        "dice": dice_estimate(np.asarray(arrays["case_dice"])),
    }


def dice_estimate(dice: np.ndarray) -> Estimate:
    """Mean Dice over patients with its interval; none where nothing could be compared."""
    mean, interval = mean_dice(dice)
    about = "mean Dice over the patients, without those where nothing is and nothing was found"
    if np.isnan(mean):
        return Estimate(None, about=about)
    return with_interval(mean, interval, about, too_few_to_resample(int(np.isfinite(dice).sum()), "patients"))


def with_interval(value: float, interval: Interval, about: str, few: str) -> Estimate:
    """A number with its interval, or with the reason why it has none.

    few: why resampling says too little, empty where it does not. An interval of no width is left out, too: the value
    was the same for every draw of the patients.
    """
    low, high = (float(end) for end in interval)
    if not low < high:
        few = few or "no interval: it is the same however patients are drawn"
    return Estimate(value, about=f"{about}; {few}") if few else Estimate(value, low, high, 0.95, about)


def patient_means(patients: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of each patient's values in the order of their names, NaN where there is none."""
    names, patient_of = np.unique(patients, return_inverse=True)
    finite = np.isfinite(values)
    counts = np.bincount(patient_of[finite], minlength=len(names))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(patient_of[finite], weights=values[finite], minlength=len(names)) / counts)


def calibration_note(calibration: Calibration) -> str:
    """On how many lesions the calibration rests, or why there is none."""
    held_out = f"{calibration.true} true and {calibration.false} false positives of held-out patients"
    if calibration.calibrated:
        return f"the probability is calibrated on {held_out}"
    return f"too few ({held_out}): scores are ranks, not probabilities"


def reliability_arrays(probability: np.ndarray, wrong: np.ndarray) -> dict[str, np.ndarray]:
    """The reliability diagram: of each bin the mean probability, the share of false positives, and the lesions."""
    if not len(probability):
        return {}
    curve = reliability(probability, wrong)
    return {"reliability_said": curve.said, "reliability_found": curve.found, "reliability_lesions": curve.inputs}


def expected_false_positives(probability: np.ndarray, lesions: LesionSet) -> Estimate:
    """Σ p, and beside it how many there are where the truth is known.

    It has no interval: √(Σ p (1 − p)) would take lesions for independent and the calibration for exact, and neither how
    patients differ nor how far the calibration is off can be seen from these lesions.
    """
    about = "false positives to expect: the sum of the lesions' probabilities, as good as these are calibrated"
    truth = f"; by the true masks there are {int(lesions.false_positive.sum())}" if lesions.truth_known else ""
    return Estimate(float(probability.sum()), about=about + truth)


def brier_estimate(probability: np.ndarray, wrong: np.ndarray, patients: np.ndarray, about: str) -> Estimate:
    """The Brier score with an interval from resampled patients."""
    squared_errors = (probability - wrong) ** 2
    names, patient_of = np.unique(patients, return_inverse=True)
    counts = resampled_counts(len(names), seed=0)[:, patient_of]
    with np.errstate(invalid="ignore"):
        interval = percentile_interval((counts @ squared_errors) / counts.sum(1))
    return with_interval(brier_score(probability, wrong), interval, about, too_few_to_resample(len(names), "patients"))


def area_estimates(evaluation: Evaluation, method: str) -> dict[str, Estimate]:
    """The area of the chosen method, that of the best baseline, and their difference."""
    baselines = {name: area for name, area in evaluation.area.items() if not name.startswith("gcn") and name != method}
    best = max(baselines, key=lambda name: baselines[name])
    difference = evaluation.difference(method, best)
    return {
        "area": _area(evaluation, method, f"area under the accuracy–confidence curve of {method}"),
        "best_baseline": Estimate(best, about="the baseline with the largest area, chosen on the same cases"),
        "area_of_best_baseline": _area(evaluation, best, "its area"),
        "difference": with_interval(*difference, f"area of {method} less that of {best}", evaluation.few),
    }


def _area(evaluation: Evaluation, method: str, about: str) -> Estimate:
    return with_interval(evaluation.area[method], evaluation.interval[method], about, evaluation.few)
