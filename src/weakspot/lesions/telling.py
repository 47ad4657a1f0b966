"""What the room tells: summaries, tables and arrays of its Findings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.lesions import outputs as declared
from weakspot.lesions.apart import check_not_learnt, check_untrained
from weakspot.lesions.baselines import direct_uncertainties
from weakspot.lesions.evaluation import Evaluation, Fold, evaluate, mean_dice
from weakspot.lesions.lesion_set import LesionSet, patients_of
from weakspot.lesions.model import METHODS, PROVENANCE, LesionModel, uncertainties
from weakspot.statistics.calibration import brier_score, reliability
from weakspot.statistics.intervals import Interval, percentile_interval, too_few_to_resample

LESIONS, FIT, SCORES, EVALUATION = "lesions.lesions", "lesions.lesion_fit", "lesions.scores", "lesions.evaluation"
"""The names of the room's Findings."""
ALIKE = ("foreground", "threshold", "dilation", "least_iou", "log_epsilon", "standardise")
"""Options of `Lesions` that must be the same for the lesions a model learnt from and those it judges."""
FIRST = (
    "case", "lesion", "z", "y", "x", "voxels", "volume_mm3", "false_positive_probability", "rank", "uncertainty",
    "adjusted_iou", "true_positive",
)  # fmt: skip
"""The first columns of a table of lesions, those that it has."""
SCORED = ("gcn_classification", "gcn_regression", "metaseg_classification", "metaseg_regression")
"""Methods whose uncertainties have columns of their own; those of the others follow from the measures."""


def ordered(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns with those first that are looked for first."""
    return {name: columns[name] for name in (*FIRST, *columns) if name in columns}


def case_summary(table: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> dict[str, Estimate]:
    """How many cases and lesions there are, and how well they agree with the truth where that is known."""
    per_case = arrays["case_lesions"]
    found = {
        "lesions": Estimate(len(table["voxels"]), about="lesions found"),
        "cases": Estimate(len(per_case), about="cases examined"),
        "without_lesion": Estimate(int((per_case == 0).sum()), about="cases without a lesion"),
    }
    if "case_dice" not in arrays:
        return found
    true = np.asarray(table["true_positive"])
    return found | {
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
    return _estimate(mean, interval, about, too_few_to_resample(int(np.isfinite(dice).sum()), "patients"))


def _estimate(value: float, interval: Interval, about: str, few: str) -> Estimate:
    """With its interval, or why there is none: too few patients, or resampling them never changes the value."""
    low, high = (float(end) for end in interval)
    if not low < high:
        few = few or "no interval: it is the same however patients are drawn"
    return Estimate(value, about=f"{about}; {few}") if few else Estimate(value, low, high, 0.95, about)


def patient_means(patients: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of each patient's values in the order of their names, NaN where there is none."""
    names, place = np.unique(patients, return_inverse=True)
    known = np.isfinite(values)
    counts = np.bincount(place[known], minlength=len(names))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(place[known], weights=values[known], minlength=len(names)) / counts)


