"""The numbers of the room's summaries: counts, Dice, Brier score, areas; with intervals over resampled patients."""

from collections.abc import Mapping

import numpy as np

from weakspot.core.finding import Estimate
from weakspot.lesions.lesion_model import Calibration
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.method_choice import MethodChoice
from weakspot.lesions.methods import LEVEL
from weakspot.lesions.metrics_evaluation import Evaluation, ScoredFold, evaluate, mean_dice
from weakspot.lesions.operating_points import KeptShare
from weakspot.statistics.calibration import brier_score, reliability
from weakspot.statistics.intervals import Interval, percentile_interval, resampled_counts, too_few_to_resample


def case_summary(
    table: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], patients: np.ndarray | None = None
) -> dict[str, Estimate]:
    """How many cases and lesions there are, and how well they agree with the truth where that is known.

    patients: of each case, where they are named; without them each case is a patient of its own.
    """
    per_case = arrays["case_lesions"]
    summary = {
        "lesions": Estimate(len(table["voxels"]), about="lesions found"),
        "cases": Estimate(len(per_case), about="cases examined"),
        "without_lesion": Estimate(int((per_case == 0).sum()), about="cases without a lesion"),
    }
    if patients is not None:
        count = len(np.unique(patients))
        summary["cases"] = Estimate(len(per_case), about=f"cases examined, of {count} patients")
        summary["patients"] = Estimate(count, about="patients examined")
    if "case_dice" not in arrays:
        return summary
    dice = np.asarray(arrays["case_dice"])
    true = np.asarray(table["true_positive"])
    if "case_true_lesions" in arrays:
        summary |= detection_estimates(table, arrays, patients)
    return summary | {
        "true_positives": Estimate(int(true.sum()), about="lesions that agree with the truth"),
        "false_positives": Estimate(int((~true).sum()), about="lesions that do not"),
        "missed_lesions": Estimate(int(arrays["case_missed_lesions"].sum()), about="true lesions that none touches"),
        "dice": dice_estimate(dice, "cases") if patients is None else dice_estimate(patient_means(patients, dice)),
    }


def detection_estimates(
    table: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], patients: np.ndarray | None
) -> dict[str, Estimate]:
    """Recall, precision and F1 of the lesions, panoptic quality and surface distance; without intervals."""
    true = np.asarray(table["true_positive"])
    there, missed = (float(arrays[name].sum()) for name in ("case_true_lesions", "case_missed_lesions"))
    recall = (there - missed) / there if there else None
    precision = float(true.mean()) if len(true) else None
    both = None if recall is None or precision is None else recall + precision
    f1 = None if both is None else 2 * recall * precision / both if both else 0.0  # type: ignore[operator]
    found = {
        "recall": Estimate(recall, about="share of the true lesions that a lesion touches"),
        "precision": Estimate(precision, about="share of the lesions that agree with the truth"),
        "f1": Estimate(f1, about="harmonic mean of recall and precision"),
    }
    if "case_panoptic_quality" not in arrays:
        return found
    by_case = np.asarray(arrays["case_panoptic_quality"])
    values = by_case if patients is None else patient_means(patients, by_case)
    known, of = np.isfinite(values), "cases" if patients is None else "patients"
    quality = float(values[known].mean()) if known.any() else None
    found["panoptic_quality"] = Estimate(quality, about=f"mean panoptic quality over the {of}, at an IoU above 0.5")
    distance = np.asarray(table.get("hd95", ()), dtype=np.float64)
    matched = distance[np.isfinite(distance)]
    about = f"median over the {len(matched)} lesions that match a true one, at an IoU above 0.5; mm where that is known"
    found["hd95"] = Estimate(float(np.median(matched)) if len(matched) else None, about=about)
    return found


def dice_estimate(dice: np.ndarray, of: str = "patients") -> Estimate:
    """Mean Dice over patients, or cases, with its interval; none where nothing could be compared."""
    mean, interval = mean_dice(dice)
    about = f"mean Dice over the {of}, without those where nothing is and nothing was found"
    if np.isnan(mean):
        return Estimate(None, about=about)
    return with_interval(mean, interval, about, too_few_to_resample(int(np.isfinite(dice).sum()), of))


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
    area = "" if calibration.area is None else f", with an area of {calibration.area:.2f} where 0.5 is chance"
    if calibration.calibrated:
        return f"the probability is calibrated on {held_out}{area}"
    if area:
        return f"on {held_out} a higher score did not mean more false positives{area}: it gives no probability"
    return f"too few ({held_out}): scores are ranks, not probabilities"


def point_estimates(point: KeptShare) -> dict[str, Estimate]:
    """The threshold that keeps a share of the true lesions, with what it does on the patients that it was set on."""
    found = f"of the true lesions found; set on {point.patients} patients that trained nothing"
    return {
        "keep": Estimate(
            point.keep, about="share of the true lesions found to keep of a new patient, on average at least"
        ),
        "keep_threshold": Estimate(
            point.threshold, about=f"lesions of a higher score are dropped, to keep {point.keep:.0%} {found}"
        ),
        "keep_patients": Estimate(point.patients, about="patients that it was set on"),
        "keep_removed": Estimate(point.removed, about=f"false positives dropped there, of {point.false_positives}"),
    }


