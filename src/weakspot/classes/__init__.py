"""Which classes does it mix up, or treat unequally? After DeepInspect (Tian et al. 2020, `deepinspect`).

Names are loaded when they are first used: what the room declares is read without torch.
"""

from weakspot.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
