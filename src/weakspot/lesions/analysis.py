"""The Findings made from lesions after the pass: the fitted lesion model, scored lesions, all methods compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.lesions import outputs as declared
from weakspot.lesions.baselines import direct_uncertainties
from weakspot.lesions.estimates import (
    area_estimates,
    calibration_note,
    calibration_parts,
    case_summary,
    choice_arrays,
    choice_estimates,
    dice_estimate,
    expected_false_positives,
    held_out_area,
    kept_estimates,
    patient_means,
    point_estimates,
)
from weakspot.lesions.evaluation_outputs import EVALUATION as EVALUATION_OUTPUTS
from weakspot.lesions.leakage import check_not_learnt, check_untrained
from weakspot.lesions.lesion_model import PROVENANCE, FittedLesionModel, LesionModel, uncertainties
from weakspot.lesions.lesion_set import LesionSet, patients_of
from weakspot.lesions.methods import METHODS, TRAINED
from weakspot.lesions.metrics_detection import detected, sensitivity_columns, sensitivity_estimates
from weakspot.lesions.metrics_evaluation import Evaluation, ScoredFold, accuracy_confidence, evaluate
from weakspot.lesions.retention import retention_parts
from weakspot.lesions.transfer import calibration_gap, patient_features, shift_parts

LESIONS, FIT, SCORES, EVALUATION = "lesions.lesions", "lesions.lesion_fit", "lesions.scores", "lesions.evaluation"
"""The names of the room's Findings."""
ALIKE = ("foreground", "threshold", "dilation", "least_iou", "log_epsilon", "standardise")
"""Options of `Lesions` that must be the same for the lesions a model learnt from and those it judges."""
FIRST = (
    "case", "lesion", "z", "y", "x", "voxels", "volume_mm3", "false_positive_probability", "rank", "uncertainty",
    "adjusted_iou", "true_positive",
)  # fmt: skip
"""The first columns of a table of lesions, those that it has."""
PatientNamer = Callable[[np.ndarray], np.ndarray]
"""From the names of cases to those of their patients."""
GRID = 101
"""Places along the false positives at which curves are read off."""


def ordered(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns with those first that are looked for first."""
    return {name: columns[name] for name in (*FIRST, *columns) if name in columns}


def ranks(uncertainty: np.ndarray) -> np.ndarray:
    """1 for the lesion that is least certain; equal ones in the order in which they stand.

    >>> ranks(np.array([0.2, 0.9, 0.5])).tolist()
    [3, 1, 2]
    """
    rank = np.empty(len(uncertainty), dtype=np.int64)
    rank[np.argsort(-uncertainty, kind="stable")] = np.arange(1, len(uncertainty) + 1)
    return rank


def check_alike(learnt: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse lesions that were cut in another way than those a model learnt from."""
    for name in ALIKE:
        if name in learnt and learnt[name] != options.get(name):
            raise ConfigError(
                f"the lesion model learnt from lesions with {name} {learnt[name]!r}, and these have "
                f"{options.get(name)!r}: sample the cases with the same options"
            )


def check_apart(finding: Finding, model: Mapping[str, Any], patient: str | None) -> None:
    """Refuse lesions of cases or patients that the network or the lesion model, by its `about`, has learnt from."""
    cases = np.asarray(finding.arrays["cases"])
    marked = np.asarray(finding.arrays.get("case_trained_on", np.zeros(len(cases), dtype=np.bool_)))
    parameters = finding.provenance.get("parameters", {})
    listed = parameters.get("sampling", parameters).get("trained_on", ())
    pattern = patient or patient_pattern(finding, model)
    check_untrained(cases.tolist(), [*cases[marked].tolist(), *listed], patient=pattern)
    check_not_learnt(cases.tolist(), model.get("cases", ()), patient=pattern)


def fit_finding(lesions: LesionSet, fitted: FittedLesionModel, patients: np.ndarray) -> Finding:
    """The trained model, with what it said of the lesions of held-out patients; `patients` of each lesion."""
    model, held_out = fitted.model, fitted.held_out
    wrong, calibration = lesions.false_positive, model.calibration
    probability = calibration.probability(held_out)
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
        "patients": Estimate(len(np.unique(patients)), about=f"patients with lesions{_by(model.patient)}"),
        **_method_summary(model),
    }
    arrays = model.arrays()
    scored = np.isfinite(held_out)
    if 0 < wrong[scored].sum() < scored.sum():
        voxels = np.asarray(lesions.columns["voxels"])
        summary["area"] = held_out_area(model.method, held_out[scored], wrong[scored], patients[scored], voxels[scored])
    if model.operating is not None:
        summary |= point_estimates(model.operating)
    if fitted.choice is not None:
        summary, arrays = summary | choice_estimates(fitted.choice), arrays | choice_arrays(fitted.choice)
    if calibration.calibrated:
        about = "mean squared error of the probability on held-out patients"
        numbers, by_patient = calibration_parts(probability[scored], wrong[scored], patients[scored], about)
        summary, arrays = summary | numbers, arrays | by_patient
    return Finding(
        name=FIT,
        about="A lesion model, with what it says of held-out patients.",
        summary=summary,
        table=table_of(table),
        arrays=arrays,
        outputs=declared.LESION_FIT,
        provenance={PROVENANCE: model.about()},
    )


