"""From which score on a detector flags an input as weak: rules that use training data only (Zhong et al. 2021)."""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import DataError
from weakspot.robustness.metrics_promises import OperatingPoint

Bools = NDArray[np.bool_]
NO_LEVELS = np.zeros(0)
"""Only a promised risk tries levels, and a detector of weak inputs promises none."""


def quantile_threshold(scores: ArrayLike, weak: ArrayLike) -> float:
    """The score that flags as large a share of the training inputs as are weak.

    The quantile of the scores at 1 − (share of weak inputs): the rule of the authors' code, here for scores that are
    highest for the weakest inputs (for Simpson's λ take −λ).

    >>> quantile_threshold([4, 1, 3, 2], [True, True, False, False])
    2.5
    """
    values, truth = _checked(scores, weak)
    return float(np.quantile(values, 1 - truth.mean()))


def lowest_weak_threshold(scores: ArrayLike, weak: ArrayLike) -> float:
    """The lowest score of a weak training input, so that no weak one is missed: the rule as the paper states it.

    One weak input whose looks all get the same wrong prediction scores as low as a strong one; the rule then flags
    every input, and warns.

    >>> lowest_weak_threshold([0.9, 0.1, 0.8, 0.2], [True, False, True, False])
    0.8
    """
    values, truth = _checked(scores, weak)
    lowest = float(values[truth].min(initial=np.inf))
    if lowest <= values.min():
        warnings.warn(
            "a weak training input scores as low as any strong one, so the paper's rule flags every input as weak: "
            "use the quantile rule",
            stacklevel=2,
        )
    return lowest


def best_f1_threshold(scores: ArrayLike, weak: ArrayLike) -> float:
    """The score that maximises F1 on the training inputs; inputs that score at least as much are flagged.

    >>> best_f1_threshold([0.9, 0.1, 0.8, 0.2], [True, False, True, False])
    0.8
    """
    values, truth = _checked(scores, weak)
    order = np.argsort(-values, kind="stable")
    flagged = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
    true_positives = np.cumsum(truth[order])[flagged]
    f1 = 2 * true_positives / (flagged + 1 + truth.sum())
    return float(values[order][flagged[np.argmax(f1)]])


def chosen_threshold(
    scores: NDArray[np.float64],
    weak: Bools,
    rule: Callable[[ArrayLike, ArrayLike], float],
    point: OperatingPoint | None = None,
    groups: NDArray[np.str_] | None = None,
) -> float:
    """The score at an operating point where one is asked for, else by the rule.

    >>> scores, weak = np.arange(40.0), np.arange(40) >= 20
    >>> chosen_threshold(scores, weak, best_f1_threshold, OperatingPoint("recall", 0.8))
    23.0
    """
    return rule(scores, weak) if point is None else point.threshold(scores, weak, NO_LEVELS, groups)


RULES = {"quantile": quantile_threshold, "paper": lowest_weak_threshold, "f1": best_f1_threshold}
"""The rules of the black-box detector by their names."""


def _checked(scores: ArrayLike, weak: ArrayLike) -> tuple[NDArray[np.float64], Bools]:
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(weak, dtype=np.bool_)
    if values.shape != truth.shape or values.ndim != 1 or not values.size:
        raise DataError(f"expected one score per input, got {values.shape} scores for {truth.shape} inputs")
    return values, truth
