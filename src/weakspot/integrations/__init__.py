"""Adapters to other tools, each loaded when it is first used: trackers, trainers, data formats, other attributions.

A tool's own package is imported inside its adapter, and a missing one is an error that says what to install.
"""

from weakspot.lazy import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
