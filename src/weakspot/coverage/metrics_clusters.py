"""Clusters of one-dimensional values, their validity indices, and the choice of how many clusters there are.

Everything is exact and works on sorted values: the best k-means is a dynamic programme over runs of sorted values, and
the distances behind a silhouette are sums of gaps between neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import ConfigError, DataError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Clustering = Literal["kmeans", "quantiles"]
Index = Literal["silhouette", "calinski_harabasz", "davies_bouldin"]


@dataclass(frozen=True)
class Clusters:
    """Clusters of one-dimensional values, from the lowest to the highest: adjoining intervals."""

    borders: Floats
    """Between neighbouring clusters, one less than there are clusters; a value on a border belongs above it."""
    centres: Floats
    """The mean of each cluster's values."""
    inertia: float
    """Σ (value − centre of its cluster)²."""
    scores: Mapping[int, float]
    """The validity index of every number of clusters that was tried; empty where the values allow no choice."""

    @property
    def count(self) -> int:
        """How many clusters."""
        return len(self.centres)

    def labels(self, values: ArrayLike) -> Integers:
        """The number of each value's cluster, from 0; of the shape of the values."""
        return np.searchsorted(self.borders, np.asarray(values), side="right")


def optimal_clusters_1d(
    values: ArrayLike,
    candidates: Sequence[int] = (2, 3, 4),
    *,
    clustering: Clustering = "kmeans",
    index: Index = "silhouette",
) -> Clusters:
    """The clusters, among candidate numbers of them, with the best validity index (Gerasimou et al. 2020, algorithm 2).

    k-means here is the optimum, the partition with the least Σ (value − centre of its cluster)², found by dynamic
    programming (Wang and Song 2011, `wang2011`); quantiles give clusters of equally many values. Of equal scores the
    smallest number wins. Numbers above that of different values are left out; values that are all equal, or that no
    candidate fits, are one cluster each.

    values: shape (samples,).
    candidates: numbers of clusters to try, each 2 or more.
    clustering: "kmeans" or "quantiles".
    index: "silhouette", "calinski_harabasz" or "davies_bouldin".

    >>> found = optimal_clusters_1d([0.0, 0.1, 0.2, 5.0, 5.1, 5.3])
    >>> found.count, found.borders.round(3).tolist(), {k: round(score, 3) for k, score in found.scores.items()}
    (2, [2.617], {2: 0.967, 3: 0.681, 4: 0.278})
    """
    check_clustering(candidates, clustering, index)
    ordered = _sorted(values)
    different = ordered[np.concatenate([[True], np.diff(ordered) > 0])]
    tried = sorted({k for k in candidates if k <= len(different)})
    if not tried:
        return _described(ordered, (different[1:] + different[:-1]) / 2, {})
    all_borders = _CLUSTERINGS[clustering](ordered, tried)
    scores = {k: _INDICES[index](ordered, np.searchsorted(cuts, ordered, "right")) for k, cuts in all_borders.items()}
    best = max(scores, key=lambda k: (scores[k], -k))
    return _described(ordered, all_borders[best], scores)


def check_clustering(candidates: Sequence[int], clustering: str, index: str) -> None:
    """Refuse what `optimal_clusters_1d` does not know."""
    if not len(candidates) or min(candidates) < 2 or max(candidates) > 255:
        raise ConfigError(f"the numbers of clusters to try are {list(candidates)}: expected one or more, 2 to 255 each")
    if clustering not in get_args(Clustering):
        raise ConfigError(f"clustering {clustering!r} is not known: choose one of {', '.join(get_args(Clustering))}")
    if index not in get_args(Index):
        raise ConfigError(f"index {index!r} is not known: choose one of {', '.join(get_args(Index))}")


def _sorted(values: ArrayLike) -> Floats:
    ordered = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if not ordered.size or not np.isfinite(ordered[[0, -1]]).all():
        what = "none" if not ordered.size else f"{int((~np.isfinite(ordered)).sum())} that are infinite or not a number"
        raise DataError(f"clusters need one or more finite values, got {what}: look at the layer's activations")
    return ordered


def _described(ordered: Floats, borders: Floats, scores: Mapping[int, float]) -> Clusters:
    parts = np.split(ordered, np.searchsorted(ordered, borders, side="left"))
    inertia = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    return Clusters(borders, np.array([part.mean() for part in parts]), inertia, scores)


