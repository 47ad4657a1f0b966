"""What all tests share."""

import os
import random
import sys
import uuid
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from weakspot.core.own_process import allow_many_files

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # a busy machine is slow
settings.load_profile("repeatable")

CHECKOUT = Path(__file__).resolve().parent.parent

torch.manual_seed(0)  # for the networks that modules of tests build while they are collected
allow_many_files()  # as the command line does: fixtures keep many Runs open
RAY = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
"""A token of these tests' own, for all their processes: Ray keeps for good what it finds when it is first loaded."""
for name, value in RAY.items():
    os.environ.setdefault(name, value)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data and trained models; tests that need it are skipped where it is missing."""
    folder = Path(os.environ.get("WEAKSPOT_SHARED", CHECKOUT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the shared data: {folder} is missing, set $WEAKSPOT_SHARED")
    return folder


@pytest.fixture(scope="session")
def architectures(shared: Path):
    """The definitions of the trained models, loaded as any user's model file would be."""
    sys.path.insert(0, str(shared / "models"))
    try:
        import architectures

        yield architectures
    finally:
        sys.path.remove(str(shared / "models"))


@pytest.fixture(scope="session")
def svhn_net(shared: Path, architectures):
    """A trained ResNet-32 for street-view house numbers."""
    net = architectures.build("ResN", "svhn")
    return architectures.load_half_precision(net, str(shared / "models" / "ResN-svhn.safetensors"))


@pytest.fixture(scope="session")
def svhn(shared: Path):
    """The first 500 real test images and labels."""
    with np.load(shared / "data" / "svhn.npz") as stored:
        return stored["x_test"][:500], stored["y_test"][:500]


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Train embedded models into a cache of the test run's own, once for all of its processes."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    os.environ.setdefault("WEAKSPOT_CACHE", str(shared / "cache"))


@pytest.fixture(autouse=True)
def _same_numbers():
    """Draw the same random weights and data for a test in every run; `repeatable` does so for hypothesis."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny models gain nothing from threads, and lose much where the machine is busy."""
    torch.set_num_threads(1)
