"""Packages of other tools: imported when they are needed."""

from importlib import import_module
from typing import Any

from weakspot.core.errors import ConfigError


def needed(module: str, install: str) -> Any:
    """A module of another tool; where it is missing, an error says what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ConfigError(f"this needs {install}, which is not installed: pip install {install}") from error