def kept_estimates(kept: np.ndarray, lesions: LesionSet, patients: np.ndarray, point: KeptShare) -> dict[str, Estimate]:
    """How many lesions are dropped to keep a share of the true ones, and what that did where the truth is known."""
    summary = {
        "dropped": Estimate(
            int((~kept).sum()), about=f"lesions to drop, to keep {point.keep:.0%} of the true ones found"
        )
    }
    if not lesions.truth_known:
        return summary
    wrong = lesions.false_positive
    by_patient = [kept[(patients == name) & ~wrong] for name in np.unique(patients[~wrong])]
    share = float(np.mean([own.mean() for own in by_patient])) if by_patient else None
    return summary | {
        "false_positives_dropped": Estimate(int((~kept & wrong).sum()), about=f"of {int(wrong.sum())} false positives"),
        "true_positives_kept": Estimate(share, about="share of a patient's true lesions found, mean over patients"),
    }


def reliability_arrays(probability: np.ndarray, wrong: np.ndarray) -> dict[str, np.ndarray]:
    """The reliability diagram: of each bin the mean probability, the share of false positives, and the lesions."""
    if not len(probability):
        return {}
    curve = reliability(probability, wrong)
    return {
        "reliability_predicted": curve.probability,
        "reliability_observed": curve.frequency,
        "reliability_lesions": curve.inputs,
    }


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


def calibration_parts(
    probability: np.ndarray, wrong: np.ndarray, patients: np.ndarray, about: str
) -> tuple[dict[str, Estimate], dict[str, np.ndarray]]:
    """Numbers and arrays that say how good the probabilities are, over all lesions and for each patient."""
    summary, arrays = patient_calibration(probability, wrong, patients)
    brier = {"brier": brier_estimate(probability, wrong, patients, about)}
    if len(probability):
        gap = "mean distance of the probability from the share of false positives, over bins of a tenth"
        brier["calibration_error"] = Estimate(reliability(probability, wrong).error, about=gap)
    return brier | summary, reliability_arrays(probability, wrong) | arrays


def patient_calibration(
    probability: np.ndarray, wrong: np.ndarray, patients: np.ndarray
) -> tuple[dict[str, Estimate], dict[str, np.ndarray]]:
    """How well the probability fits each patient, beside the share of false positives of all as a constant.

    A probability that is calibrated over all lesions may be far off for one patient. All arguments are of each lesion.
    """
    if not len(probability):
        return {}, {}
    names, patient_of = np.unique(patients, return_inverse=True)
    share = float(wrong.mean())
    totals = {
        "expected": probability,
        "false_positives": wrong,
        "brier": (probability - wrong) ** 2,
        "brier_of_share": (share - wrong) ** 2,
    }
    lesions = np.bincount(patient_of)
    sums = {name: np.bincount(patient_of, weights=values) for name, values in totals.items()}
    arrays = {
        "patients": names,
        "patient_lesions": lesions,
        "patient_expected": sums["expected"],
        "patient_false_positives": sums["false_positives"].astype(np.int64),
        "patient_brier": sums["brier"] / lesions,
        "patient_brier_of_share": sums["brier_of_share"] / lesions,
    }
    worse = int((arrays["patient_brier"] > arrays["patient_brier_of_share"]).sum())
    about = f"mean squared error where every lesion gets the share of false positives, {share:.3g}, as its probability"
    summary = {
        "brier_of_share": Estimate(share * (1 - share), about=about),
        "patients_worse_than_share": Estimate(worse, about=f"of {len(names)} patients, for whom the share errs less"),
    }
    return summary, arrays


def held_out_area(
    method: str, score: np.ndarray, wrong: np.ndarray, patients: np.ndarray, voxels: np.ndarray
) -> Estimate:
    """The area under the accuracy–confidence curve on held-out patients; all but the method are of each lesion."""
    names = np.unique(patients)
    fold = ScoredFold({method: score}, wrong, patients, voxels, names, np.full(len(names), np.nan))
    return _area(evaluate([fold]), method, f"area under the accuracy–confidence curve of {method} on held-out patients")


def choice_estimates(choice: MethodChoice) -> dict[str, Estimate]:
    """The area corrected for the choice, and how the method compares with the best score that needs no training."""
    evaluation, method, plain = choice.evaluation, choice.method, choice.best_untrained
    about = f"area on patients that had no part in the choice among {len(evaluation.area)} methods"
    few = evaluation.few or (
        "" if choice.area is not None else "not known: too few patients have lesions of both kinds"
    )
    corrected = (
        Estimate(None, about=f"{about}; {few}")
        if choice.area is None
        else with_interval(choice.area, choice.interval, about, few)
    )
    return {
        "compared": Estimate(len(evaluation.area), about="methods compared on held-out patients"),
        "corrected_area": corrected,
        "best_untrained": Estimate(plain, about="the score without training that has the largest area"),
        "area_of_best_untrained": _area(evaluation, plain, "its area"),
        "gain": with_interval(*evaluation.difference(method, plain), f"area of {method} less that", evaluation.few),
    }


def choice_arrays(choice: MethodChoice) -> dict[str, np.ndarray]:
    """All methods from the largest area to the smallest."""
    areas = choice.evaluation.area
    names = sorted(areas, key=lambda name: -areas[name])
    ends = np.array([[float(end) for end in choice.evaluation.interval[name]] for name in names])
    return {
        "compared_methods": np.array(names),
        "compared_area": np.array([areas[name] for name in names]),
        "compared_low": ends[:, 0],
        "compared_high": ends[:, 1],
    }


def area_estimates(evaluation: Evaluation, method: str) -> dict[str, Estimate]:
    """The area of the chosen method, that of the best baseline, and their difference."""
    baselines = {name: area for name, area in evaluation.area.items() if LEVEL[name] < 4 and name != method}
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
