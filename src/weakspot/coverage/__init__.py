"""Is my test set adequate? After DeepImportance (Gerasimou et al. 2020) and the criteria it is compared with.

Names are loaded when they are first used: what the room declares is read without torch.
"""

from typing import TYPE_CHECKING

from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.coverage.agreement import CriteriaAgreement
    from weakspot.coverage.choosing import NextInputs
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
    from weakspot.coverage.confidence import Confidence
    from weakspot.coverage.importance import ImportanceDrivenCoverage, NeuronImportance
    from weakspot.coverage.neurons import ActivationRanges, KMultisection, NeuronCoverage
    from weakspot.coverage.surprise import distance_surprise, likelihood_surprise, surprise_buckets
    from weakspot.coverage.surprise_probes import DistanceSurpriseCoverage, LikelihoodSurpriseCoverage
    from weakspot.coverage.topk import TopNeurons
    from weakspot.coverage.traces import LayerTraces

__all__ = [
    "ActivationRanges",
    "Clusters",
    "CombinationCoverage",
    "Confidence",
    "CriteriaAgreement",
    "DistanceSurpriseCoverage",
    "ImportanceDrivenCoverage",
    "KMultisection",
    "LayerTraces",
    "LikelihoodSurpriseCoverage",
    "NeuronCoverage",
    "NeuronImportance",
    "NextInputs",
    "TopNeurons",
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

__getattr__, __dir__ = lazy_names(
    "weakspot.coverage",
    {
        "agreement": "CriteriaAgreement",
        "choosing": "NextInputs",
        "clusters": "Clusters calinski_harabasz_1d davies_bouldin_1d optimal_clusters_1d silhouette_1d",
        "combinations": "CombinationCoverage enough_neurons "
        "importance_driven_coverage missing_combinations nearest_inputs",
        "confidence": "Confidence",
        "importance": "ImportanceDrivenCoverage NeuronImportance",
        "neurons": "ActivationRanges KMultisection NeuronCoverage",
        "surprise": "distance_surprise likelihood_surprise surprise_buckets",
        "surprise_probes": "DistanceSurpriseCoverage LikelihoodSurpriseCoverage",
        "topk": "TopNeurons",
        "traces": "LayerTraces",
    },
)
