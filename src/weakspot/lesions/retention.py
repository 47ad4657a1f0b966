"""Error-retention curves: how a result improves as the most uncertain lesions, or patients, are put right by hand.

After Molchanova et al. 2025: the precision of each patient's lesions, averaged over patients, and the mean Dice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate
from weakspot.lesions.metrics_evaluation import ScoredFold
from weakspot.statistics.intervals import LEAST_RESAMPLED

Floats = NDArray[np.float64]
POINTS = 101
RETAINED: Floats = np.linspace(0, 1, POINTS)
"""Shares of the lesions, or patients, that are left as they are, the most certain ones first."""


@dataclass(frozen=True)
class Retention:
    """A curve over `RETAINED`, with those of a random and of the best possible order."""

    curve: Floats
    random: Floats
    ideal: Floats

    @property
    def area(self) -> float:
        """Under the curve: the mean result over all shares that may be put right."""
        return float(np.trapezoid(self.curve, RETAINED))

    @property
    def gain(self) -> float:
        """Where the area lies between that of a random order (0) and the best one (1); NaN where these agree."""
        low, high = (float(np.trapezoid(curve, RETAINED)) for curve in (self.random, self.ideal))
        return (self.area - low) / (high - low) if high > low else float("nan")


def precision_retention(uncertainty: np.ndarray, false_positive: np.ndarray, patient: np.ndarray) -> Retention:
    """TP / (TP + FP) of each patient as the most uncertain lesions are looked at, and false ones dropped; the mean.

    Patients without a true positive are left out: their precision is 0 whatever is looked at first.
    """
    wrong = np.asarray(false_positive, dtype=np.bool_)
    owners = [np.flatnonzero(patient == name) for name in np.unique(patient)]
    owners = [own for own in owners if not wrong[own].all()]
    if not owners:
        raise DataError("no patient has a true positive: there is no precision to retain")
    orders = (np.asarray(uncertainty, dtype=np.float64), np.zeros(len(wrong)), wrong.astype(np.float64))
    curves = [np.mean([_precision(order[own], wrong[own]) for own in owners], axis=0) for order in orders]
    return Retention(*curves)


def _precision(uncertainty: Floats, wrong: NDArray[np.bool_]) -> Floats:
    true = int((~wrong).sum())
    return np.asarray(true / (true + _kept(uncertainty, wrong.astype(np.float64))))


def dice_retention(uncertainty: np.ndarray, dice: np.ndarray) -> Retention:
    """Mean Dice over patients as those of the most uncertain patients become 1; NaN is left out."""
    known = np.isfinite(dice) & np.isfinite(uncertainty)
    if known.sum() < 2:
        raise DataError(f"{int(known.sum())} patients have a Dice: an order takes two or more")
    lost = 1 - np.asarray(dice, dtype=np.float64)[known]
    orders = (np.asarray(uncertainty, dtype=np.float64)[known], np.zeros(len(lost)), lost)
    return Retention(*(1 - _kept(order, lost) / len(lost) for order in orders))


def _kept(uncertainty: Floats, amount: Floats) -> Floats:
    """The amount that the most certain share holds, at each of `RETAINED`; equal ones share what they hold."""
    order = np.argsort(uncertainty, kind="stable")
    values = uncertainty[order]
    last = np.flatnonzero(np.append(np.diff(values) > 0, True))
    shares = np.append(0.0, (last + 1) / len(values))
    held = np.append(0.0, np.cumsum(amount[order])[last])
    return np.asarray(np.interp(RETAINED, shares, held))


def retention_parts(
    folds: Sequence[ScoredFold], method: str
) -> tuple[dict[str, Estimate], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Numbers, a column by method and arrays of the curves, for an evaluation; empty where no lesion is true."""
    wrong, patient = (np.concatenate([getattr(fold, name) for fold in folds]) for name in ("false_positive", "patient"))
    if wrong.all():
        return {}, {}, {}
    methods = list(folds[0].uncertainty)
    curves = {
        name: precision_retention(np.concatenate([fold.uncertainty[name] for fold in folds]), wrong, patient)
        for name in methods
    }
    own, about = curves[method], "mean precision of the patients' lesions as the most uncertain are looked at"
    summary = {
        "precision_retention": Estimate(own.area, about=f"{about}, by {method}"),
        "precision_retention_random": Estimate(
            float(np.trapezoid(own.random, RETAINED)), about="the same in any order"
        ),
        "precision_retention_best": Estimate(float(np.trapezoid(own.ideal, RETAINED)), about="in the best order"),
    }
    arrays = {"retained": RETAINED, "precision_retained": np.stack([curve.curve for curve in curves.values()])}
    arrays |= _dice_parts(folds, summary)
    return summary, {"precision_retention": np.array([curve.area for curve in curves.values()])}, arrays


def _dice_parts(folds: Sequence[ScoredFold], summary: dict[str, Estimate]) -> dict[str, np.ndarray]:
    """The curve of Dice by the structural uncertainty of patients; its numbers go into the summary."""
    if any(fold.structural is None for fold in folds):
        return {}
    uncertainty = np.concatenate([np.asarray(fold.structural) for fold in folds])
    dice = np.concatenate([fold.dice for fold in folds])
    if (np.isfinite(dice) & np.isfinite(uncertainty)).sum() < LEAST_RESAMPLED:
        return {}
    curve = dice_retention(uncertainty, dice)
    about = "mean Dice as the patients of largest structural uncertainty are put right, over all shares"
    summary |= {
        "dice_retention": Estimate(curve.area, about=about),
        "dice_retention_random": Estimate(float(np.trapezoid(curve.random, RETAINED)), about="the same in any order"),
        "dice_retention_best": Estimate(float(np.trapezoid(curve.ideal, RETAINED)), about="in the best order"),
    }
    return {"dice_retained": np.stack([curve.curve, curve.random, curve.ideal])}
