"""Names of a package that are imported when they are first used: so reading a Run does not load torch."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package whose names are listed in `__init__.pyi` beside its file.

    The list serves type checkers, too. It has a line for each name: `from package.module import name as name`.
    """
    lines = Path(file).with_name("__init__.pyi").read_text(encoding="utf-8").splitlines()
    imported = [line.split() for line in lines if line.startswith("from ")]
    defined_in = {words[-1]: words[1] for words in imported}

    def get(name: str) -> Any:
        if name not in defined_in:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(defined_in[name]), name)

    def listed() -> list[str]:
        return sorted({*vars(import_module(package)), *defined_in})

    return sorted(defined_in), get, listed
