"""Reading Runs where torch is not installed, and on systems that lack what Linux and macOS have."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.docs.test_packaging import PROJECT, closure
from tests.gate.samples import make_run, neighbours
from weakspot import Answers
from weakspot.core import locks
from weakspot.core.engine import peak_memory
from weakspot.core.errors import ConfigError, RunError
from weakspot.core.finding import Finding
from weakspot.core.own_process import allow_many_files
from weakspot.core.run import Run

READER = tomllib.loads((Path(__file__).resolve().parents[2] / "reader" / "pyproject.toml").read_text())["project"]
BLOCKING = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])

sys.meta_path.insert(0, Missing())
sys.argv = ["weakspot", *{arguments}]
from weakspot.cli.main import run
run()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small finished Run, and a policy for it."""
    folder = tmp_path_factory.mktemp("read")
    make_run(folder / "run", neighbours())
    (folder / "policy.yaml").write_text("rules: [{finding: robustness.neighbours, number: weak_share, at_most: 0.7}]")
    return folder


def without(blocked, *arguments):
    code = BLOCKING.format(blocked=sorted(blocked), arguments=[str(one) for one in arguments])
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)


def not_in_the_reader():
    """The modules that are installed here and that the reader does not bring."""
    brought = closure(READER["dependencies"])
    named = {module: {canonicalize_name(one) for one in of} for module, of in packages_distributions().items()}
    return {module for module, of in named.items() if not of & brought and "weakspot" not in of}


def test_the_reader_runs_on_what_it_brings(made):
    blocked = not_in_the_reader()
    assert {"torch", "sklearn", "safetensors", "rich", "matplotlib"} & blocked >= {"torch", "sklearn", "safetensors"}
    run, policy = made / "run", made / "policy.yaml"
    for command in (
        ("show", run), ("report", run, "--output", made / "page.html"), ("gate", run, policy), ("compare", run, run),
        ("evidence", run, "--output", made / "evidence"), ("evidence", "verify", made / "evidence"), ("--version",),
    ):  # fmt: skip
        done = without(blocked, *command)
        assert (done.returncode, done.stderr) == (0, ""), command
    assert (made / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_what_needs_a_model_says_what_is_missing(made):
    for command in (("examine", "x.yaml"), ("demo",), ("init", "--model", "a:b", "--test", "c")):
        done = without({"torch"}, *command)
        assert done.returncode == 2 and done.stderr.startswith("weakspot: this command needs torch, which is not ins")


def test_the_reader_is_of_the_same_project():
    mine = PROJECT["project"]
    wanted = {Requirement(line).name: line for line in mine["dependencies"]}
    assert all(wanted[Requirement(line).name] == line for line in READER["dependencies"])
    assert "torch" not in {Requirement(line).name for line in READER["dependencies"]}
    assert READER["scripts"] == mine["scripts"] and READER["entry-points"] == mine["entry-points"]
    for extra, lines in READER["optional-dependencies"].items():
        assert lines == mine["optional-dependencies"][extra]


def test_a_system_without_locks_reads_and_does_not_write(made, tmp_path):
    lacking = {"fcntl", "resource"}
    for command in (("show", made / "run"), ("report", made / "run", "--output", tmp_path / "page.html")):
        done = without(lacking, *command)
        assert (done.returncode, done.stderr) == (0, "")


def test_what_such_a_system_cannot_do_is_said(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "resource", None)
    with pytest.raises(RunError, match="writes Runs on Linux and macOS only"), Answers.open(made / "run").locked():
        pytest.fail("a Run without a lock")
    with pytest.raises(RunError, match="no locks of files"):
        locks.lock(0, wait=True)
    with pytest.raises(ConfigError, match="memory can be measured on Linux and macOS only"):
        peak_memory()
    allow_many_files()  # there is nothing to allow


def test_completion_in_the_shell(made):
    for words, expected in (("weakspot gat", "gate"), ("weakspot gate --juni", "--junit")):
        environment = {"_WEAKSPOT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        code = f"import os, sys\nos.environ.update({environment})\nsys.argv = ['weakspot']\n"
        code += "from weakspot.cli.main import run\nrun()"
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout.split(), done.stderr) == (0, [expected], "")


def test_rows_as_json(tmp_path):
    import numpy as np
    import pyarrow as pa

    run = Run.create(tmp_path / "run")
    table = pa.table({"id": ["a", "b", "c"], "x": [1.0, np.nan, np.inf], "day": np.array(["2026-01-02"] * 3, "M8[D]")})
    run.save(Finding("mine", table=table))
    (entry,) = json.loads(without(set(), "show", run.folder, "mine", "--json", "--rows", "3").stdout)
    assert entry["table"] == [
        {"id": "a", "x": 1.0, "day": "2026-01-02"},
        {"id": "b", "x": None, "day": "2026-01-02"},
        {"id": "c", "x": "Infinity", "day": "2026-01-02"},
    ]
    (entry,) = json.loads(without(set(), "show", run.folder, "--json").stdout)
    assert entry["rows"] == 3 and "table" not in entry
