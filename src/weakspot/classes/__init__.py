"""Which classes does it mix up, or treat unequally? After DeepInspect (Tian et al. 2020, `deepinspect`)."""

from weakspot.classes.activation import activation_counts, activation_probability, neural_paths, neuron_coverage
from weakspot.classes.bias import (
    average_bias,
    average_confusion_disparity,
    bias_errors,
    triplet_bias,
    worst_third_classes,
)
from weakspot.classes.bootstrap import DistanceEstimate, bootstrap_distance
from weakspot.classes.confusion import (
    confusion_errors,
    label_coincidence,
    pair_confusion,
    type1_confusion,
    type2_confusion,
)
from weakspot.classes.distance import activation_distance, class_tree
from weakspot.classes.fairness import AccuracyGaps, GroupAccuracy, accuracy_gaps, group_accuracy
from weakspot.classes.leaning import output_leaning
from weakspot.classes.membership import Members, class_members, class_sizes, rankable_classes
from weakspot.classes.pairs import cutoff_score, most_suspicious, pair_classes, pair_values, suspicious
from weakspot.classes.selection import Selected, images_to_label
from weakspot.classes.separation import ClassSeparation, class_separation

__all__ = [
    "AccuracyGaps",
    "ClassSeparation",
    "DistanceEstimate",
    "GroupAccuracy",
    "Members",
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
    "output_leaning",
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
