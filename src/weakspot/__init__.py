"""weakspot finds where a neural network can't be trusted, shows why, helps fix it, and leaves evidence.

Names are loaded when they are first used, so that importing weakspot, or reading a Run, does not load torch.
"""

from weakspot._version import __version__ as __version__
from weakspot.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
