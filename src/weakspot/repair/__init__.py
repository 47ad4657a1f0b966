"""Repair: train a model further on what it predicts incorrectly, and show what that changed.

Names are loaded when they are first used: what the Findings hold is read without torch.
"""

from typing import TYPE_CHECKING

from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.repair.balancing import Repeated, balanced, balanced_places
    from weakspot.repair.cached import CachedSource
    from weakspot.repair.comparison import compared
    from weakspot.repair.experiment import RetrainingData, run_experiment
    from weakspot.repair.labelled import Labelled, held_out, targets_of
    from weakspot.repair.probes import Predictions
    from weakspot.repair.training import Batches, Recipe, retrained
    from weakspot.repair.varied import VariedSource

__all__ = [
    "Batches",
    "CachedSource",
    "Labelled",
    "Predictions",
    "Recipe",
    "Repeated",
    "RetrainingData",
    "VariedSource",
    "balanced",
    "balanced_places",
    "compared",
    "held_out",
    "retrained",
    "run_experiment",
    "targets_of",
]

__getattr__, __dir__ = lazy_names(
    "weakspot.repair",
    {
        "balancing": "Repeated balanced balanced_places",
        "comparison": "compared",
        "experiment": "RetrainingData run_experiment",
        "cached": "CachedSource",
        "probes": "Predictions",
        "labelled": "Labelled held_out targets_of",
        "training": "Batches Recipe retrained",
        "varied": "VariedSource",
    },
)
