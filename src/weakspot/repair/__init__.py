"""Repair: train a model further on what it predicts incorrectly, and show what that changed.

Names are loaded when they are first used: what the Findings hold is read without torch.
"""

from weakspot.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
