"""Statistics that several rooms share: intervals, rarefaction, effect sizes and ranking curves."""

from weakspot.statistics.effects import (
    EFFECT_SIZES,
    KruskalWallis,
    cohens_d,
    effect_size_class,
    kruskal_wallis,
    pairwise_cohens_d,
)
from weakspot.statistics.groups import value_groups
from weakspot.statistics.intervals import (
    Interval,
    auroc_interval,
    average_precision_interval,
    bootstrap_interval,
    clopper_pearson_interval,
    correlation_interval,
    difference_interval,
    f1_interval,
    mean_interval,
    percentile_interval,
    resampled_counts,
    wilson_interval,
)
from weakspot.statistics.ranking import (
    CostEffectiveness,
    Detection,
    auroc,
    average_precision,
    cost_effectiveness,
    detection,
    spearman,
)
from weakspot.statistics.rarefaction import UnseenTargets, expected_coverage, unseen_targets
from weakspot.statistics.stratified import stratified_share

__all__ = [
    "EFFECT_SIZES",
    "CostEffectiveness",
    "Detection",
    "Interval",
    "KruskalWallis",
    "UnseenTargets",
    "auroc",
    "auroc_interval",
    "average_precision",
    "average_precision_interval",
    "bootstrap_interval",
    "clopper_pearson_interval",
    "cohens_d",
    "correlation_interval",
    "cost_effectiveness",
    "detection",
    "difference_interval",
    "effect_size_class",
    "expected_coverage",
    "f1_interval",
    "kruskal_wallis",
    "mean_interval",
    "pairwise_cohens_d",
    "percentile_interval",
    "resampled_counts",
    "spearman",
    "stratified_share",
    "unseen_targets",
    "value_groups",
    "wilson_interval",
]
