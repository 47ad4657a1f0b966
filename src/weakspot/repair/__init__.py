"""Repair: train a model further on what it gets wrong, and show what that changed."""

from weakspot.repair.balancing import Repeated, balanced, balanced_places
from weakspot.repair.comparing import Answers, compared
from weakspot.repair.kept import Kept
from weakspot.repair.labelled import Labelled, held_out, targets_of
from weakspot.repair.proving import RetrainingData, proved
from weakspot.repair.training import Batches, Recipe, retrained
from weakspot.repair.varied import VariedSource

__all__ = [
    "Answers",
    "Batches",
    "Kept",
    "Labelled",
    "Recipe",
    "Repeated",
    "RetrainingData",
    "VariedSource",
    "balanced",
    "balanced_places",
    "compared",
    "held_out",
    "proved",
    "retrained",
    "targets_of",
]
