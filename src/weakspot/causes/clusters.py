"""Root-cause clusters: error-inducing images whose heat maps are alike. `knees.py` chooses how many clusters.

Everything here is a function of distances: no model, no images.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weakspot.causes.distances import Floats, square
from weakspot.causes.knees import Bend, chosen_clusters
from weakspot.causes.tree import (
    Labels,
    Linkage,
    cluster_scores,
    cut_tree,
    dense_clusters,
    distances_of_distances,
    merge_tree,
)
from weakspot.core.errors import ConfigError

Compare = Literal["heat maps", "distances"]
"""What two images are compared by: their heat maps, or, as the released code does, their distances to all images."""
BestBy = Literal["relative", "raw"]
"""Layers are compared by scores in units of their mean distance, or, as in HUDD, by scores as they are."""
ALONE = 0
"""The number of no cluster: of images whose heat map is like no other's."""


@dataclass(frozen=True)
class ClusterRecipe:
    """How distances become clusters.

    linkage: how clusters are merged.
    compare: by "heat maps", or by "distances" to all images.
    bend: where the knee is sought, in the "score" or in its "gradient".
    clusters: how many, instead of the knee.
    most_clusters: the largest number tried.
    best_by: what the best layer has least of: its score "relative" to its mean distance, or its "raw" score.
    """

    linkage: Linkage = "ward"
    compare: Compare = "heat maps"
    bend: Bend = "score"
    clusters: int | None = None
    most_clusters: int = 150
    best_by: BestBy = "relative"

    def __post_init__(self) -> None:
        if self.most_clusters < 2 or (self.clusters is not None and self.clusters < 1):
            raise ConfigError(
                f"expected most_clusters ≥ 2 and clusters ≥ 1 or none, got {self.most_clusters} and {self.clusters}"
            )
        if self.linkage == "density" and self.clusters is not None:
            raise ConfigError(
                f"linkage: density finds how many clusters there are: leave clusters: {self.clusters} out"
            )


@dataclass(frozen=True)
class LayerClusters:
    """The clusters that one layer's distances give."""

    labels: Labels
    """The cluster of each image, from 0 in the order of their first images."""
    counts: Labels
    """The numbers of clusters tried."""
    scores: Floats
    """The score at each of them."""
    score: float
    """The layer's: that of its clusters, in units of the mean distance of two images, so that layers compare."""
    raw_score: float = float("nan")
    """The same as it is: the lowest wins in HUDD, where the layer with the smallest relevance has an advantage."""

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return int(self.labels.max(initial=-1)) + 1


