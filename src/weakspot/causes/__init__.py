"""Why does it fail, and what should it be retrained on? After HUDD (Fahmy et al. 2021, `fahmy2021`).

Names are loaded when they are first used: labels are read and written without torch.
"""

from weakspot.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
