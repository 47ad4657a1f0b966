"""Is my test set adequate? After DeepImportance (Gerasimou et al. 2020) and the criteria it is compared with.

These are the plain functions on arrays, which need no torch; the probes are in the modules beside.
"""

from weakspot.coverage.clusters import (
    Clusters,
    calinski_harabasz_1d,
    davies_bouldin_1d,
    optimal_clusters_1d,
    silhouette_1d,
)
from weakspot.coverage.combinations import (
    CombinationCoverage,
    enough_neurons,
    importance_driven_coverage,
    missing_combinations,
    nearest_inputs,
)
from weakspot.coverage.surprise import distance_surprise, likelihood_surprise, surprise_buckets

__all__ = [
    "Clusters",
    "CombinationCoverage",
    "calinski_harabasz_1d",
    "davies_bouldin_1d",
    "distance_surprise",
    "enough_neurons",
    "importance_driven_coverage",
    "likelihood_surprise",
    "missing_combinations",
    "nearest_inputs",
    "optimal_clusters_1d",
    "silhouette_1d",
    "surprise_buckets",
]
