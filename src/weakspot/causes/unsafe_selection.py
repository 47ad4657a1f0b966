"""Which unlabelled images to choose for labelling: those whose heat maps are near those of errors.

Steps 3 and 4 of HUDD (Fahmy et al. 2021, `fahmy2021`).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from weakspot.causes.clusters import ALONE
from weakspot.causes.distances import Distances, HeatMapRows, distances_between
from weakspot.causes.tree import Labels


def cluster_quotas(sizes: Sequence[int] | np.ndarray, budget: int) -> Labels:
    """How many images each cluster may choose: the budget in proportion to the clusters' sizes, by largest remainders.

    >>> cluster_quotas([6, 3, 1], 5).tolist()
    [3, 2, 0]
    """
    exact = np.asarray(sizes, dtype=np.float64) * budget / max(1, int(np.sum(sizes)))
    quotas = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - quotas), kind="stable")
    quotas[order[: budget - int(quotas.sum())]] += 1
    return quotas


def unsafe_set(
    distances: np.ndarray,
    clusters: np.ndarray,
    sizes: Sequence[int] | np.ndarray,
    *,
    budget: int,
    limit: float | np.ndarray,
) -> Labels:
    """The places of the images to label: greedily by distance, in proportion to the sizes of the clusters [fahmy2021].

    distances, clusters: how far each image is from the nearest error-inducing image, and that one's cluster, from 1 on.
    sizes: of the clusters.
    limit: images that are further away are not chosen; one for all, or one for each cluster.

    Where a cluster has fewer images than its quota, the nearest images of other clusters fill it.

    >>> unsafe_set(np.array([0.3, 0.1, 0.2, 9.0]), np.array([1, 1, 2, 2]), [5, 5], budget=2, limit=1.0).tolist()
    [1, 2]
    """
    near = np.flatnonzero(distances <= limit_of(clusters, limit))
    near = near[np.argsort(distances[near], kind="stable")]
    quotas = cluster_quotas(sizes, min(budget, len(near)))
    rank = np.zeros(len(near), dtype=np.int64)
    for cluster in range(1, len(quotas) + 1):
        in_cluster = clusters[near] == cluster
        rank[in_cluster] = np.arange(in_cluster.sum())
    within = rank < quotas[clusters[near] - 1]
    spare = np.flatnonzero(~within)[: max(0, min(budget, len(near)) - int(within.sum()))]
    return np.asarray(near[np.sort(np.concatenate([np.flatnonzero(within), spare]))])


def nearest_members(heat_maps: HeatMapRows, members: HeatMapRows) -> tuple[Labels, Distances]:
    """For each heat map the place of the nearest of `members`, and its distance; in memory that does not grow."""
    nearest = np.empty(len(heat_maps), dtype=np.int64)
    far = np.empty(len(heat_maps), dtype=np.float32)
    step = max(1, (64 << 20) // max(1, 4 * len(members)))
    for start in range(0, len(heat_maps), step):
        some = np.arange(start, min(start + step, len(heat_maps)))
        between = distances_between(heat_maps.select(some), members)
        nearest[some] = between.argmin(1)
        far[some] = between[np.arange(len(some)), nearest[some]]
    return nearest, far


def limit_of(clusters: np.ndarray, limit: float | np.ndarray) -> float | np.ndarray:
    """The distance limit of each image: of its cluster, numbered from 1 on, where each has its own."""
    return limit[clusters - 1] if isinstance(limit, np.ndarray) else limit


def cluster_limits(distances: np.ndarray, clusters: np.ndarray, quantile: float, count: int) -> np.ndarray:
    """The `distance_limit` of each of so many clusters by its own members alone; that of all where it has but one.

    >>> points = np.array([0.0, 1.0, 10.0, 15.0])
    >>> cluster_limits(np.abs(points[:, None] - points), np.array([1, 1, 2, 2]), 1.0, 2).tolist()
    [1.0, 5.0]
    """
    every = distance_limit(distances, clusters, quantile)
    limits = np.full(count, every)
    for cluster in range(1, count + 1):
        members = np.flatnonzero(clusters == cluster)
        if len(members) > 1:
            limits[cluster - 1] = distance_limit(distances[np.ix_(members, members)], clusters[members], quantile)
    return limits


def distance_limit(distances: np.ndarray, clusters: np.ndarray, quantile: float) -> float:
    """How near is near enough: the quantile of the errors' distances to the nearest other member of their cluster.

    distances: of error-inducing images, (images, images).
    clusters: theirs; those that are alone do not count.

    >>> points = np.array([0.0, 1.0, 3.0, 50.0])
    >>> distance_limit(np.abs(points[:, None] - points), np.array([1, 1, 1, 0]), 1.0)
    2.0
    """
    nearest = []
    for cluster in np.unique(clusters[clusters != ALONE]):
        members = np.flatnonzero(clusters == cluster)
        if len(members) > 1:
            within = distances[np.ix_(members, members)] + np.diag(np.full(len(members), np.inf))
            nearest.append(within.min(1))
    return float(np.quantile(np.concatenate(nearest), quantile)) if nearest else 0.0


def one_class_clusters(clusters: np.ndarray, classes: Sequence[Any] | np.ndarray) -> list[int]:
    """The clusters of which two images or more were chosen, all of one class: half of a mistake, to learn from.

    clusters, classes: of the chosen images.

    >>> one_class_clusters(np.array([1, 1, 2, 2, 3]), ["cat", "cat", "cat", "dog", "dog"])
    [1]
    """
    counts_of = {
        int(cluster): Counter(np.asarray(classes)[clusters == cluster].tolist()) for cluster in np.unique(clusters)
    }
    return [cluster for cluster, counts in counts_of.items() if len(counts) == 1 and counts.total() > 1]
