"""Surprise adequacy: how unlike the training inputs of its predicted class an input looks to the network.

After Kim, Feldt and Yoo 2019 (`kim2019`). Plain functions on traces, the values of some neurons for each input, which
may lie on disk: they are read class by class and block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import ConfigError, DataError
from weakspot.coverage.metrics_clusters import Floats, Integers
from weakspot.coverage.metrics_nearest import nearest_in_class, positions

LEAST_VARIANCE = 1e-5
"""Neurons that vary less over the training inputs are left out of densities."""
_FLAT = 1e-9
"""Share of a class's variance along an input below which the others do not vary in that direction."""
_BLOCK = 4096
_TERMS = 1 << 22
"""Kernels that are evaluated at once."""


def distance_surprise(
    train_traces: ArrayLike,
    train_predicted: ArrayLike,
    traces: ArrayLike,
    predicted: ArrayLike,
    *,
    leave_out: ArrayLike | None = None,
) -> Floats:
    """Distance-based surprise (DSA): how much nearer an input lies to its own class than that class to another.

    With x_a the training trace nearest to x among those of the same predicted class, and x_b the one nearest to x_a
    among those of other classes, DSA(x) = ‖x − x_a‖ / ‖x_a − x_b‖ (Kim et al. 2019, eq. 4–6). Exact. Infinite for a
    class that no training input is predicted as, and where only x_a = x_b; 1 where x = x_a = x_b. Of training traces
    equally near the first counts.

    train_traces: (training inputs, neurons); may be memory-mapped.
    train_predicted: their predicted classes.
    traces: (inputs, neurons).
    predicted: their predicted classes.
    leave_out: for inputs that are training inputs themselves: their rows in `train_traces`, −1 for the others; an
        input is not compared with itself.

    >>> distance_surprise([[0.0], [4.0]], [0, 1], [[1.0], [5.0]], [0, 1]).tolist()
    [0.25, 0.25]
    """
    train, classes, asked, own_classes = _checked(train_traces, train_predicted, traces, predicted)
    if len(np.unique(classes)) < 2:
        raise DataError(
            f"distance-based surprise compares classes, and all training inputs are predicted as class {classes[0]}: "
            "use likelihood-based surprise, or give training inputs of several classes"
        )
    left_out = _left_out(leave_out, len(asked))
    scores = np.empty(len(asked))
    for start in range(0, len(asked), 2 * _BLOCK):
        block = slice(start, start + 2 * _BLOCK)
        scores[block] = _distance_scores(train, classes, asked[block], own_classes[block], left_out[block])
    return scores


def _distance_scores(
    train: NDArray[np.floating],
    classes: Integers,
    traces: NDArray[np.floating],
    predicted: Integers,
    left_out: Integers,
) -> Floats:
    to_own = nearest_in_class(train, classes, traces, predicted, same=True, leave_out=left_out)
    has_class = to_own.row >= 0
    chosen, which = np.unique(to_own.row[has_class], return_inverse=True)
    to_other = nearest_in_class(train, classes, train[chosen], classes[chosen], same=False).distance[which]
    scores = np.full(len(traces), np.inf)
    alike = np.where(to_own.distance[has_class] == 0, 1.0, np.inf)
    scores[has_class] = np.divide(to_own.distance[has_class], to_other, out=alike, where=to_other > 0)
    return scores


@dataclass(frozen=True)
class Density:
    """A Gaussian kernel density of the training traces of one class, in the directions in which they vary."""

    inputs: int
    """Training traces of the class."""
    directions: int
    """Directions in which they vary, of as many as there are neurons; 0 where there is no density."""
    neurons: int
    """Neurons taken into account."""

    @property
    def singular(self) -> bool:
        """Whether the traces vary in fewer directions than there are neurons."""
        return self.directions < self.neurons


@dataclass(frozen=True)
class LikelihoodSurprise:
    """The surprise of each input, and the densities it was measured against."""

    scores: Floats
    densities: Mapping[int, Density]
    """By class; 0 where there is one for all."""
    neurons: Integers
    """Those that vary enough to be taken into account."""


def likelihood_surprise(
    train_traces: ArrayLike,
    train_predicted: ArrayLike | None,
    traces: ArrayLike,
    predicted: ArrayLike | None,
    *,
    leave_out: ArrayLike | None = None,
) -> Floats:
    """Likelihood-based surprise (LSA): how unlikely an input's trace is among those of its predicted class.

    LSA(x) = −log f(x), f(x) = 1/n Σ_i N(x; x_i, h² Σ): a Gaussian kernel density of the n training traces of the same
    predicted class, with their covariance Σ and Scott's factor h = n^(−1/(d+4)) (Kim et al. 2019, eq. 1–3). Neurons
    whose variance over all training traces is below 1e-5 are left out. Without classes (None), as for a regression,
    there is one density for all. Computed as logarithms throughout, so that far inputs stay finite.

    Where the traces of a class do not vary in some direction, Σ is singular; the density is then taken in the d
    directions in which they do vary, and what lies across is ignored, as it is for the neurons left out. A class with
    no such direction (one training input, or none) has no density: infinite. `likelihood_surprise_of` says which.

    train_traces: (training inputs, neurons); may be memory-mapped.
    train_predicted: their predicted classes, or None.
    traces: (inputs, neurons).
    predicted: their predicted classes, or None.
    leave_out: for inputs that are training inputs themselves: their rows in `train_traces`, −1 for the others; an
        input's density is that of the others, without its kernel and without its share in the covariance.

    >>> likelihood_surprise([[0.0], [2.0]], None, [[1.0], [9.0]], None).round(3).tolist()
    [1.457, 17.984]
    """
    return likelihood_surprise_of(train_traces, train_predicted, traces, predicted, leave_out=leave_out).scores


