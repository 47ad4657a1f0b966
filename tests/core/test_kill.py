"""`kill -9` at any moment: the same command goes on and ends with the same bytes."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


class Examiner:
    """The warm process of `examiner.py`."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.core.examiner"],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == "ready"

    def _answer(self):
        return self._process.stdout.readline().strip()

    def work(self, **order):
        """The exit status; minus the number of the signal that ended it."""
        self._process.stdin.write(json.dumps(order, default=str) + "\n")
        self._process.stdin.flush()
        return int(self._answer())

    def finish(self, **order):
        begun = time.perf_counter()
        assert self.work(**order) == 0
        return time.perf_counter() - begun

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture(scope="module")
def examiner():
    made = Examiner()
    yield made
    made.close()


def contents(folder):
    """Every byte that a run keeps."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in files.items() if name != ".lock"}


def test_killed_at_random_moments_it_ends_with_the_same_bytes(examiner, tmp_path):
    took = min(examiner.finish(what="demo", folder=tmp_path / name) for name in ("warm", "whole"))
    whole = contents(tmp_path / "whole")
    assert whole == contents(tmp_path / "warm")
    assert sum(name.endswith("finding.json") for name in whole) >= 7
    chance = random.Random(20)
    left, went_on = 10, 0  # a hundred are in `make test-slow`
    for number in count():  # until so many were killed, and two of them went on; pytest's limit ends it otherwise
        folder = tmp_path / f"killed-{number}"
        for _ in range(chance.randint(1, 5)):
            killed = examiner.work(what="demo", folder=folder, kill_after=chance.uniform(0, took)) == -signal.SIGKILL
            begun = any(folder.glob("work/*/shard-*"))
            left, went_on = left - killed, went_on + (killed and begun)
            took *= 0.8 if not killed else 1.0 if begun else 1.25  # the machine may be more or less busy than it was
        examiner.finish(what="demo", folder=folder)
        assert contents(folder) == whole
        if left <= 0 and went_on >= 2:
            break


@pytest.mark.parametrize("before", [None, 1.0], ids=["a new run", "a run whose Findings are replaced"])
def test_killed_before_every_single_change_to_the_disk(examiner, tmp_path, before):
    examiner.finish(what="tiny", weight=2.0, folder=tmp_path / "whole")
    whole = contents(tmp_path / "whole")
    if before is not None:
        examiner.finish(what="tiny", weight=before, folder=tmp_path / "before")
    for moment in range(1, 500):
        folder = tmp_path / f"at-{moment}"
        if before is not None:
            shutil.copytree(tmp_path / "before", folder)
        status = examiner.work(what="tiny", weight=2.0, folder=folder, die_at=moment)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        examiner.finish(what="tiny", weight=2.0, folder=folder)
        assert contents(folder) == whole, f"killed before change {moment}"
    assert 40 < moment < 499
