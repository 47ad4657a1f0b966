"""Runs are made once, also where several processes share the tests."""

import fcntl
from pathlib import Path

import pytest

from tests.report.browser import running
from tests.viewer.driving import CHROMIUM
from tests.viewer.runs import client_of, examine_small, make_big, retrain
from tests.viewer.whole_run import make_whole


def once(factory, name, make) -> Path:
    """The folder `name` that `make` makes, for all processes of one test run."""
    base = factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    target = shared / f"viewer-{name}"
    with (shared / f".{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "made").exists():
            target.mkdir(exist_ok=True)
            make(target / name)
            (target / "made").touch()
    return target / name


@pytest.fixture(scope="session")
def small_run(tmp_path_factory, _own_cache):
    """A real Run with Findings of every room but lesions."""
    return once(tmp_path_factory, "small", examine_small)


@pytest.fixture(scope="session")
def retrained_run(tmp_path_factory, small_run):
    """The same after retraining."""
    return once(tmp_path_factory, "retrained", lambda folder: retrain(small_run, folder))


@pytest.fixture(scope="session")
def big_run(tmp_path_factory):
    """A Run of 100,000 samples."""
    return once(tmp_path_factory, "big", make_big)


@pytest.fixture(scope="session")
def browser(small_run):
    """A client that knows the token, on the small Run."""
    return client_of(small_run)


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """A made-up Run with something for every page but lesions and labels."""
    return once(tmp_path_factory, "whole", make_whole)


@pytest.fixture(scope="session")
def chromium():
    """A real browser."""
    if CHROMIUM is None:
        pytest.skip("needs chromium: apt-get install chromium")
    with running(CHROMIUM) as started:
        yield started
