"""Clusters many images: a sample exactly, then each other image joins the nearest cluster."""

from collections.abc import Sequence

import numpy as np

from weakspot.causes.distances import Distances, HeatMapRows, distances_between
from weakspot.causes.tree import Labels
from weakspot.core.stateless_random import draw_keys


def landmarks(ids: Sequence[str], most: int, *, seed: int = 0) -> Labels:
    """The places of at most `most` images, drawn by their ids alone, in order; of all where there are no more.

    >>> landmarks(["a", "b", "c"], 5).tolist(), len(landmarks(["a", "b", "c"], 2))
    ([0, 1, 2], 2)
    """
    if len(ids) <= most:
        return np.arange(len(ids))
    return np.sort(np.argsort(draw_keys(list(ids), seed), kind="stable")[:most])


def nearest_clusters(heat_maps: HeatMapRows, landmark: Labels, labels: np.ndarray) -> Labels:
    """The cluster of every image, given those of the landmarks: that with the nearest mean heat map.

    It is the cluster whose sum of squares a single image raises least, as in Ward's criterion. Landmarks keep theirs.
    """
    means = HeatMapRows.of(cluster_means(heat_maps.select(landmark), labels))
    assigned = np.empty(len(heat_maps), dtype=np.int64)
    assigned[landmark] = labels
    others = np.setdiff1d(np.arange(len(heat_maps)), landmark)
    if len(others):
        assigned[others] = distances_between(heat_maps.select(others), means).argmin(1)
    return assigned


def cluster_means(heat_maps: HeatMapRows, labels: np.ndarray) -> np.ndarray:
    """The mean heat map of every cluster, float32 (clusters, …)."""
    means = np.zeros((int(labels.max()) + 1, heat_maps.size), dtype=np.float32)
    for label in range(len(means)):
        members = heat_maps.select(np.flatnonzero(labels == label))
        step = max(1, (64 << 20) // (8 * heat_maps.size))
        parts = [members.select(np.arange(i, min(i + step, len(members)))) for i in range(0, len(members), step)]
        means[label] = sum(part.values().sum(0) for part in parts) / len(members)
    return means.reshape(len(means), *heat_maps.shape)


def distances_from(heat_maps: HeatMapRows, places: np.ndarray, origin: int) -> Distances:
    """The distances of the heat maps at some places from that of one image."""
    return distances_between(heat_maps.select(places), heat_maps.select(np.array([origin])))[:, 0]
