"""Data sets, files and images.

Names are loaded when they are first used: what the room declares is read without torch.
"""

from weakspot.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
