"""From which score on an input is called weak: rules that look at training data only."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import DataError

Bools = NDArray[np.bool_]


def quantile_threshold(scores: ArrayLike, weak: ArrayLike) -> float:
    """The score that calls as large a share of the training inputs weak as there are weak ones.

    The quantile of the scores at 1 − (share of weak inputs): the rule of the authors' code, here for scores of which
    the highest are the weakest (for Simpson's λ take −λ).

    >>> quantile_threshold([4, 1, 3, 2], [True, True, False, False])
    2.5
    """
    values, truth = _checked(scores, weak)
    return float(np.quantile(values, 1 - truth.mean()))


def lowest_weak_threshold(scores: ArrayLike, weak: ArrayLike) -> float:
    """The lowest score of a weak training input, so that no weak one is missed: the rule as the paper states it.

    One weak input that looks as strong as any (always answered with the same wrong class) makes it call everything
    weak; it then warns.

    >>> lowest_weak_threshold([0.9, 0.1, 0.8, 0.2], [True, False, True, False])
    0.8
    """
    values, truth = _checked(scores, weak)
    lowest = float(values[truth].min(initial=np.inf))
    if lowest <= values.min():
        warnings.warn(
            "a weak training input scores as low as any strong one, so the paper's threshold calls every input weak: "
            "use the quantile rule",
            stacklevel=2,
        )
    return lowest


def best_f1_threshold(scores: ArrayLike, weak: ArrayLike) -> float:
    """The score that maximises F1 on the training inputs; inputs that score at least as much are called weak.

    >>> best_f1_threshold([0.9, 0.1, 0.8, 0.2], [True, False, True, False])
    0.8
    """
    values, truth = _checked(scores, weak)
    order = np.argsort(-values, kind="stable")
    called = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
    found = np.cumsum(truth[order])[called]
    f1 = 2 * found / (called + 1 + truth.sum())
    return float(values[order][called[np.argmax(f1)]])


RULES = {"quantile": quantile_threshold, "paper": lowest_weak_threshold, "f1": best_f1_threshold}
"""The threshold rules of the black-box detector by their names."""


def _checked(scores: ArrayLike, weak: ArrayLike) -> tuple[NDArray[np.float64], Bools]:
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(weak, dtype=np.bool_)
    if values.shape != truth.shape or values.ndim != 1 or not values.size:
        raise DataError(f"expected one score per input, got {values.shape} scores for {truth.shape} inputs")
    return values, truth