def _by(pattern: str | None) -> str:
    return "" if pattern else ", each case being one: no pattern names them"


def _method_summary(model: LesionModel) -> dict[str, Estimate]:
    return {
        "method": Estimate(model.method, about="what gives the probability of a false positive"),
        "calibrated": Estimate(model.calibration.calibrated, about=calibration_note(model.calibration)),
    }


def scores_finding(cut: Finding, model: LesionModel, *, patient: str | None = None, replicates: int = 1000) -> Finding:
    """Every lesion with what the model says of it, and how well that agrees with the truth where it is known.

    Cases, and patients, that the network was trained on or that the model learnt from are refused.
    """
    check_apart(cut, model.about(), patient)
    lesions, owner = LesionSet.of(cut), patient_namer(cut, model.about(), patient)
    scores = model.scores(lesions)
    by_method = uncertainties(scores)
    probability = model.calibration.probability(scores[model.method])
    columns: dict[str, np.ndarray] = {
        **lesions.columns,
        "case": lesions.case,
        "false_positive_probability": probability,
        "uncertainty": by_method[model.method],
        "rank": ranks(scores[model.method]),
        **{method: by_method[method] for method in TRAINED if method in by_method},
    }
    arrays = {key: values for key, values in cut.arrays.items() if key.startswith("case")}
    table = {key: lesions.columns[key] for key in ("voxels", "true_positive", "hd95") if key in lesions.columns}
    owners = None if owner is None else owner(np.asarray(arrays["cases"]))
    summary = case_summary(table, arrays, owners) | _method_summary(model)
    if model.operating is not None:
        columns["kept"] = model.operating.keeps(scores[model.method])
        summary |= kept_estimates(columns["kept"], lesions, (owner or same_case)(lesions.case), model.operating)
    if model.calibration.calibrated:
        summary["expected_false_positives"] = expected_false_positives(probability, lesions)
    shifted, shift_arrays = shift_parts(model.features, patient_features(lesions, (owner or same_case)(lesions.case)))
    summary, arrays = summary | shifted, arrays | shift_arrays
    finding = Finding(
        name=SCORES,
        about="Every lesion with the probability that it is a false positive.",
        summary=summary,
        table=table_of(ordered(columns)),
        arrays=arrays,
        outputs=declared.SCORES,
        provenance={PROVENANCE: model.about()},
    )
    return _with_truth(finding, lesions, model, owner or same_case, replicates)


