"""Why does it fail, and what should it be retrained on? After HUDD (Fahmy et al. 2021, `fahmy2021`).

Names are loaded when they are first used: labels are read and written without torch.
"""

from typing import TYPE_CHECKING

from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.causes.analysis import ErrorImages, RootCauseStudy, study_root_causes
    from weakspot.causes.clusters import (
        ClusterRecipe,
        LayerClusters,
        RootCauseCluster,
        best_layer,
        cluster_layer,
        cluster_numbers,
        layer_score,
        root_cause_clusters,
    )
    from weakspot.causes.distances import HeatMapRows, distances_between, heat_map_distances, square
    from weakspot.causes.error_probes import Errors, error_threshold
    from weakspot.causes.export import export_clusters
    from weakspot.causes.knees import chosen_clusters, gradient, knee
    from weakspot.causes.labelling import RunLabels, current_labels, export_labels, import_labels
    from weakspot.causes.landmarks import cluster_means, nearest_clusters
    from weakspot.causes.parameters import Parameters
    from weakspot.causes.probes import RootCauses
    from weakspot.causes.reclustering import recluster
    from weakspot.causes.slice_probes import ErrorSlices
    from weakspot.causes.stability import best_jaccard, cluster_stability
    from weakspot.causes.traits import SharedTraits, disagreement, shared_traits
    from weakspot.causes.tree import cluster_scores, cut_tree, distances_of_distances, merge_tree
    from weakspot.causes.unsafe_probes import UnsafeSet
    from weakspot.causes.unsafe_selection import (
        cluster_quotas,
        distance_limit,
        nearest_members,
        one_class_clusters,
        unsafe_set,
    )
    from weakspot.core.tasks import output_errors

__all__ = [
    "ClusterRecipe",
    "ErrorImages",
    "ErrorSlices",
    "Errors",
    "HeatMapRows",
    "LayerClusters",
    "Parameters",
    "RootCauseCluster",
    "RootCauseStudy",
    "RootCauses",
    "RunLabels",
    "SharedTraits",
    "UnsafeSet",
    "best_jaccard",
    "best_layer",
    "chosen_clusters",
    "cluster_layer",
    "cluster_means",
    "cluster_numbers",
    "cluster_quotas",
    "cluster_scores",
    "cluster_stability",
    "current_labels",
    "cut_tree",
    "disagreement",
    "distance_limit",
    "distances_between",
    "distances_of_distances",
    "error_threshold",
    "export_clusters",
    "export_labels",
    "gradient",
    "heat_map_distances",
    "import_labels",
    "knee",
    "layer_score",
    "merge_tree",
    "nearest_clusters",
    "nearest_members",
    "one_class_clusters",
    "output_errors",
    "recluster",
    "root_cause_clusters",
    "shared_traits",
    "square",
    "study_root_causes",
    "unsafe_set",
]

__getattr__, __dir__ = lazy_names(
    "weakspot.causes",
    {
        "reclustering": "recluster",
        "clusters": "ClusterRecipe LayerClusters RootCauseCluster best_layer cluster_layer cluster_numbers "
        "layer_score root_cause_clusters",
        "distances": "HeatMapRows distances_between heat_map_distances square",
        "error_probes": "Errors error_threshold output_errors",
        "export": "export_clusters",
        "knees": "chosen_clusters gradient knee",
        "labelling": "RunLabels current_labels export_labels import_labels",
        "landmarks": "cluster_means nearest_clusters",
        "parameters": "Parameters",
        "probes": "RootCauses",
        "slice_probes": "ErrorSlices",
        "stability": "best_jaccard cluster_stability",
        "analysis": "ErrorImages RootCauseStudy study_root_causes",
        "traits": "SharedTraits disagreement shared_traits",
        "tree": "cluster_scores cut_tree distances_of_distances merge_tree",
        "unsafe_probes": "UnsafeSet",
        "unsafe_selection": "cluster_quotas distance_limit nearest_members one_class_clusters unsafe_set",
    },
)
