"""Combinations of the important neurons' clusters: which ones inputs reach, and what would fill the holes.

After DeepImportance (Gerasimou et al. 2020, `gerasimou2020`). Plain functions on arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weakspot.core.errors import DataError
from weakspot.coverage.metrics_clusters import Clustering, Clusters, Floats, Index, Integers, optimal_clusters_1d

MOST_LISTED = 100_000
"""Targets up to which combinations that neither test nor training inputs reach are listed too."""
Numbers = NDArray[np.uint8]
"""Cluster numbers: one row per combination, one column per neuron."""


@dataclass(frozen=True)
class CombinationCoverage:
    """Which combinations of clusters some inputs reach."""

    clusters: tuple[Clusters, ...]
    """Of each important neuron."""
    combinations: Numbers
    """The combinations that are reached, in order; shape (reached, neurons)."""
    counts: Integers
    """How many inputs reach each of them."""
    combination_of: Integers
    """Each input's row in `combinations`; shape (inputs,)."""

    @property
    def targets(self) -> int:
        """How many combinations there are: the product of the numbers of clusters (eq. 5)."""
        return prod(clusters.count for clusters in self.clusters)

    @property
    def coverage(self) -> float:
        """Importance-driven coverage: the share of the combinations that are reached (eq. 6)."""
        return len(self.combinations) / self.targets


def importance_driven_coverage(
    train_values: ArrayLike,
    test_values: ArrayLike,
    *,
    candidates: Sequence[int] = (2, 3, 4),
    clustering: Clustering = "kmeans",
    index: Index = "silhouette",
    drop_zeros: bool = False,
) -> CombinationCoverage:
    """Share of the combinations of the important neurons' clusters that test inputs reach (Gerasimou et al. 2020).

    IDC = |{combinations reached}| / Π over neurons of their number of clusters. Each neuron's training values are cut
    into clusters of their own (see `optimal_clusters_1d`); a test value belongs to the cluster with the nearest centre.

    train_values: the important neurons' values for the training inputs, shape (inputs, neurons).
    test_values: the same for the inputs whose coverage is asked for.
    candidates: numbers of clusters to choose from, for each neuron by `index`.
    clustering: "kmeans" or "quantiles".
    index: "silhouette", "calinski_harabasz" or "davies_bouldin".
    drop_zeros: whether to leave exact zeros out before clustering, as the released code does for dense layers.

    >>> train = [[0, 0], [1, 9], [9, 1], [10, 10]]
    >>> importance_driven_coverage(train, [[0, 1], [1, 0], [8, 8]], candidates=[2]).coverage  # low-low and high-high
    0.5
    """
    train, test = np.asarray(train_values), np.asarray(test_values)
    if train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1] or not train.size:
        raise DataError(
            f"expected training and test values of the same neurons, shape (inputs, neurons), got {train.shape} "
            f"and {test.shape}"
        )
    clusters = [
        clusters_of(column, candidates, clustering=clustering, index=index, drop_zeros=drop_zeros) for column in train.T
    ]
    return reached_combinations(test, clusters)


def clusters_of(
    values: NDArray[np.floating],
    candidates: Sequence[int] = (2, 3, 4),
    *,
    clustering: Clustering = "kmeans",
    index: Index = "silhouette",
    drop_zeros: bool = False,
) -> Clusters:
    """The clusters of one neuron's training values; a neuron that is always 0 keeps its zeros."""
    kept = values[values != 0] if drop_zeros and values.any() else values
    return optimal_clusters_1d(kept, candidates, clustering=clustering, index=index)


def cluster_numbers(values: NDArray[np.floating], clusters: Sequence[Clusters]) -> Numbers:
    """The cluster of each value: shape (inputs, neurons), uint8."""
    numbers = np.empty(values.shape, dtype=np.uint8)
    for neuron, of_neuron in enumerate(clusters):
        numbers[:, neuron] = of_neuron.labels(values[:, neuron])
    return numbers


def reached_combinations(values: NDArray[np.floating], clusters: Sequence[Clusters]) -> CombinationCoverage:
    """Which combinations of these clusters the inputs reach; values of shape (inputs, neurons)."""
    combinations, which, counts = np.unique(
        cluster_numbers(values, clusters), axis=0, return_inverse=True, return_counts=True
    )
    return CombinationCoverage(tuple(clusters), combinations, counts, which.reshape(-1))


@dataclass(frozen=True)
class EnoughNeurons:
    """How many of the most important neurons to combine, and why."""

    count: int
    reason: str


