"""Is my test set adequate? After DeepImportance (Gerasimou et al. 2020) and the criteria it is compared with.

Names are loaded when they are first used: what the room declares is read without torch.
"""

from typing import TYPE_CHECKING

from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.coverage.agreement_probes import CriteriaAgreement
    from weakspot.coverage.confidence_probes import Confidence
    from weakspot.coverage.importance_probes import ImportanceDrivenCoverage, NeuronImportance
    from weakspot.coverage.metrics_clusters import (
        Clusters,
        calinski_harabasz_1d,
        davies_bouldin_1d,
        optimal_clusters_1d,
        silhouette_1d,
    )
    from weakspot.coverage.metrics_combinations import (
        CombinationCoverage,
        enough_neurons,
        importance_driven_coverage,
        missing_combinations,
        nearest_inputs,
    )
    from weakspot.coverage.metrics_confidence import deep_gini, entropy, margin, max_softmax
    from weakspot.coverage.metrics_ranking import errors_found, greedy_order
    from weakspot.coverage.metrics_surprise import distance_surprise, likelihood_surprise, surprise_buckets
    from weakspot.coverage.metrics_top_neurons import leading_neurons
    from weakspot.coverage.neuron_probes import ActivationRanges, KMultisection, NeuronCoverage, TopNeurons
    from weakspot.coverage.ranking_probes import NextInputs
    from weakspot.coverage.reached_targets import Bits, Cells
    from weakspot.coverage.surprise_probes import DistanceSurpriseCoverage, LikelihoodSurpriseCoverage
    from weakspot.coverage.trace_probes import LayerTraces

__all__ = [
    "ActivationRanges",
    "Bits",
    "Cells",
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
    "deep_gini",
    "distance_surprise",
    "enough_neurons",
    "entropy",
    "errors_found",
    "greedy_order",
    "importance_driven_coverage",
    "leading_neurons",
    "likelihood_surprise",
    "margin",
    "max_softmax",
    "missing_combinations",
    "nearest_inputs",
    "optimal_clusters_1d",
    "silhouette_1d",
    "surprise_buckets",
]

__getattr__, __dir__ = lazy_names(
    "weakspot.coverage",
    {
        "agreement_probes": "CriteriaAgreement",
        "confidence_probes": "Confidence",
        "importance_probes": "ImportanceDrivenCoverage NeuronImportance",
        "metrics_clusters": "Clusters calinski_harabasz_1d davies_bouldin_1d optimal_clusters_1d silhouette_1d",
        "metrics_combinations": "CombinationCoverage enough_neurons "
        "importance_driven_coverage missing_combinations nearest_inputs",
        "metrics_confidence": "deep_gini entropy margin max_softmax",
        "metrics_ranking": "errors_found greedy_order",
        "metrics_surprise": "distance_surprise likelihood_surprise surprise_buckets",
        "metrics_top_neurons": "leading_neurons",
        "neuron_probes": "ActivationRanges KMultisection NeuronCoverage TopNeurons",
        "ranking_probes": "NextInputs",
        "reached_targets": "Bits Cells",
        "surprise_probes": "DistanceSurpriseCoverage LikelihoodSurpriseCoverage",
        "trace_probes": "LayerTraces",
    },
)
