"""How good predictions are: plain functions of labels, predictions and confidences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.statistics import Interval, bootstrap_interval, mean_interval, wilson_interval
from weakspot.statistics.clustered import grouped_mean_interval, grouped_share_interval

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
_REPLICATES = 500
_LEAST_INPUTS = 20
_ALIKE = 1e-12
_OPEN = (np.nan, np.nan)


class ClassScores(NamedTuple):
    """Each class that occurs among the labels, with how well it is predicted; shape (classes,)."""

    number: Counts
    inputs: Counts
    accuracy: Floats
    """Share of its inputs that are predicted as it (recall)."""
    low: Floats
    high: Floats
    precision: Floats
    """Share of what is predicted as it that is of it; NaN where nothing is."""


def class_scores(target: ArrayLike, prediction: ArrayLike, belongs: ArrayLike | None = None) -> ClassScores:
    """The classes in the order of their numbers, with Wilson's 95 % intervals (Wilson 1927, `wilson1927`).

    target: class numbers, shape (inputs,).
    prediction: the same as predicted.
    belongs: what each input belongs to, such as a film, where some belong together; intervals then go by it.

    >>> class_scores([0, 0, 1, 1], [0, 1, 1, 1]).accuracy.tolist()
    [0.5, 1.0]
    """
    true, said = np.asarray(target, dtype=np.int64), np.asarray(prediction, dtype=np.int64)
    count = int(max(true.max(initial=-1), said.max(initial=-1))) + 1
    inputs, right, predicted = (np.bincount(of, minlength=count) for of in (true, true[true == said], said))
    number = np.flatnonzero(inputs)
    low, high = wilson_interval(right[number], inputs[number])
    if belongs is not None:
        films = np.asarray(belongs)
        of_class = [grouped_share_interval((true == said)[true == one], films[true == one]) for one in number]
        low, high = np.transpose(of_class) if of_class else (low, high)
    with np.errstate(invalid="ignore"):
        precision = right[number] / predicted[number]
    return ClassScores(number, inputs[number], right[number] / inputs[number], low, high, precision)


class ClassOverlaps(NamedTuple):
    """Each class that occurs in a target or a prediction, with its IoU over all positions; shape (classes,)."""

    number: Counts
    inputs: Counts
    """In whose target or prediction it occurs."""
    iou: Floats
    low: Floats
    """Of the interval; NaN for a class of fewer than 20 inputs."""
    high: Floats


def class_overlaps(
    both: ArrayLike, either: ArrayLike, belongs: ArrayLike | None = None, *, confidence: float = 0.95
) -> ClassOverlaps:
    """IoU = Σ_i both_i / Σ_i either_i of each class (Everingham et al. 2010, `everingham2010`), with its interval.

    Inputs vary, not positions: the interval is that of the mean of IoU + n·(both_i − IoU·either_i)/Σ either over the n
    inputs in which the class occurs, a ratio made linear. Where these do not vary it is Wilson's of as many inputs.

    both, either: positions of target and prediction, and of target or prediction; shape (inputs, classes).
    belongs: what each input belongs to, such as a film, where some belong together; intervals then go by it.
    confidence: of the intervals.

    >>> class_overlaps([[2, 0], [1, 0]], [[4, 0], [2, 0]]).iou.tolist()
    [0.5]
    """
    shared, all_of = np.asarray(both, dtype=np.float64), np.asarray(either, dtype=np.float64)
    number = np.flatnonzero(all_of.sum(0))
    iou = shared.sum(0)[number] / all_of.sum(0)[number]
    inputs = (all_of[:, number] > 0).sum(0)
    ends = [
        _overlap_interval(shared[:, one], all_of[:, one], belongs, confidence) if count >= _LEAST_INPUTS else _OPEN
        for one, count in zip(number, inputs, strict=True)
    ]
    low, high = np.reshape(ends, (-1, 2)).T
    return ClassOverlaps(number, inputs, iou, low, high)


def _overlap_interval(both: Floats, either: Floats, belongs: ArrayLike | None, confidence: float) -> tuple[float, ...]:
    there = either > 0
    iou, count = both.sum() / either.sum(), int(there.sum())
    moved = iou + count * (both - iou * either)[there] / either.sum()
    groups = None if belongs is None else np.asarray(belongs)[there]
    if np.ptp(moved) < _ALIKE:
        alone = count if groups is None else len(np.unique(groups))
        ends = wilson_interval(iou * alone, alone, confidence=confidence)
    elif groups is None:
        ends = mean_interval(moved, confidence=confidence)
    else:
        ends = grouped_mean_interval(moved, groups, confidence=confidence)
    return tuple(float(np.clip(end, 0, 1)) for end in ends)


def surely_worst(scores: ClassScores) -> Counts:
    """The places of the classes, the worst first: by the upper end of the interval, then by number.

    Sorted by the share alone, a class of two inputs would come first where both are predicted incorrectly.

    >>> two_of_two, many = ([0, 0], [1, 1]), ([1] * 100, [1] * 40 + [0] * 60)
    >>> scores = class_scores(*(a + b for a, b in zip(two_of_two, many)))
    >>> scores.number[surely_worst(scores)].tolist()
    [1, 0]
    """
    return np.lexsort((scores.number, scores.high))


class Confusions(NamedTuple):
    """Which class is taken for which, the most frequent first; shape (confusions,)."""

    target: Counts
    prediction: Counts
    inputs: Counts


def confusions(target: ArrayLike, prediction: ArrayLike) -> Confusions:
    """Every pair of a label and another prediction that occurs, with how often.

    >>> [part.tolist() for part in confusions([0, 0, 1, 2], [1, 1, 1, 1])]
    [[0, 2], [1, 1], [2, 1]]
    """
    true, said = np.asarray(target, dtype=np.int64), np.asarray(prediction, dtype=np.int64)
    wrong = true != said
    pairs, counts = np.unique(np.stack([true[wrong], said[wrong]], axis=1), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -counts))
    return Confusions(pairs[order, 0], pairs[order, 1], counts[order])


def r_squared(prediction: ArrayLike, target: ArrayLike) -> float:
    """1 − Σ(ŷ − y)² / Σ(y − ȳ)², the mean over the outputs: 1 is perfect, 0 what the mean of the labels gets.

    An output whose labels are all equal has none and is left out; NaN where none is left.

    >>> r_squared([[1.0], [3.0]], [[1.0], [2.0]])
    -1.0
    """
    said, true = (np.asarray(values, dtype=np.float64) for values in (prediction, target))
    spread = ((true - true.mean(0)) ** 2).sum(0)
    left = ((said - true) ** 2).sum(0)
    return float(np.mean(1 - left[spread > 0] / spread[spread > 0])) if (spread > 0).any() else float("nan")


def r_squared_interval(prediction: ArrayLike, target: ArrayLike, *, seed: int = 0) -> Interval:
    """Percentile interval of R² over resampled inputs (Efron 1979, `efron1979`)."""
    said, true = (np.asarray(values, dtype=np.float64) for values in (prediction, target))
    return bootstrap_interval(
        lambda drawn: r_squared(said[drawn], true[drawn]), len(true), seed=seed, replicates=_REPLICATES
    )


def macro_f1(target: ArrayLike, prediction: ArrayLike) -> tuple[float, Floats]:
    """F1 of each label, 2·TP / (2·TP + FP + FN), and its mean; both arrays are boolean (inputs, labels).

    A label that neither occurs nor is predicted has none and is left out of the mean.

    >>> macro_f1([[True, False], [True, True]], [[True, False], [False, True]])
    (0.8333333333333333, array([0.66666667, 1.        ]))
    """
    true, said = np.asarray(target, dtype=bool), np.asarray(prediction, dtype=bool)
    with np.errstate(invalid="ignore"):
        each = 2 * (true & said).sum(0) / (true.sum(0) + said.sum(0))
    return (float(np.nanmean(each)) if np.isfinite(each).any() else float("nan")), each
