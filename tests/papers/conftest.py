"""The scripts of the papers as modules, without leaving them or their folders behind."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

PAPERS = Path(__file__).resolve().parents[2] / "benchmarks" / "papers"


@pytest.fixture
def script(monkeypatch):
    """Load a script by its name."""
    before = set(sys.modules)
    for folder in (PAPERS, PAPERS.parent / "peers"):
        monkeypatch.syspath_prepend(str(folder))
    yield import_module
    for name in set(sys.modules) - before:
        if str(PAPERS.parent) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
