"""Engines beyond one process: Ray, on a cluster or on the cores and GPUs of one machine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weakspot.engines.ray_engine import RayEngine as RayEngine
    from weakspot.engines.schedule import Patience as Patience

__all__ = ["Patience", "RayEngine"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("weakspot.engines.ray_engine"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
