"""Two Runs side by side: two models, or one before and after; input by input where both saw the same inputs."""

from weakspot.compare.flips import FlippedInputs, GroupDifference, flips_of
from weakspot.compare.pairing import paired_mean_interval
from weakspot.compare.runs import (
    NO_DIFFERENCE,
    Comparison,
    Difference,
    compare_findings,
    compare_runs,
    main_differences,
)

__all__ = [
    "NO_DIFFERENCE",
    "Comparison",
    "Difference",
    "FlippedInputs",
    "GroupDifference",
    "compare_findings",
    "compare_runs",
    "flips_of",
    "main_differences",
    "paired_mean_interval",
]
