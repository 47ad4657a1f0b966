"""All methods side by side over the folds of a study, as in Tables 1 and 2 of Lambert et al. 2022."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.lesions import outputs as declared
from weakspot.lesions.evaluation import Fold, accuracy_confidence, evaluate
from weakspot.lesions.model import PROVENANCE, Method
from weakspot.lesions.telling import EVALUATION, area_estimates, check_apart, dice_estimate, method_table, scored_fold

GRID = 101
"""Places along the false positives at which curves are read off."""


def evaluation_finding(
    scored: Sequence[Finding],
    *,
    method: Method = "gcn_classification",
    patient: str | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> Finding:
    """One row per method over the scored cases of each fold: area with interval, distance from `method`, ρ with size.

    scored: Findings of `Scores`, one per fold. patient: a pattern that names the patient at the beginning of a case's
    id. replicates: how often patients are drawn anew. Scored cases or patients that the network or the lesion model has
    learnt from are refused.
    """
    for finding in scored:
        check_apart(finding, finding.provenance.get(PROVENANCE, {}), patient)
    folds = [scored_fold(finding, patient) for finding in scored]
    told = evaluate(folds, replicates=replicates, seed=seed)
    return Finding(
        name=EVALUATION,
        outputs=declared.EVALUATION,
        about="How well each method tells false positives from true ones.",
        summary={**area_estimates(told, method), **_totals(folds)},
        table=table_of(method_table(told, method, [f"fold_{number}" for number in range(len(folds))])),
        arrays={
            "fold_true_positives": np.array([int((~fold.false_positive).sum()) for fold in folds]),
            "fold_false_positives": np.array([int(fold.false_positive.sum()) for fold in folds]),
            "fold_dice": np.array([_interval(dice_estimate(fold.dice)) for fold in folds]),
            "curve_false_positives": np.linspace(0, 1, GRID),
            "curve_true_positives": np.stack([mean_curve(folds, name) for name in told.area]),
        },
        provenance={"upstream": [finding.digest for finding in scored], "parameters": {"patient": patient}},
    )


def _totals(folds: Sequence[Fold]) -> dict[str, Estimate]:
    patients = np.concatenate([fold.patients for fold in folds])
    return {
        "true_positives": Estimate(sum(int((~f.false_positive).sum()) for f in folds), about="over all folds"),
        "false_positives": Estimate(sum(int(f.false_positive.sum()) for f in folds), about="over all folds"),
        "patients": Estimate(len(np.unique(patients)), about="patients examined"),
        "dice": dice_estimate(np.concatenate([fold.dice for fold in folds])),
    }


def _interval(told: Estimate) -> tuple[float, float, float]:
    value, low, high = (np.nan if part is None else float(part) for part in (told.value, told.low, told.high))
    return value, low, high


def mean_curve(folds: Sequence[Fold], method: str) -> np.ndarray:
    """The accuracy–confidence curve, averaged over the folds at the same share of false positives; shape (101,)."""
    curves = [accuracy_confidence(fold.uncertainty[method], fold.false_positive) for fold in folds]
    grid = np.linspace(0, 1, GRID)
    return np.asarray(np.mean([np.interp(grid, own.false_positives, own.true_positives) for own in curves], axis=0))