def _with_truth(
    finding: Finding, lesions: LesionSet, model: LesionModel, owner: PatientNamer, replicates: int
) -> Finding:
    """The Finding with areas, their difference to the best baseline and reliability, where both kinds occur."""
    if not lesions.truth_known or not 0 < lesions.false_positive.sum() < len(lesions):
        return finding
    fold = scored_fold(finding, owner)
    evaluation = evaluate([fold], replicates=replicates)
    numbers = area_estimates(evaluation, model.method) | sensitivity_estimates([fold], model.method)
    summary = {**finding.summary, **numbers}
    arrays = dict(finding.arrays)
    if model.calibration.calibrated:
        assert finding.table is not None
        probability = finding.table["false_positive_probability"].to_numpy()
        owners = owner(lesions.case)
        about = "mean squared error of the probability here"
        numbers, by_patient = calibration_parts(probability, lesions.false_positive, owners, about)
        gap = {"calibration_gap": calibration_gap(probability, lesions.false_positive, owners)}
        summary, arrays = summary | numbers | gap, arrays | by_patient
    return replace(finding, summary=summary, arrays=arrays)


def patient_namer(finding: Finding, model: Mapping[str, Any], patient: str | None) -> PatientNamer | None:
    """What names the patient of each case: the pattern given, else that of the Finding, else that of the lesion model.

    None where there is no pattern. The model's may stem from other data: a case that it does not match is a patient.
    """
    if patient is not None:
        return partial(patients_of, pattern=patient)
    pattern = patient_pattern(finding, model)
    return None if pattern is None else partial(patients_of, pattern=pattern, strict=False)


def patient_pattern(finding: Finding, model: Mapping[str, Any]) -> str | None:
    """The pattern that a Finding notes, else the one that the lesion model does."""
    said = finding.provenance.get("parameters", {})
    pattern: str | None = said.get("patient") or said.get("sampling", {}).get("patient") or model.get("patient")
    return pattern


def same_case(cases: np.ndarray) -> np.ndarray:
    """Each case as a patient of its own."""
    return patients_of(cases, None)


def scored_fold(finding: Finding, owner: PatientNamer | None) -> ScoredFold:
    """The scored lesions of a Finding of `Scores` as one fold to evaluate."""
    if finding.table is None or "true_positive" not in finding.table.column_names:
        raise DataError(f"{finding.name} holds no lesions with known truth: score cases that have true masks")
    table = {name: finding.table[name].to_numpy(zero_copy_only=False) for name in finding.table.column_names}
    by_method = direct_uncertainties(table) | {name: table[name] for name in TRAINED if name in table}
    cases = np.asarray(finding.arrays["cases"])
    owner = owner or same_case
    patients = owner(cases)
    structural = finding.arrays.get("case_structural")
    return ScoredFold(
        {name: np.asarray(by_method[name], dtype=np.float64) for name in METHODS if name in by_method},
        ~np.asarray(table["true_positive"], dtype=np.bool_),
        owner(np.asarray(table["case"], dtype=np.str_)),
        np.asarray(table["voxels"], dtype=np.int64),
        np.unique(patients),
        patient_means(patients, np.asarray(finding.arrays["case_dice"])),
        structural if structural is None else patient_means(patients, np.asarray(structural)),
        *detected(table, finding.arrays),
    )


