"""A full disk where labels become a better model, clusters become folders, and output goes to a file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.cli.damaging import make_all
from tests.cli.test_causes import small
from tests.cli.test_full_disk import FULL, check_refused, contents
from tests.cli.test_hostile import CALL
from tests.cli.test_retraining import FEW, labelled
from tests.full_disk import files_end_at

__all__ = ["labelled", "small"]
RETRAIN = ("--repeats", 1, *FEW[2:])


@pytest.fixture
def full_after(monkeypatch):
    """Let a number of calls of `fsync` succeed, and refuse all others; None: no limit."""
    fsync, left = os.fsync, [None]

    def counted(file):
        if left[0] == 0:
            raise OSError(FULL[0], os.strerror(FULL[0]))
        left[0] = None if left[0] is None else left[0] - 1
        fsync(file)

    monkeypatch.setattr(os, "fsync", counted)
    return lambda calls: left.__setitem__(0, calls)


@pytest.mark.timeout(300)
def test_retraining_has_no_room(weakspot, labelled, full_after):
    file, run = labelled
    for size in (0, 100):
        with files_end_at(size):
            ended = weakspot("causes", "retrain", file, *RETRAIN, "--quiet")
        check_refused(ended, run.folder)
        assert not (run.folder / "retrained.safetensors").exists()
    for calls in range(0, 60, 7):
        full_after(calls)
        ended = weakspot("causes", "retrain", file, *RETRAIN, "--quiet")
        full_after(None)
        if ended[0] == 0:
            break
        check_refused(ended, run.folder)
    assert calls and weakspot("causes", "retrain", file, *RETRAIN, "--quiet")[0] == 0
    interrupted = load_file(run.folder / "retrained.safetensors")
    assert weakspot("causes", "retrain", file, *RETRAIN, "--quiet")[0] == 0
    whole = load_file(run.folder / "retrained.safetensors")
    assert all((whole[name] == interrupted[name]).all() for name in whole)


@pytest.mark.timeout(300)
def test_clusters_and_small_pictures_have_no_room(weakspot, small, full_after):
    """The small pictures are rows of the shards of `causes`, the clusters a folder of images."""
    command = ("causes", "export", small / "weakspot.yaml", "--quiet")
    for size in (0, 100, 1000, 4000):
        with files_end_at(size):
            check_refused(weakspot(*command), small)
        assert not (small / "runs" / "weakspot" / "clusters").exists()
    for calls in range(0, 400, 40):
        full_after(calls)
        ended = weakspot(*command)
        full_after(None)
        if ended[0] == 0:
            break
        check_refused(ended, small)
        assert not (small / "runs" / "weakspot" / "clusters").exists()
    assert calls
    if ended[0]:
        assert weakspot(*command)[0] == 0
    late = contents(small / "runs" / "weakspot" / "clusters")
    assert weakspot("causes", "export", small / "weakspot.yaml", "--quiet", "--run", small / "other")[0] == 0
    assert late == contents(small / "other" / "clusters")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux: a device that is always full")
@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "run"), ("show", "run", "--json"), ("show", "run", "robustness.neighbours", "--rows", "500"),
        ("compare", "run", "other", "--all"), ("gate", "run", "policy.yaml", "--json"), ("report", "run"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_output_that_goes_to_a_full_disk(tmp_path, arguments):
    """As in `weakspot show run --json > numbers.json`: neither success nor a gate that failed."""
    folder = make_all(tmp_path / "project")
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", CALL, *arguments]
        ended = subprocess.run(command, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2, ended
    assert len(ended.stderr.splitlines()) == 1 and ended.stderr.startswith("weakspot: "), ended.stderr
    assert "No space left on device" in ended.stderr
