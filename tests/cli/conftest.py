"""What all tests of the command line share: a call in this process, and a small project."""

import pytest

from tests.cli.calling import call, make_project


@pytest.fixture
def weakspot():
    """Calls the command in this process: exit code, standard output, standard error."""
    return call


@pytest.fixture
def project(tmp_path):
    """A folder with a net, its weights, data and a configuration, under module names of its own."""
    return make_project(tmp_path)