def evaluation_finding(
    scored: Sequence[Finding],
    *,
    method: str | None = None,
    patient: str | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> Finding:
    """One row per method over the scored cases of each fold: area with interval, distance from `method`, ρ with size.

    As in Tables 1 and 2 of Lambert et al. 2022. Scored cases or patients that the network or the lesion model has
    learnt from are refused.

    scored: Findings of `Scores`, one per fold.
    method: the method that the others are compared with; without it the one that gave the probabilities.
    patient: a pattern that names the patient at the beginning of a case's id; without it the one they were scored with.
    replicates: how often patients are drawn anew.
    seed: of these draws.
    """
    method, folds = method or probable_method(scored), []
    for finding in scored:
        model = finding.provenance.get(PROVENANCE, {})
        check_apart(finding, model, patient)
        folds.append(scored_fold(finding, patient_namer(finding, model, patient)))
    evaluation = evaluate(folds, replicates=replicates, seed=seed)
    numbers, column, curves = retention_parts(folds, method)
    return Finding(
        name=EVALUATION,
        outputs=EVALUATION_OUTPUTS,
        about="How well each method tells false positives from true ones.",
        summary={
            **area_estimates(evaluation, method),
            **_totals(folds),
            **numbers,
            **sensitivity_estimates(folds, method),
        },
        table=table_of(
            method_table(evaluation, method, [f"fold_{number}" for number in range(len(folds))])
            | column
            | sensitivity_columns(folds)
        ),
        arrays={
            **curves,
            "fold_true_positives": np.array([int((~fold.false_positive).sum()) for fold in folds]),
            "fold_false_positives": np.array([int(fold.false_positive.sum()) for fold in folds]),
            "fold_dice": np.array([_value_and_ends(dice_estimate(fold.dice)) for fold in folds]),
            "curve_false_positives": np.linspace(0, 1, GRID),
            "curve_true_positives": np.stack([mean_curve(folds, name) for name in evaluation.area]),
        },
        provenance={"upstream": [finding.digest for finding in scored], "parameters": {"patient": patient}},
    )


def probable_method(scored: Sequence[Finding]) -> str:
    """The method that gave the probabilities, as `fit` chose it; an error where that is not one."""
    known = sorted({str(finding.provenance.get(PROVENANCE, {}).get("method")) for finding in scored})
    if len(known) == 1 and known[0] in METHODS:
        return known[0]
    raise ConfigError(
        f"the lesion models of these scores give their probabilities by {' and '.join(known)}: expected one method of "
        "all, to compare the others with; name it with method"
    )


def _totals(folds: Sequence[ScoredFold]) -> dict[str, Estimate]:
    patients = np.concatenate([fold.patients for fold in folds])
    return {
        "true_positives": Estimate(sum(int((~f.false_positive).sum()) for f in folds), about="over all folds"),
        "false_positives": Estimate(sum(int(f.false_positive.sum()) for f in folds), about="over all folds"),
        "patients": Estimate(len(np.unique(patients)), about="patients examined"),
        "dice": dice_estimate(patient_means(patients, np.concatenate([fold.dice for fold in folds]))),
    }


def _value_and_ends(estimate: Estimate) -> tuple[float, float, float]:
    parts = (estimate.value, estimate.low, estimate.high)
    value, low, high = (np.nan if part is None else float(part) for part in parts)
    return value, low, high


def mean_curve(folds: Sequence[ScoredFold], method: str) -> np.ndarray:
    """The accuracy–confidence curve, averaged over the folds at the same share of false positives; shape (101,)."""
    curves = [accuracy_confidence(fold.uncertainty[method], fold.false_positive) for fold in folds]
    grid = np.linspace(0, 1, GRID)
    return np.asarray(np.mean([np.interp(grid, each.false_positives, each.true_positives) for each in curves], axis=0))


def method_table(evaluation: Evaluation, method: str, folds: Sequence[str]) -> dict[str, np.ndarray]:
    """One row per method: area with interval, that of the chosen method less it, Spearman's ρ, each fold's area."""
    names = list(evaluation.area)
    differences = [evaluation.difference(method, name) for name in names]
    columns: dict[str, Any] = {
        "method": names,
        "area": [evaluation.area[name] for name in names],
        "low": [float(evaluation.interval[name].low) for name in names],
        "high": [float(evaluation.interval[name].high) for name in names],
        "difference": [value for value, _ in differences],
        "difference_low": [float(interval.low) for _, interval in differences],
        "difference_high": [float(interval.high) for _, interval in differences],
        "spearman_with_size": [evaluation.spearman[name] for name in names],
    }
    columns |= {
        f"area_{fold}": [evaluation.per_fold[name][number] for name in names] for number, fold in enumerate(folds)
    }
    return {name: np.asarray(values) for name, values in columns.items()}
