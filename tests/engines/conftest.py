"""One Ray for all tests: starting it takes seconds."""

import os
import uuid

import pytest

from weakspot.engines import RayEngine
from weakspot.engines.schedule import Patience

OWN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
"""A token of these tests' own, so that a second process of theirs can reach the same Ray."""


@pytest.fixture(scope="session")
def engine():
    """Two workers on this machine."""
    before = {name: os.environ.get(name) for name in OWN}
    os.environ.update(OWN)
    try:
        with RayEngine(workers=2, patience=Patience(least=2.0)) as made:
            yield made
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
