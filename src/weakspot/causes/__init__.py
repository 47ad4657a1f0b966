"""Why does it fail, and what should it be retrained on? After HUDD (Fahmy et al. 2021, `fahmy2021`)."""

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
from weakspot.causes.errors import error_threshold, output_errors
from weakspot.causes.knees import chosen_clusters, gradient, knee
from weakspot.causes.landmarks import cluster_means, landmarks, nearest_clusters
from weakspot.causes.stability import best_jaccard, cluster_stability
from weakspot.causes.study import ErrorImages, RootCauseStudy, study_root_causes
from weakspot.causes.tree import cluster_scores, cut_tree, distances_of_distances, merge_tree

__all__ = [
    "ClusterRecipe",
    "ErrorImages",
    "HeatMapRows",
    "LayerClusters",
    "RootCauseCluster",
    "RootCauseStudy",
    "best_jaccard",
    "best_layer",
    "chosen_clusters",
    "cluster_layer",
    "cluster_means",
    "cluster_numbers",
    "cluster_scores",
    "cluster_stability",
    "cut_tree",
    "distances_between",
    "distances_of_distances",
    "error_threshold",
    "gradient",
    "heat_map_distances",
    "knee",
    "landmarks",
    "layer_score",
    "merge_tree",
    "nearest_clusters",
    "output_errors",
    "recluster",
    "root_cause_clusters",
    "square",
    "study_root_causes",
]