def _quantiles(ordered: Floats, counts: Sequence[int]) -> dict[int, Floats]:
    """Borders that leave equally many values on either side; where ties make two equal, there are fewer clusters."""
    by_count = {}
    for count in counts:
        borders = np.unique(ordered[(np.arange(1, count) * len(ordered)) // count])
        borders = borders[borders > ordered[0]]
        by_count[len(borders) + 1] = borders
    return {count: borders for count, borders in by_count.items() if count > 1} or {
        2: ordered[ordered > ordered[0]][:1]
    }


def _kmeans(ordered: Floats, counts: Sequence[int]) -> dict[int, Floats]:
    """Borders of the optimal k-means of sorted values, for several numbers of clusters from one programme.

    best[k][j] = min over i < j of best[k−1][i] + cost(i, j), where cost(i, j) is the inertia of values i … j−1, from
    prefix sums. Neighbouring means lie on either side of the border half-way between them.
    """
    cost = _RunCost(ordered)
    ends = np.arange(1, len(ordered) + 1)
    best, cuts = [cost(np.zeros_like(ends), ends)], []
    for _ in range(max(counts) - 2):
        filled, last_cut = _next_layer(best[-1], cost)
        best.append(filled)
        cuts.append(last_cut)
    return {count: _midpoints(ordered, _trace_back(count, best, cuts, cost)) for count in counts}


class _RunCost:
    """Inertia of runs of sorted values, from prefix sums of the centred values and their squares."""

    def __init__(self, ordered: Floats):
        centred = ordered - ordered.mean()
        self._sums = np.concatenate([[0.0], np.cumsum(centred)])
        self._squares = np.concatenate([[0.0], np.cumsum(centred**2)])

    def __call__(self, start: Integers, stop: Integers) -> Floats:
        """Of values start … stop − 1, element by element."""
        total = self._sums[stop] - self._sums[start]
        inertia: Floats = self._squares[stop] - self._squares[start] - total * total / np.maximum(stop - start, 1)
        return np.maximum(inertia, 0.0, out=inertia)


def _next_layer(before: Floats, cost: _RunCost) -> tuple[Floats, Integers]:
    """From the best inertia of the first 1 … n values in k−1 clusters to that in k, with where the last one begins.

    The best place of the last cut never moves left as values are added. So places are filled in ever finer steps, each
    searched between its neighbours' cuts only: O(n) work in each of log n steps.
    """
    count = len(before)
    best, cut = np.zeros(count), np.zeros(count, dtype=np.int64)
    step = 1 << count.bit_length()
    while step > 1:
        half = step // 2
        ends = np.arange(half - 1, count, step)
        low = np.where(ends >= half, cut[np.maximum(ends - half, 0)], 0)
        high = np.where(ends + half < count, cut[np.minimum(ends + half, count - 1)], ends)
        best[ends], cut[ends] = _best_cuts(before, cost, ends, low, np.minimum(high, ends))
        step = half
    return best, cut


def _best_cuts(
    before: Floats, cost: _RunCost, ends: Integers, low: Integers, high: Integers
) -> tuple[Floats, Integers]:
    """For each end, the first cut between low and high with the least inertia; a cut of 0 leaves a cluster empty."""
    widths = high - low + 1
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    cuts = np.arange(widths.sum()) - np.repeat(starts - low, widths)
    inertia = np.where(cuts > 0, before[cuts - 1], 0.0) + cost(cuts, np.repeat(ends + 1, widths))
    least = np.minimum.reduceat(inertia, starts)
    hits = np.flatnonzero(inertia == np.repeat(least, widths))
    return least, cuts[hits[np.searchsorted(hits, starts)]]


def _trace_back(count: int, best: Sequence[Floats], cuts: Sequence[Integers], cost: _RunCost) -> list[int]:
    """Where the clusters of the best partition of all values begin, but the first."""
    total = len(best[0])
    places = np.arange(1, total)
    last = int(places[np.argmin(best[count - 2][:-1] + cost(places, np.full_like(places, total)))])
    begins = [last]
    for layer in range(count - 3, -1, -1):
        begins.append(int(cuts[layer][begins[-1] - 1]))
    return sorted({begin for begin in begins if begin > 0})


def _midpoints(ordered: Floats, begins: Sequence[int]) -> Floats:
    means = np.array([part.mean() for part in np.split(ordered, begins)])
    return np.asarray((means[1:] + means[:-1]) / 2)


def silhouette_1d(values: ArrayLike, labels: ArrayLike) -> float:
    """Mean silhouette of labelled values, exactly, whatever the labels are (Rousseeuw 1987, `rousseeuw1987`).

    S = mean of (B − A)/max(A, B), with A the mean distance to the other values of the same label and B the least mean
    distance to the values of another label. A value that is alone with its label scores 0, and so does one with
    A = B = 0. The sum of distances to a label's values is a running sum of gap × number of values on the far side:
    terms of one sign, so nothing cancels and equal values are at distance 0 exactly. O(n log n + n · labels).

    values: shape (samples,).
    labels: whole numbers, shape (samples,), two different ones or more.

    >>> round(silhouette_1d([0, 1, 10, 11], [0, 0, 1, 1]), 4)  # A is 1; B is 10.5, 9.5, 9.5 and 10.5
    0.8997
    """
    ordered, label, sizes = _labelled(values, labels)
    gaps = np.diff(ordered)
    within, other = np.zeros(len(ordered)), np.full(len(ordered), np.inf)
    for number, size in enumerate(sizes):
        mine = label == number
        distance = _distance_sums(gaps, mine, int(size))
        within[mine] = distance[mine] / max(size - 1, 1)
        np.minimum(other, distance / size, out=other, where=~mine)
    largest = np.maximum(within, other)
    counted = (sizes[label] > 1) & (largest > 0)
    score = np.divide(other - within, largest, out=np.zeros_like(within), where=counted)
    return float(score.mean())


def _distance_sums(gaps: Floats, mine: NDArray[np.bool_], size: int) -> Floats:
    """For each of the sorted values, the sum of its distances to those that are `mine`."""
    seen = np.cumsum(mine)[:-1]
    distance = np.zeros(len(mine))
    np.cumsum(gaps * seen, out=distance[1:])
    distance[:-1] += np.cumsum((gaps * (size - seen))[::-1])[::-1]
    return distance


def calinski_harabasz_1d(values: ArrayLike, labels: ArrayLike) -> float:
    """Between-cluster over within-cluster variance (Caliński and Harabasz 1974, `calinski1974`); larger is better.

    [Σ_c n_c (mean_c − mean)² / (k−1)] / [Σ (value − its mean_c)² / (n−k)]; infinite where no cluster has any spread.

    >>> round(calinski_harabasz_1d([0, 1, 10, 11], [0, 0, 1, 1]), 4)  # 100/1 over 1/2
    200.0
    """
    ordered, label, sizes = _labelled(values, labels)
    means = np.bincount(label, ordered) / sizes
    within = float(((ordered - means[label]) ** 2).sum())
    between = float((sizes * (means - ordered.mean()) ** 2).sum())
    freedom = len(ordered) - len(sizes)
    if within == 0 or freedom == 0:
        return float("inf")
    return between * freedom / (within * (len(sizes) - 1))


def davies_bouldin_1d(values: ArrayLike, labels: ArrayLike) -> float:
    """Mean over clusters of the worst ratio of spreads to separation (Davies and Bouldin 1979, `davies1979`).

    mean_i max_{j≠i} (s_i + s_j)/|mean_i − mean_j|, s the mean distance of a cluster's values to their mean; smaller is
    better.

    >>> round(davies_bouldin_1d([0, 1, 10, 11], [0, 0, 1, 1]), 4)  # (1/2 + 1/2)/10
    0.1
    """
    ordered, label, sizes = _labelled(values, labels)
    means = np.bincount(label, ordered) / sizes
    spread = np.bincount(label, np.abs(ordered - means[label])) / sizes
    apart = np.abs(means[:, None] - means)
    together = spread[:, None] + spread
    ratio = np.divide(together, apart, out=np.where(together > 0, np.inf, 0.0), where=apart > 0)
    np.fill_diagonal(ratio, 0.0)
    return float(ratio.max(axis=1).mean())


def _labelled(values: ArrayLike, labels: ArrayLike) -> tuple[Floats, Integers, Integers]:
    """The values in order, their labels as 0, 1, … alongside, and how many values each label has."""
    numbers, classes = np.asarray(values, dtype=np.float64), np.asarray(labels)
    if numbers.ndim != 1 or numbers.shape != classes.shape or not np.isfinite(numbers).all():
        raise DataError(
            f"expected finite values and as many labels, got shapes {numbers.shape} and {classes.shape}: "
            "give one label per value"
        )
    if not (np.diff(numbers) >= 0).all():
        order = np.argsort(numbers, kind="stable")
        numbers, classes = numbers[order], classes[order]
    _, label, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        raise DataError(f"an index of clusters compares two labels or more, got {len(sizes)}")
    return numbers, label.reshape(-1), sizes


_CLUSTERINGS: dict[str, Callable[[Floats, Sequence[int]], dict[int, Floats]]] = {
    "kmeans": _kmeans,
    "quantiles": _quantiles,
}
_INDICES: dict[str, Callable[[Floats, Integers], float]] = {
    "silhouette": silhouette_1d,
    "calinski_harabasz": calinski_harabasz_1d,
    "davies_bouldin": lambda values, labels: -davies_bouldin_1d(values, labels),
}
"""The larger the better."""
