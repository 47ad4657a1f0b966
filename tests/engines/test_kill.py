"""The driver is killed while Ray's workers are at it: they end, and the same command goes on with the same bytes."""

import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.core.test_kill import Examiner
from tests.engines.helpers import contents, family


@pytest.fixture(scope="module")
def examiner():
    made = Examiner()
    yield made
    made.close()


@pytest.fixture
def address(engine):
    """Where the Ray of these tests is reached; none of its workers is needed."""
    return engine._ray.get_runtime_context().gcs_address


def workers():
    """The processes of our Ray's workers that do weakspot's work."""
    found = set()
    for process in family():
        with suppress(OSError):  # it has just ended
            if Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::Worker"):
                found.add(process)
    return found


def test_killed_at_any_moment_it_goes_on_and_ends_with_the_same_bytes(address, examiner, tmp_path):
    examiner.finish(what="demo", folder=tmp_path / "whole")
    whole, before = contents(tmp_path / "whole"), workers()
    for shards, number in ((3, signal.SIGKILL), (9, signal.SIGTERM)):
        order = {"what": "demo", "folder": tmp_path / "run", "address": address, "workers": 1, "kill_at": shards}
        assert examiner.work(**order, signal=number) != 0
        assert any((tmp_path / "run").glob("work/*/shard-*"))
    examiner.finish(what="demo", folder=tmp_path / "run")
    assert contents(tmp_path / "run") == whole
    while workers() - before:  # pytest's limit ends it where they never end
        time.sleep(0.1)
