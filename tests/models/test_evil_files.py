"""Hundreds of evil archives, weights and arrays: nothing in them is executed, and they write nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.evil_archives import EvilArchives
from tests.models.evil_arrays import EvilArrays
from tests.models.evil_weights import EvilWeights

CHECKOUT = Path(__file__).resolve().parents[2]
ALIVE = {
    "archives": ("a_file_from_an_operator", "a_graph_twice", "code_in_names_of_values", "code_to_guard_inputs",
                 "imports", "pickled_samples", "pickled_weights", "sizes", "two_names_of_a_member"),
    "arrays": ("a_pickle_alone", "objects", "objects_in_an_npz"),
    "weights": ("calls_in_a_pickle", "calls_in_a_zip", "calls_without_a_zip"),
}  # fmt: skip
"""Kinds of evil that torch alone would run."""


def tried(what, folder, *options):
    """What happened when evil files were loaded in a process of their own."""
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT), *sys.path]),
    }
    command = [sys.executable, "-m", "tests.models.evil_run", what, str(folder), *map(str, options)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def assert_harmless(seen, count):
    assert not seen["strange"]
    assert (seen["harmful"], seen["left"], seen["marks"]) == ({}, [], 0)
    assert sum(seen["ends"].values()) == count
    assert seen["ends"]["refused"] > count / 2


@pytest.mark.parametrize(
    ("what", "kinds"),
    [("archives", EvilArchives.kinds()), ("weights", EvilWeights.kinds()), ("arrays", EvilArrays.kinds())],
    ids=["archives", "weights", "arrays"],
)
def test_nothing_in_evil_files_is_executed_and_nothing_is_written(what, kinds, tmp_path):
    count = 10 * len(kinds)
    assert_harmless(tried(what, tmp_path, "--count", count), count)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["archives", "weights", "arrays"])
def test_nothing_in_a_thousand_evil_files_is_executed(what, tmp_path):
    assert_harmless(tried(what, tmp_path, "--count", 1000, "--seed", 1), 1000)


@pytest.mark.parametrize("what", ["archives", "weights", "arrays"])
def test_torch_alone_would_run_them_and_that_is_noticed(what, tmp_path):
    """So that the other tests see nothing because there is nothing to see."""
    kinds = ALIVE[what]
    seen = tried(what, tmp_path, "--count", 10 * len(kinds), "--unguarded", "--kinds", *kinds)
    assert sorted(seen["harmful"]) == sorted(kinds)
