"""How good is the model? Accuracy or errors, by class, calibration and confusions; see Guo et al. 2017, `guo2017`.

Names are loaded when they are first used: what the room declares is read without torch.
"""

from weakspot.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
