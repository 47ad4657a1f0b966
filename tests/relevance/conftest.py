"""What the relevance tests share."""

import sys
import types

import pytest


@pytest.fixture(scope="session")
def zennit():
    """The oracle zennit; it insists on torchvision, which has no build for every torch, so that part is left out."""
    sys.modules.setdefault("zennit.torchvision", types.ModuleType("zennit.torchvision"))
    package = pytest.importorskip("zennit", reason="needs the oracle: pip install --no-deps zennit==0.5.1")
    for name in ("attribution", "canonizers", "composites", "layer", "rules", "types"):
        __import__(f"zennit.{name}")
    return package


@pytest.fixture(scope="session")
def captum():
    """The oracle captum."""
    pytest.importorskip("captum", reason="needs the oracle: pip install captum")
    import captum.attr

    return captum


@pytest.fixture(scope="session")
def keras():
    """Keras 3 on the torch backend."""
    import os

    os.environ.setdefault("KERAS_BACKEND", "torch")
    package = pytest.importorskip("keras", reason="needs Keras: pip install keras")
    if package.backend.backend() != "torch":
        pytest.skip("needs Keras on the torch backend: KERAS_BACKEND=torch")
    return package