def cluster_layer(condensed: np.ndarray, recipe: ClusterRecipe | None = None) -> LayerClusters:
    """Cluster the images of one layer: tree, score of every number of clusters, knee, cut [fahmy2021].

    condensed: the distances of the images' heat maps.

    >>> points = np.array([0.0, 0.1, 5.0, 5.1, 9.0, 9.1])
    >>> condensed = np.abs(points[:, None] - points)[np.triu_indices(6, 1)]
    >>> cluster_layer(condensed, ClusterRecipe(clusters=3)).labels.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    recipe = recipe or ClusterRecipe()
    full = square(condensed)
    compared, scored = distances_of_distances(full) if recipe.compare == "distances" else (condensed, full)
    if not len(condensed):
        return LayerClusters(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), float("nan"))
    if recipe.linkage == "density":
        labels = dense_clusters(square(compared))
        none = np.zeros(0, dtype=np.int64)
        return LayerClusters(labels, none, np.zeros(0), layer_score(full, labels))
    tree = merge_tree(compared, linkage=recipe.linkage)
    counts, scores = cluster_scores(scored, tree, most=recipe.most_clusters)
    clusters = recipe.clusters or (chosen_clusters(counts, scores, bend=recipe.bend) if len(counts) else 1)
    labels = cut_tree(tree, min(clusters, len(full)))
    return LayerClusters(labels, counts, scores, layer_score(full, labels), raw_score(full, labels))


def layer_score(distances: np.ndarray, labels: Labels) -> float:
    """How tight the clusters of a layer are: Σ_C |C|/N · (mean distance within C) / k ÷ (mean distance of any two).

    The score of [fahmy2021] in units of the layer's mean distance: without, the layer with the smallest numbers wins.
    The lower, the better; not a number where all distances are 0.
    """
    pairs = len(labels) * (len(labels) - 1)
    mean = float(distances.sum()) / pairs if pairs else 0.0
    return float("nan") if mean == 0 else raw_score(distances, labels) / mean


def raw_score(distances: np.ndarray, labels: Labels) -> float:
    """Σ_C |C|/N · (mean distance within C) / k, the score by which [fahmy2021] takes the best layer.

    >>> raw_score(np.array([[0.0, 3.0, 8.0], [3.0, 0.0, 8.0], [8.0, 8.0, 0.0]]), np.array([0, 0, 1]))
    1.0
    """
    groups = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    within = sum(distances[np.ix_(group, group)].sum() / (len(group) - 1) for group in groups if len(group) > 1)
    return float(within / (len(labels) * len(groups)))


def best_layer(layers: Sequence[LayerClusters], by: BestBy = "relative") -> int:
    """The layer with the lowest score, relative or raw, the first of equal ones.

    Never one whose clusters are all of one image, or whose images are all alike, unless there is no other.
    """
    useful = [len(layer.labels) > layer.clusters and not np.isnan(layer.score) for layer in layers]
    own = [layer.score if by == "relative" else layer.raw_score for layer in layers]
    scores = [score if use else np.inf for score, use in zip(own, useful, strict=True)]
    return int(np.argmin(scores))


@dataclass(frozen=True)
class RootCauseCluster:
    """Error-inducing images with similar heat maps: perhaps one cause.

    members: places of the images, the medoid first, then by distance from it.
    distances: from the medoid.
    spread: mean distance of two members in units of the mean distance of any two images: 0 if all are equal, 1 if none
        are nearer than any.
    stability: how far the cluster comes back when the images are resampled [hennig2007], from 0 to 1.
    """

    members: Labels
    distances: Floats
    spread: float
    stability: float = float("nan")

    @property
    def medoid(self) -> int:
        """The member with the smallest distances to the others."""
        return int(self.members[0])

    def __len__(self) -> int:
        return len(self.members)


def root_cause_clusters(
    distances: np.ndarray, labels: np.ndarray, stability: np.ndarray | None = None
) -> list[RootCauseCluster]:
    """The clusters of two images and more, the largest first; `stability` has one entry per label.

    >>> points = np.array([0.0, 1.0, 3.0, 50.0])
    >>> [cluster] = root_cause_clusters(np.abs(points[:, None] - points), np.array([0, 0, 0, 1]))
    >>> cluster.members.tolist(), cluster.distances.tolist()
    ([1, 0, 2], [0.0, 1.0, 2.0])
    """
    pairs = len(labels) * (len(labels) - 1)
    mean = distances.sum() / pairs if pairs else 0.0
    clusters = []
    for label in range(int(np.max(labels, initial=-1)) + 1):
        members = np.flatnonzero(labels == label)
        if len(members) > 1:
            stable = float("nan") if stability is None else float(stability[label])
            clusters.append(_cluster(distances[np.ix_(members, members)], members, mean, stable))
    return sorted(clusters, key=lambda cluster: (-len(cluster), int(cluster.members.min())))


def _cluster(within: Floats, members: NDArray[np.int64], mean: float, stability: float) -> RootCauseCluster:
    count, sums = len(members), within.sum(1)
    medoid = int(sums.argmin())
    order = np.argsort(within[medoid], kind="stable")
    order = np.concatenate([[medoid], order[order != medoid]])  # first also where another lies on the same spot
    spread = float(sums.sum() / (count * (count - 1) * mean)) if mean else 0.0
    return RootCauseCluster(members[order], within[medoid][order], spread, stability)


def cluster_numbers(clusters: Sequence[RootCauseCluster], images: int) -> Labels:
    """For each image the number of its cluster, from 1 for the largest; `ALONE` for the others.

    >>> cluster_numbers([RootCauseCluster(np.array([2, 0]), np.zeros(2), 0.0)], 3).tolist()
    [1, 0, 1]
    """
    numbers = np.full(images, ALONE, dtype=np.int64)
    for number, cluster in enumerate(clusters, start=1):
        numbers[cluster.members] = number
    return numbers
