"""Statistics that several rooms share: intervals, rarefaction, effect sizes and ranking curves."""

from weakspot.statistics.effects import (
    EFFECT_SIZES,
    KruskalWallis,
    cohens_d,
    effect_size_class,
    kruskal_wallis,
    pairwise_cohens_d,
)
from weakspot.statistics.intervals import (
    Interval,
    bootstrap_interval,
    clopper_pearson_interval,
    difference_interval,
    percentile_interval,
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

__all__ = [
    "EFFECT_SIZES",
    "CostEffectiveness",
    "Detection",
    "Interval",
    "KruskalWallis",
    "UnseenTargets",
    "auroc",
    "average_precision",
    "bootstrap_interval",
    "clopper_pearson_interval",
    "cohens_d",
    "cost_effectiveness",
    "detection",
    "difference_interval",
    "effect_size_class",
    "expected_coverage",
    "kruskal_wallis",
    "pairwise_cohens_d",
    "percentile_interval",
    "spearman",
    "unseen_targets",
    "wilson_interval",
]