def likelihood_surprise_of(
    train_traces: ArrayLike,
    train_predicted: ArrayLike | None,
    traces: ArrayLike,
    predicted: ArrayLike | None,
    *,
    leave_out: ArrayLike | None = None,
) -> LikelihoodSurprise:
    """`likelihood_surprise`, with what was made of each class's covariance."""
    train, classes, asked, own_classes = _checked(train_traces, train_predicted, traces, predicted)
    neurons = np.flatnonzero(_variance(train) >= LEAST_VARIANCE)
    if not len(neurons):
        raise DataError(
            f"no neuron varies by {LEAST_VARIANCE} or more over the training inputs: there is no density; "
            "choose another layer"
        )
    left_out = _left_out(leave_out, len(asked))
    scores, densities = np.full(len(asked), np.inf), {}
    for number in np.unique(np.concatenate([classes, own_classes])).tolist():
        members, asking = np.flatnonzero(classes == number), np.flatnonzero(own_classes == number)
        kernels = _Kernels(np.asarray(train[members], dtype=np.float64)[:, neurons])
        densities[number] = Density(len(members), kernels.directions, len(neurons))
        for start in range(0, len(asking), _BLOCK):
            block = asking[start : start + _BLOCK]
            traces_of_block = np.asarray(asked[block], dtype=np.float64)[:, neurons]
            scores[block] = kernels.surprise(traces_of_block, *positions(left_out[block], members))
    return LikelihoodSurprise(scores, densities, neurons)


def _variance(rows: NDArray[np.floating]) -> Floats:
    """Of each column, in two passes over blocks."""
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(rows), _BLOCK)]
    mean = sum(rows[block].sum(0, dtype=np.float64) for block in blocks) / len(rows)
    return np.asarray(sum(((rows[block] - mean) ** 2).sum(0) for block in blocks) / len(rows))


