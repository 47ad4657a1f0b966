"""Names of a package that are imported when they are first used: so reading a Run does not load torch."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose names are defined in these modules.

    modules: the public names of each module of the package, separated by spaces.
    """
    defined_in = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in defined_in:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{defined_in[name]}"), name)

    def listed() -> list[str]:
        return sorted({*vars(import_module(package)), *defined_in})

    return get, listed
