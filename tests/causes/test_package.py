"""Every public name is found in its package, whatever was imported before."""

import pkgutil
from importlib import import_module
from types import ModuleType

import pytest


@pytest.mark.parametrize("package", ["weakspot.causes", "weakspot.repair"])
def test_public_names_are_not_hidden_by_modules(package):
    """A module that is imported becomes an attribute of its package, and would hide a function of the same name."""
    loaded = import_module(package)
    for module in pkgutil.iter_modules(loaded.__path__):
        import_module(f"{package}.{module.name}")
    assert [name for name in loaded.__all__ if isinstance(getattr(loaded, name), ModuleType)] == []
    assert set(loaded.__all__) <= set(dir(loaded))
