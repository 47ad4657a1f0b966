"""Does a cluster come back when the images are resampled? Clusterwise stability [hennig2007]."""

from collections.abc import Callable

import numpy as np

from weakspot.causes.distances import Floats
from weakspot.causes.tree import Labels

Again = Callable[[np.ndarray], np.ndarray]
"""From the distances of some images, (images, images), to their clusters."""


def cluster_stability(
    distances: np.ndarray, labels: np.ndarray, again: Again, *, replicates: int = 50, seed: int = 0
) -> Floats:
    """How far each cluster comes back in bootstrap samples, (clusters,): mean of the largest Jaccard similarity.

    For every sample of N images with replacement, each image used once however often it was drawn, `again` clusters
    the images; a cluster C is compared with the new ones by |C ∩ D| / |C ∪ D| among the images drawn, and the most
    similar counts. Below 0.6 a cluster should not be trusted, from 0.75 on it is stable [hennig2007].
    """
    rng = np.random.default_rng(seed)
    clusters = int(labels.max()) + 1
    total, drawn = np.zeros(clusters), np.zeros(clusters)
    for _ in range(replicates):
        chosen = np.unique(rng.integers(len(labels), size=len(labels)))
        present = np.bincount(labels[chosen], minlength=clusters) > 0
        total += best_jaccard(labels[chosen], again(distances[np.ix_(chosen, chosen)]), clusters)
        drawn += present
    return np.asarray(np.divide(total, drawn, out=np.full(clusters, np.nan), where=drawn > 0))


def best_jaccard(labels: np.ndarray, others: np.ndarray, clusters: int) -> Floats:
    """For each of the clusters the Jaccard similarity to the most similar one of `others`; 0 where it has no image.

    >>> best_jaccard(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), 2).round(3).tolist()
    [0.667, 0.5]
    """
    common = np.zeros((clusters, int(others.max()) + 1))
    np.add.at(common, (labels, others), 1)
    union = common.sum(1)[:, None] + common.sum(0) - common
    return np.asarray((common / np.maximum(union, 1)).max(1))


def again_with(labels: Labels, cut: Callable[[np.ndarray, int], np.ndarray]) -> Again:
    """Cluster again into as many clusters as `labels` has, or as many as there are images."""
    clusters = int(labels.max()) + 1
    return lambda distances: cut(distances, min(clusters, len(distances)))