class _Kernels:
    """Gaussian kernels around the rows, in coordinates in which every kernel is the standard normal."""

    def __init__(self, rows: Floats):
        self._count = len(rows)
        self.directions = 0
        if self._count < 2:
            return
        self._mean = rows.mean(0)
        _, lengths, axes = np.linalg.svd(rows - self._mean, full_matrices=False)
        varied = lengths > max(rows.shape) * np.finfo(np.float64).eps * lengths.max(initial=0.0)
        self.directions = int(varied.sum())
        self._widths = _scott(self._count, self.directions) * lengths[varied] / np.sqrt(self._count - 1)
        self._to_normal = axes[varied].T / self._widths
        self._rows = (rows - self._mean) @ self._to_normal
        self._squares = np.einsum("ij,ij->i", self._rows, self._rows)
        self._log_scale = np.log(self._widths).sum()

    def surprise(self, traces: Floats, left_out: Integers, kernel: Integers) -> Floats:
        """−log density of each trace, infinite where there is none; each of those `left_out` is a row: `kernel`."""
        scores = np.full(len(traces), np.inf)
        if not self.directions:
            return scores
        others = np.setdiff1d(np.arange(len(traces)), left_out)
        for block in _blocks(others, _TERMS // self._count):
            scores[block] = self._of_points((traces[block] - self._mean) @ self._to_normal)
        for block in _blocks(np.arange(len(kernel)), _TERMS // self._count):
            scores[left_out[block]] = self._of_rows(kernel[block])
        return scores

    def _of_points(self, points: Floats) -> Floats:
        squared = np.einsum("ij,ij->i", points, points)[:, None] + self._squares - 2 * points @ self._rows.T
        log_scale = self._log_scale + self.directions / 2 * np.log(2 * np.pi)
        return np.asarray(log_scale + np.log(self._count) - _log_sum(squared))

    def _of_rows(self, which: Integers) -> Floats:
        """Of rows themselves, each against the density of all the others: mean, covariance and factor without it.

        Without row z the kernels' covariance I becomes a·(I − g·zzᵀ), with g = h²n/(n − 1)²: its inverse is
        (I + g/r·zzᵀ)/a with r = 1 − g‖z‖², and its determinant a^d·r. Where r = 0 the others do not vary along z.
        """
        if self._count < 3:
            return np.full(len(which), np.inf)
        rest = 1 - self._share * self._squares[which]
        flat = rest < _FLAT
        scores = np.empty(len(which))
        for inside, score in ((~flat, self._within), (flat, self._across)):
            scores[inside] = score(which[inside], rest[inside])
        return scores

    @property
    def _share(self) -> float:
        return _scott(self._count, self.directions) ** 2 * self._count / (self._count - 1) ** 2

    def _within(self, which: Integers, rest: Floats) -> Floats:
        """Of rows without which the others vary in as many directions."""
        own, dots = self._squares[which, None], self._rows[which] @ self._rows.T
        squared = own + self._squares - 2 * dots + self._share / rest[:, None] * (own - dots) ** 2
        return self._without(which, squared, self.directions, np.log(rest) / 2)

    def _across(self, which: Integers, rest: Floats) -> Floats:
        """Of rows without which the others lie in a plane: the density is that in the plane, of the nearest point."""
        rows = self._rows[which]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        normal = rows / lengths / self._widths
        size = np.linalg.norm(normal, axis=1, keepdims=True)
        step = normal / self._widths / size**2
        dots = rows @ self._rows.T
        away = lengths - dots / lengths
        aside = np.einsum("ij,ij->i", step, rows)[:, None] - step @ self._rows.T
        squared = lengths**2 + self._squares - 2 * dots - 2 * away * aside
        squared += away**2 * np.einsum("ij,ij->i", step, step)[:, None]
        return self._without(which, squared, self.directions - 1, np.log(size[:, 0]))

    def _without(self, which: Integers, squared: Floats, directions: int, log_volume: Floats) -> Floats:
        if not directions:
            return np.full(len(which), np.inf)
        count = self._count
        ratio = _scott(count - 1, directions) / _scott(count, self.directions)
        spread = ratio**2 * (count - 1) / (count - 2)
        squared[np.arange(len(which)), which] = np.inf
        log_scale = self._log_scale + directions / 2 * np.log(2 * np.pi * spread) + log_volume
        return np.asarray(log_scale + np.log(count - 1) - _log_sum(squared / spread))


def _scott(count: int, directions: int) -> float:
    """Scott's factor: the width of a kernel as a share of the traces' standard deviation."""
    return float(count ** (-1.0 / (directions + 4)))


def _blocks(places: Integers, size: int) -> Iterator[Integers]:
    yield from (places[start : start + max(1, size)] for start in range(0, len(places), max(1, size)))


def _log_sum(squared: Floats) -> Floats:
    """log Σ_i exp(−squared_i/2) of each row, from the largest term on; `squared` is used up."""
    np.maximum(squared, 0.0, out=squared)
    nearest = squared.min(1)
    np.exp((nearest[:, None] - squared) / 2, out=squared)
    return np.asarray(np.log(squared.sum(1)) - nearest / 2)


def surprise_buckets(scores: ArrayLike, *, upper: float, buckets: int, lower: float = 0.0) -> Integers:
    """The bucket of each surprise, 0 … buckets − 1; −1 where it lies in none.

    Bucket i covers (lower + i·w, lower + (i+1)·w] with w = (upper − lower)/buckets (Kim et al. 2019, eq. 7).

    >>> surprise_buckets([0.0, 0.1, 1.0, 1.01, 2.0, 2.1], upper=2, buckets=2).tolist()
    [-1, 0, 0, 1, 1, -1]
    """
    if buckets < 1 or not upper > lower:
        raise ConfigError(f"expected buckets ≥ 1 and upper > lower, got {buckets}, {lower} and {upper}")
    values = np.asarray(scores, dtype=np.float64)
    inside = (values > lower) & (values <= upper)
    bucket = np.ceil((np.where(inside, values, upper) - lower) / (upper - lower) * buckets).astype(np.int64) - 1
    return np.where(inside, np.clip(bucket, 0, buckets - 1), -1)


def _checked(
    train_traces: ArrayLike, train_predicted: ArrayLike | None, traces: ArrayLike, predicted: ArrayLike | None
) -> tuple[NDArray[np.floating], Integers, NDArray[np.floating], Integers]:
    """As arrays, memory-mapped ones untouched; one class for all where there are none."""
    train, asked = np.asanyarray(train_traces), np.asanyarray(traces)
    if train.ndim != 2 or asked.ndim != 2 or train.shape[1] != asked.shape[1] or not len(train):
        raise DataError(
            f"expected traces of the same neurons, shape (inputs, neurons), got {train.shape} for training and "
            f"{asked.shape}: take both from the same layers"
        )
    classes = np.zeros(len(train)) if train_predicted is None else np.asarray(train_predicted)
    own_classes = np.zeros(len(asked)) if predicted is None else np.asarray(predicted)
    if (
        (train_predicted is None) != (predicted is None)
        or classes.shape != train.shape[:1]
        or own_classes.shape != asked.shape[:1]
    ):
        raise DataError(
            f"expected one predicted class per trace on both sides, or none on either, got {classes.shape} and "
            f"{own_classes.shape} for {len(train)} and {len(asked)} traces"
        )
    return train, classes.astype(np.int64), asked, own_classes.astype(np.int64)


def _left_out(rows: ArrayLike | None, count: int) -> Integers:
    return np.full(count, -1) if rows is None else np.asarray(rows, dtype=np.int64)
