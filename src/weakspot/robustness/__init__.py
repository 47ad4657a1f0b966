"""Which inputs are predicted correctly only by luck? After DeepRobust (Zhong et al. 2021, `zhong2021`).

Names are loaded when they are first used: what the room declares is read without torch.
"""

from typing import TYPE_CHECKING

from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.robustness.analysis import compared_neighbours, weak_ids
    from weakspot.robustness.analysis_probes import ClassRobustness, VariationEffects, WeakPlaces, WeakStrips
    from weakspot.robustness.detector_probes import DetectorEvaluation, WeakDetector, WeakInputs
    from weakspot.robustness.detectors import Detector
    from weakspot.robustness.metrics import (
        consistency,
        disagreement,
        distinct_predictions,
        neighbour_accuracy,
        prediction_entropy,
        simpson_diversity,
        variation_ratio,
        weak_inputs,
        within_tolerance,
    )
    from weakspot.robustness.metrics_detection import MethodOutput, baselines, detection_metrics
    from weakspot.robustness.metrics_features import (
        WeakStrongDifference,
        centre_distance_ratio,
        class_centres,
        diversity_correlation,
        principal_components,
        weak_strong_difference,
    )
    from weakspot.robustness.metrics_queries import query_features
    from weakspot.robustness.monitor import MonitorResult, RuntimeMonitor
    from weakspot.robustness.probes import NeighbourAccuracy, NeighbourTolerance, SquaredError
    from weakspot.robustness.score_thresholds import best_f1_threshold, lowest_weak_threshold, quantile_threshold

__all__ = [
    "ClassRobustness",
    "Detector",
    "DetectorEvaluation",
    "MethodOutput",
    "MonitorResult",
    "NeighbourAccuracy",
    "NeighbourTolerance",
    "RuntimeMonitor",
    "SquaredError",
    "VariationEffects",
    "WeakDetector",
    "WeakInputs",
    "WeakPlaces",
    "WeakStrips",
    "WeakStrongDifference",
    "baselines",
    "best_f1_threshold",
    "centre_distance_ratio",
    "class_centres",
    "compared_neighbours",
    "consistency",
    "detection_metrics",
    "disagreement",
    "distinct_predictions",
    "diversity_correlation",
    "lowest_weak_threshold",
    "neighbour_accuracy",
    "prediction_entropy",
    "principal_components",
    "quantile_threshold",
    "query_features",
    "simpson_diversity",
    "variation_ratio",
    "weak_ids",
    "weak_inputs",
    "weak_strong_difference",
    "within_tolerance",
]

__getattr__, __dir__ = lazy_names(
    "weakspot.robustness",
    {
        "analysis": "compared_neighbours weak_ids",
        "analysis_probes": "ClassRobustness VariationEffects WeakPlaces WeakStrips",
        "detector_probes": "DetectorEvaluation WeakDetector WeakInputs",
        "detectors": "Detector",
        "metrics": "consistency disagreement distinct_predictions neighbour_accuracy prediction_entropy "
        "simpson_diversity variation_ratio weak_inputs within_tolerance",
        "metrics_detection": "MethodOutput baselines detection_metrics",
        "metrics_features": "WeakStrongDifference centre_distance_ratio class_centres diversity_correlation "
        "principal_components weak_strong_difference",
        "metrics_queries": "query_features",
        "monitor": "MonitorResult RuntimeMonitor",
        "probes": "NeighbourAccuracy NeighbourTolerance SquaredError",
        "score_thresholds": "best_f1_threshold lowest_weak_threshold quantile_threshold",
    },
)
