"""Why does it fail, and what should it be retrained on? After HUDD (Fahmy et al. 2021, `fahmy2021`).

Names are loaded when they are first used: labels are read and written without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weakspot.causes.again import recluster
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
    from weakspot.causes.errors import Errors, error_threshold
    from weakspot.causes.export import export_clusters
    from weakspot.causes.knees import chosen_clusters, gradient, knee
    from weakspot.causes.labelling import RunLabels, current_labels, export_labels, import_labels
    from weakspot.causes.landmarks import cluster_means, nearest_clusters
    from weakspot.causes.parameters import Parameters
    from weakspot.causes.probes import RootCauses
    from weakspot.causes.stability import best_jaccard, cluster_stability
    from weakspot.causes.study import ErrorImages, RootCauseStudy, study_root_causes
    from weakspot.causes.traits import SharedTraits, disagreement, shared_traits
    from weakspot.causes.tree import cluster_scores, cut_tree, distances_of_distances, merge_tree
    from weakspot.causes.unsafe import UnsafeSet, cluster_quotas, distance_limit, nearest_members, unsafe_set
    from weakspot.core.tasks import output_errors

_WHERE = {
    "recluster": "again",
    "ClusterRecipe": "clusters",
    "LayerClusters": "clusters",
    "RootCauseCluster": "clusters",
    "best_layer": "clusters",
    "cluster_layer": "clusters",
    "cluster_numbers": "clusters",
    "layer_score": "clusters",
    "root_cause_clusters": "clusters",
    "HeatMapRows": "distances",
    "distances_between": "distances",
    "heat_map_distances": "distances",
    "square": "distances",
    "Errors": "errors",
    "error_threshold": "errors",
    "output_errors": "errors",
    "export_clusters": "export",
    "chosen_clusters": "knees",
    "gradient": "knees",
    "knee": "knees",
    "RunLabels": "labelling",
    "current_labels": "labelling",
    "export_labels": "labelling",
    "import_labels": "labelling",
    "cluster_means": "landmarks",
    "nearest_clusters": "landmarks",
    "Parameters": "parameters",
    "RootCauses": "probes",
    "best_jaccard": "stability",
    "cluster_stability": "stability",
    "ErrorImages": "study",
    "RootCauseStudy": "study",
    "study_root_causes": "study",
    "SharedTraits": "traits",
    "disagreement": "traits",
    "shared_traits": "traits",
    "cluster_scores": "tree",
    "cut_tree": "tree",
    "distances_of_distances": "tree",
    "merge_tree": "tree",
    "UnsafeSet": "unsafe",
    "cluster_quotas": "unsafe",
    "distance_limit": "unsafe",
    "nearest_members": "unsafe",
    "unsafe_set": "unsafe",
}

__all__ = [
    "ClusterRecipe",
    "ErrorImages",
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
    "output_errors",
    "recluster",
    "root_cause_clusters",
    "shared_traits",
    "square",
    "study_root_causes",
    "unsafe_set",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'weakspot.causes' has no attribute {name!r}")
    return getattr(import_module(f"weakspot.causes.{_WHERE[name]}"), name)
