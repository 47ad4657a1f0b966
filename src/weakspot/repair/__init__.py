"""Repair: train a model further on what it gets wrong, and show what that changed."""

from weakspot.repair.comparing import Answers, compared
from weakspot.repair.training import Recipe, retrained
from weakspot.repair.varied import VariedSource

__all__ = ["Answers", "Recipe", "VariedSource", "compared", "retrained"]
