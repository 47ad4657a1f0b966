"""Which method to take: all compared on patients that they were not trained on, the simplest of the best is taken."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weakspot.lesions.methods import LEVEL
from weakspot.lesions.metrics_evaluation import (
    UNKNOWN,
    Evaluation,
    Floats,
    ScoredFold,
    evaluate,
    resampled_patients,
    weighted_areas,
)
from weakspot.statistics.intervals import Interval, percentile_interval

REPLICATES = 1000
SEED = 0


@dataclass(frozen=True)
class MethodChoice:
    """The method that was taken, all methods compared, and what the choice itself flatters.

    evaluation: of every method, on held-out patients.
    area: what the whole procedure reaches on patients that had no part in the choice; the best of several methods
        looks better than it is on the patients it was chosen on. None with too few patients.
    """

    method: str
    evaluation: Evaluation
    area: float | None
    interval: Interval

    @property
    def best_untrained(self) -> str:
        """The best of the scores that need no training."""
        return max((name for name in self.evaluation.area if not LEVEL[name]), key=self.evaluation.area.__getitem__)


def choose_method(held_out: Mapping[str, Floats], wrong: NDArray[np.bool_], patients: np.ndarray) -> MethodChoice:
    """The simplest method whose area is less than one standard error below the best (Breiman et al. 1984).

    The standard error is that of the difference over resampled patients. With too few patients to resample, methods
    cannot be compared, and the best score that needs no training is taken. The area is corrected for the choice by
    choosing anew on every resample and measuring on the patients left out (Tsamardinos et al. 2018).

    held_out: of each method the scores of all lesions, each by a model that was trained without its patient; NaN where
        there is none.
    """
    known = np.all([np.isfinite(values) for values in held_out.values()], axis=0)
    scores = {name: values[known] for name, values in held_out.items()}
    names = np.unique(patients[known])
    voxels = np.ones(int(known.sum()), dtype=np.int64)
    fold = ScoredFold(scores, wrong[known], patients[known], voxels, names, np.full(len(names), np.nan))
    evaluation = evaluate([fold], replicates=REPLICATES, seed=SEED)
    if evaluation.few:
        untrained = [name for name in scores if not LEVEL[name]]
        return MethodChoice(max(untrained, key=evaluation.area.__getitem__), evaluation, None, UNKNOWN)
    methods = list(scores)
    areas = np.stack([evaluation.replicates[name] for name in methods], 1)
    errors = np.nanstd(areas[:, :, None] - areas[:, None, :], axis=0)
    level = np.array([LEVEL[name] for name in methods])
    chosen = methods[_simplest_of_best(np.array([evaluation.area[name] for name in methods]), errors, level)]
    value, interval = _corrected(fold, methods, areas, errors, level)
    return MethodChoice(chosen, evaluation, value, interval)


def _simplest_of_best(areas: Floats, errors: Floats, level: NDArray[np.int64]) -> int:
    best = int(np.nanargmax(areas))
    as_good = np.flatnonzero(areas[best] - areas <= errors[best])
    return int(max(as_good, key=lambda method: (-level[method], areas[method])))


def _corrected(
    fold: ScoredFold, methods: list[str], areas: Floats, errors: Floats, level: NDArray[np.int64]
) -> tuple[float | None, Interval]:
    """Mean and interval, over resamples, of the area of what each chose on the patients that it left out."""
    left_out = resampled_patients(fold, len(areas), [SEED, 0]) == 0
    outside = np.stack([weighted_areas(fold.uncertainty[name], fold.false_positive, left_out) for name in methods], 1)
    usable = np.flatnonzero(np.isfinite(areas).all(1) & np.isfinite(outside).all(1))
    if len(usable) < len(areas) // 2:
        return None, UNKNOWN
    found = np.array([outside[draw, _simplest_of_best(areas[draw], errors, level)] for draw in usable])
    return float(found.mean()), percentile_interval(found)
