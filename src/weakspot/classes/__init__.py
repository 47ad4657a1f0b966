"""Which classes does it mix up, or treat unequally? After DeepInspect (Tian et al. 2020, `deepinspect`).

Names are loaded when they are first used: what the room declares is read without torch.
"""

from typing import TYPE_CHECKING

from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.classes.coverage_probes import ClassCoverage, ClassCriteria, ClassRanges
    from weakspot.classes.group_probes import GroupFairness
    from weakspot.classes.membership import Members, class_members, class_sizes, rankable_classes
    from weakspot.classes.metrics_activation import (
        activation_counts,
        activation_probability,
        neural_paths,
        neuron_coverage,
    )
    from weakspot.classes.metrics_bias import (
        average_bias,
        average_confusion_disparity,
        bias_errors,
        triplet_bias,
        worst_third_classes,
    )
    from weakspot.classes.metrics_bootstrap import DistanceEstimate, bootstrap_distance
    from weakspot.classes.metrics_confusion import (
        confusion_errors,
        label_coincidence,
        output_soft_confusion,
        pair_confusion,
        type1_confusion,
        type2_confusion,
    )
    from weakspot.classes.metrics_coverage import ClassSeparation, class_separation
    from weakspot.classes.metrics_distance import activation_distance, class_tree
    from weakspot.classes.metrics_groups import AccuracyGaps, GroupAccuracy, accuracy_gaps, group_accuracy
    from weakspot.classes.pairs import cutoff_score, most_suspicious, pair_classes, pair_values, suspicious
    from weakspot.classes.probes import ClassPairs, ImagesToLabel, OutputPairs
    from weakspot.classes.selection import Selected, images_to_label

__all__ = [
    "AccuracyGaps",
    "ClassCoverage",
    "ClassCriteria",
    "ClassPairs",
    "ClassRanges",
    "ClassSeparation",
    "DistanceEstimate",
    "GroupAccuracy",
    "GroupFairness",
    "ImagesToLabel",
    "Members",
    "OutputPairs",
    "Selected",
    "accuracy_gaps",
    "activation_counts",
    "activation_distance",
    "activation_probability",
    "average_bias",
    "average_confusion_disparity",
    "bias_errors",
    "bootstrap_distance",
    "class_members",
    "class_separation",
    "class_sizes",
    "class_tree",
    "confusion_errors",
    "cutoff_score",
    "group_accuracy",
    "images_to_label",
    "label_coincidence",
    "most_suspicious",
    "neural_paths",
    "neuron_coverage",
    "output_soft_confusion",
    "pair_classes",
    "pair_confusion",
    "pair_values",
    "rankable_classes",
    "suspicious",
    "triplet_bias",
    "type1_confusion",
    "type2_confusion",
    "worst_third_classes",
]

__getattr__, __dir__ = lazy_names(
    "weakspot.classes",
    {
        "coverage_probes": "ClassCoverage ClassCriteria ClassRanges",
        "group_probes": "GroupFairness",
        "membership": "Members class_members class_sizes rankable_classes",
        "metrics_activation": "activation_counts activation_probability neural_paths neuron_coverage",
        "metrics_bias": "average_bias average_confusion_disparity bias_errors triplet_bias worst_third_classes",
        "metrics_bootstrap": "DistanceEstimate bootstrap_distance",
        "metrics_confusion": "confusion_errors label_coincidence output_soft_confusion pair_confusion "
        "type1_confusion type2_confusion",
        "metrics_coverage": "ClassSeparation class_separation",
        "metrics_distance": "activation_distance class_tree",
        "metrics_groups": "AccuracyGaps GroupAccuracy accuracy_gaps group_accuracy",
        "pairs": "cutoff_score most_suspicious pair_classes pair_values suspicious",
        "probes": "ClassPairs ImagesToLabel OutputPairs",
        "selection": "Selected images_to_label",
    },
)