def enough_neurons(
    relevance: NDArray[np.floating], cluster_counts: Iterable[int], inputs: int, *, share: float, inputs_each: int
) -> EnoughNeurons:
    """The fewest neurons that carry a share of the positive relevance, as far as the training inputs reach.

    m is the smallest number with Σ_{i≤m} R_i ≥ share · Σ R_i over the positive relevances in falling order, but no more
    than leave `inputs_each` training inputs per combination: Π_{i≤m} k_i ≤ inputs / inputs_each. Beyond that even the
    training inputs could not show most of the combinations, and no test set of that kind could reach them.

    relevance: of all neurons, the most important first.
    cluster_counts: k_i in the same order; taken only as far as needed.
    inputs: the number of training inputs.
    share: of the positive relevance, in (0, 1].
    inputs_each: training inputs per combination.

    >>> enough_neurons(np.array([4.0, 3.0, 2.0, 1.0]), [2, 2, 2, 2], 1000, share=0.8, inputs_each=10)
    EnoughNeurons(count=3, reason='the 3 most important carry 90 % of the positive relevance (80 % wanted)')
    >>> enough_neurons(np.array([4.0, 3.0, 2.0, 1.0]), [2, 2, 2, 2], 50, share=0.8, inputs_each=10).count
    2
    """
    carried = np.cumsum(np.maximum(relevance, 0))
    if carried[-1] <= 0:
        return EnoughNeurons(1, "no neuron has positive relevance, so the least bad one stands alone")
    carried = carried / carried[-1]
    wanted = int(np.searchsorted(carried, share - 1e-12)) + 1
    combinations, count = 1, 0
    for cluster_count in islice(cluster_counts, wanted):
        combinations *= cluster_count
        if count and combinations * inputs_each > inputs:
            break
        count += 1
    reason = f"the {count} most important carry {100 * carried[count - 1]:.0f} % of the positive relevance "
    reason += f"({100 * share:.0f} % wanted)"
    if count < wanted:
        reason += f"; one more would leave fewer than {inputs_each} of {inputs} training inputs per combination"
    return EnoughNeurons(count, reason)


@dataclass(frozen=True)
class Holes:
    """Combinations that test inputs do not reach, those that most training inputs show first."""

    combinations: Numbers
    """Shape (holes, neurons)."""
    training: Integers
    """How many training inputs show each."""


def missing_combinations(reached: CombinationCoverage, shown: CombinationCoverage, most: int) -> Holes:
    """Combinations that test inputs (`reached`) do not reach; first those that training inputs (`shown`) do, by number.

    Then come those that training inputs do not show either, the likeliest first if the neurons were independent; these
    only where there are no more than `MOST_LISTED` combinations in all.
    """
    missed = ~_contained(shown.combinations, reached.combinations)
    order = np.lexsort([-shown.counts[missed]])
    combinations, training = shown.combinations[missed][order][:most], shown.counts[missed][order][:most]
    if len(combinations) < most and reached.targets <= MOST_LISTED:
        nowhere = _never_shown(reached, shown)[: most - len(combinations)]
        combinations = np.concatenate([combinations, nowhere])
        training = np.concatenate([training, np.zeros(len(nowhere), dtype=training.dtype)])
    return Holes(combinations, training)


def _never_shown(reached: CombinationCoverage, shown: CombinationCoverage) -> Numbers:
    sizes = [clusters.count for clusters in reached.clusters]
    everything = np.indices(sizes).reshape(len(sizes), -1).T.astype(np.uint8)
    unknown = everything[~_contained(everything, np.concatenate([reached.combinations, shown.combinations]))]
    likely = np.zeros(len(unknown))
    for neuron, size in enumerate(sizes):
        share = np.bincount(shown.combinations[:, neuron], shown.counts, minlength=size) / shown.counts.sum()
        likely += np.log(np.maximum(share, 1e-12))[unknown[:, neuron]]
    return unknown[np.argsort(-likely.round(9), kind="stable")]


def _contained(rows: Numbers, among: Numbers) -> NDArray[np.bool_]:
    """Which rows are also rows of `among`."""
    if not len(rows) or not len(among):
        return np.zeros(len(rows), dtype=bool)
    _, which = np.unique(np.concatenate([rows, among]), axis=0, return_inverse=True)
    return np.isin(which.reshape(-1)[: len(rows)], which.reshape(-1)[len(rows) :])


def nearest_inputs(
    combination: NDArray[np.integer], clusters: Sequence[Clusters], values: NDArray[np.floating], *, count: int
) -> tuple[Integers, Floats]:
    """The inputs that lie in a combination or nearest to it: their rows, and their distances to it.

    The distance is Σ over neurons of how far the value lies outside the cluster's interval, in standard deviations of
    that neuron, squared; 0 inside. Among inputs equally far those nearest to the clusters' centres come first, then
    those that come first in `values`, shape (inputs, neurons).
    """
    outside, off_centre = np.zeros(len(values)), np.zeros(len(values))
    for neuron, (number, of_neuron) in enumerate(zip(combination, clusters, strict=True)):
        edges = np.concatenate([[-np.inf], of_neuron.borders, [np.inf]])
        value = values[:, neuron].astype(np.float64)
        spread = value.std() or 1.0
        beyond = np.maximum(edges[number] - value, 0) + np.maximum(value - edges[number + 1], 0)
        outside += (beyond / spread) ** 2
        off_centre += ((value - of_neuron.centres[number]) / spread) ** 2
    nearest = np.lexsort([off_centre, outside])[:count]
    return nearest, np.sqrt(outside[nearest])