def check_alike(learnt: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse lesions that were cut in another way than those a model learnt from."""
    for name in ALIKE:
        if name in learnt and learnt[name] != given.get(name):
            raise ConfigError(
                f"the lesion model learnt from lesions with {name} {learnt[name]!r}, and these have "
                f"{given.get(name)!r}: sample the cases with the same options"
            )


def fit_finding(lesions: LesionSet, model: LesionModel, held_out: np.ndarray, patients: np.ndarray) -> Finding:
    """The trained model, with what it said of the lesions of held-out patients; `patients` of each lesion."""
    wrong, told = lesions.false_positive, model.calibration
    probability = told.probability(held_out)
    table = {
        "case": lesions.case,
        "lesion": lesions.columns["lesion"],
        "false_positive_probability": probability,
        "score": held_out,
        "adjusted_iou": lesions.adjusted_iou,
        "true_positive": ~wrong,
    }
    summary = {
        "lesions": Estimate(len(lesions), about="lesions learnt from"),
        "false_positives": Estimate(int(wrong.sum()), about="of them false positives"),
        "cases": Estimate(len(model.cases), about="cases with lesions"),
        "method": Estimate(model.method, about="what gives the probability of a false positive"),
        "calibrated": Estimate(told.calibrated, about=_calibration_words(model)),
    }
    known = np.isfinite(probability)
    if told.calibrated:
        about = "mean squared error of the probability on held-out patients"
        summary["brier"] = brier_estimate(probability[known], wrong[known], patients[known], about)
    arrays = model.arrays() | reliability_arrays(probability[known], wrong[known])
    return Finding(
        name=FIT,
        about="A lesion model, with what it says of held-out patients.",
        summary=summary,
        table=table_of(table),
        arrays=arrays,
        outputs=declared.LESION_FIT,
        provenance={PROVENANCE: model.about()},
    )


def _calibration_words(model: LesionModel) -> str:
    told = model.calibration
    held = f"{told.true} true and {told.false} false positives of held-out patients"
    if told.calibrated:
        return f"the probability is calibrated on {held}"
    return f"too few ({held}): scores are ranks, not probabilities"


def reliability_arrays(probability: np.ndarray, wrong: np.ndarray) -> dict[str, np.ndarray]:
    """The reliability diagram: what was said, what was so, and of how many lesions; nothing where nothing was said."""
    if not len(probability):
        return {}
    told = reliability(probability, wrong)
    return {"reliability_said": told.said, "reliability_found": told.found, "reliability_lesions": told.inputs}


def scores_finding(cut: Finding, model: LesionModel, *, patient: str | None = None, replicates: int = 1000) -> Finding:
    """Every lesion with what the model says of it, and how well that agrees with the truth where it is known.

    Cases, and patients, that the network was trained on or that the model learnt from are refused.
    """
    check_apart(cut, model.about(), patient)
    lesions = LesionSet.of(cut)
    scores = model.scores(lesions)
    unsure = uncertainties(scores)
    probability = model.calibration.probability(scores[model.method])
    columns = {
        **lesions.columns,
        "case": lesions.case,
        "false_positive_probability": probability,
        "uncertainty": unsure[model.method],
        "rank": ranks(scores[model.method]),
        **{method: unsure[method] for method in SCORED},
    }
    arrays = {key: values for key, values in cut.arrays.items() if key.startswith("case")}
    table = {key: np.asarray(lesions.columns.get(key)) for key in ("voxels", "true_positive")}
    summary = case_summary(table, arrays) | {
        "method": Estimate(model.method, about="what gives the probability of a false positive"),
        "calibrated": Estimate(model.calibration.calibrated, about=_calibration_words(model)),
    }
    if model.calibration.calibrated:
        summary["expected_false_positives"] = expected_false_positives(probability, lesions)
    finding = Finding(
        name=SCORES,
        about="Every lesion with the probability that it is a false positive.",
        summary=summary,
        table=table_of(ordered(columns)),
        arrays=arrays,
        outputs=declared.SCORES,
        provenance={PROVENANCE: model.about()},
    )
    return _with_truth(finding, lesions, model, patient, replicates)


def check_apart(finding: Finding, model: Mapping[str, Any], patient: str | None) -> None:
    """Refuse lesions of cases or patients that the network or the lesion model, by its `about`, has learnt from."""
    cases = np.asarray(finding.arrays["cases"])
    marked = np.asarray(finding.arrays.get("case_trained_on", np.zeros(len(cases), dtype=np.bool_)))
    parameters = finding.provenance.get("parameters", {})
    listed = parameters.get("sampling", parameters).get("trained_on", ())
    pattern = patient or model.get("patient")
    check_untrained(cases.tolist(), [*cases[marked].tolist(), *listed], patient=pattern)
    check_not_learnt(cases.tolist(), model.get("cases", ()), patient=pattern)


def expected_false_positives(probability: np.ndarray, lesions: LesionSet) -> Estimate:
    """Σ p, and beside it how many there are where the truth is known.

    It has no interval: √(Σ p (1 − p)) would take lesions for independent and the calibration for exact, and neither how
    patients differ nor how far the calibration is off can be seen from these lesions.
    """
    about = "false positives to expect: the sum of the lesions' probabilities, as good as these are calibrated"
    known = f"; by the true masks there are {int(lesions.false_positive.sum())}" if lesions.truth_known else ""
    return Estimate(float(probability.sum()), about=about + known)


def brier_estimate(probability: np.ndarray, wrong: np.ndarray, patients: np.ndarray, about: str) -> Estimate:
    """The Brier score with an interval from resampled patients."""
    own = (probability - wrong) ** 2
    names, place = np.unique(patients, return_inverse=True)
    counts = np.random.default_rng(0).multinomial(len(names), np.full(len(names), 1 / len(names)), size=1000)[:, place]
    with np.errstate(invalid="ignore"):
        interval = percentile_interval((counts @ own) / counts.sum(1))
    return _estimate(brier_score(probability, wrong), interval, about, too_few_to_resample(len(names), "patients"))


def ranks(uncertainty: np.ndarray) -> np.ndarray:
    """1 for the lesion that is least sure; equal ones in the order in which they stand.

    >>> ranks(np.array([0.2, 0.9, 0.5])).tolist()
    [3, 1, 2]
    """
    found = np.empty(len(uncertainty), dtype=np.int64)
    found[np.argsort(-uncertainty, kind="stable")] = np.arange(1, len(uncertainty) + 1)
    return found


def _with_truth(
    finding: Finding, lesions: LesionSet, model: LesionModel, patient: str | None, replicates: int
) -> Finding:
    """The Finding with areas, their difference to the best rival and reliability, where both kinds of lesion occur."""
    if not lesions.truth_known or not 0 < lesions.false_positive.sum() < len(lesions):
        return finding
    told = evaluate([scored_fold(finding, patient)], replicates=replicates)
    summary = {**finding.summary, **area_estimates(told, model.method)}
    arrays = dict(finding.arrays)
    if model.calibration.calibrated:
        assert finding.table is not None
        probability = finding.table["false_positive_probability"].to_numpy()
        owners = patients_of(lesions.case, patient)
        about = "mean squared error of the probability here"
        summary["brier"] = brier_estimate(probability, lesions.false_positive, owners, about)
        arrays |= reliability_arrays(probability, lesions.false_positive)
    return replace(finding, summary=summary, arrays=arrays)


def area_estimates(told: Evaluation, method: str) -> dict[str, Estimate]:
    """The area of the chosen method, that of the best rival, and their difference."""
    rivals = {name: area for name, area in told.area.items() if not name.startswith("gcn") and name != method}
    best = max(rivals, key=lambda name: rivals[name])
    apart = told.difference(method, best)
    return {
        "area": _area(told, method, f"area under the accuracy–confidence curve of {method}"),
        "best_baseline": Estimate(best, about="the rival with the largest area, chosen here"),
        "area_of_best_baseline": _area(told, best, "its area"),
        "difference": _estimate(*apart, f"area of {method} less that of {best}", told.few),
    }


def _area(told: Evaluation, method: str, about: str) -> Estimate:
    return _estimate(told.area[method], told.interval[method], about, told.few)


def scored_fold(finding: Finding, patient: str | None) -> Fold:
    """The scored lesions of a Finding of `Scores` as one fold to evaluate."""
    if finding.table is None or "true_positive" not in finding.table.column_names:
        raise DataError(f"{finding.name} holds no lesions with known truth: score cases that have true masks")
    table = {name: finding.table[name].to_numpy(zero_copy_only=False) for name in finding.table.column_names}
    unsure = direct_uncertainties(table) | {name: table[name] for name in SCORED if name in table}
    cases = np.asarray(finding.arrays["cases"])
    patients = patients_of(cases, patient)
    return Fold(
        {name: np.asarray(unsure[name], dtype=np.float64) for name in METHODS if name in unsure},
        ~np.asarray(table["true_positive"], dtype=np.bool_),
        patients_of(np.asarray(table["case"], dtype=np.str_), patient),
        np.asarray(table["voxels"], dtype=np.int64),
        np.unique(patients),
        patient_means(patients, np.asarray(finding.arrays["case_dice"])),
    )


def method_table(told: Evaluation, method: str, folds: Sequence[str]) -> dict[str, np.ndarray]:
    """One row per method: area with interval, that of the chosen method less it, Spearman's ρ, each fold's area."""
    names = list(told.area)
    apart = [told.difference(method, name) for name in names]
    columns: dict[str, Any] = {
        "method": names,
        "area": [told.area[name] for name in names],
        "low": [float(told.interval[name].low) for name in names],
        "high": [float(told.interval[name].high) for name in names],
        "difference": [value for value, _ in apart],
        "difference_low": [float(interval.low) for _, interval in apart],
        "difference_high": [float(interval.high) for _, interval in apart],
        "spearman_with_size": [told.spearman[name] for name in names],
    }
    columns |= {f"area_{fold}": [told.per_fold[name][place] for name in names] for place, fold in enumerate(folds)}
    return {name: np.asarray(values) for name, values in columns.items()}
