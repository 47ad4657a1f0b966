"""One Ray for all tests: starting it takes seconds."""

import pytest

from weakspot.engines import RayEngine
from weakspot.engines.schedule import Patience


@pytest.fixture(scope="session")
def engine():
    """Two workers on this machine."""
    with RayEngine(workers=2, patience=Patience(least=2.0)) as made:
        made._connect(gpus=0)  # what Ray starts and sets belongs to no single test
        yield made
