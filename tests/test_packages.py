"""Every public name is found in its package, whatever was imported before."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import weakspot

STUBS = sorted(Path(weakspot.__file__).parent.glob("*/__init__.pyi"))


@pytest.mark.parametrize("package", [f"weakspot.{stub.parent.name}" for stub in STUBS])
def test_public_names_are_not_hidden_by_modules(package):
    """A module that is imported becomes an attribute of its package, and would hide a function of the same name."""
    loaded = import_module(package)
    for module in pkgutil.iter_modules(loaded.__path__):
        import_module(f"{package}.{module.name}")
    assert [name for name in loaded.__all__ if isinstance(getattr(loaded, name), ModuleType)] == []
    assert set(loaded.__all__) <= set(dir(loaded))


def test_a_stub_has_a_line_for_each_name_and_nothing_else():
    """`lazy_names` reads it line by line."""
    assert len(STUBS) == 9
    for stub in [*STUBS, STUBS[0].parents[1] / "__init__.pyi"]:
        lines = stub.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if not re.fullmatch(r"from weakspot\.[\w.]+ import (\w+) as \1", line)] == []
