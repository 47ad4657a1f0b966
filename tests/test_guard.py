"""A test that leaves something behind fails by its name, and the one after it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SPOILING = {
    "close": ("sys.stderr.close()", "closes a stream that pytest captures output with"),
    "close_by_logging": (
        "handler = Closing(sys.stderr)\nlogging.config.dictConfig({'version': 1})",
        "closes a stream that pytest captures output with",
    ),
    "wrap": ("io.TextIOWrapper(sys.stdout.buffer)", "unclosed file"),
    "patch": ("threading.Thread = dict", "threading.Thread is <class 'dict'>"),
    "move": ("os.chdir('/')", "the working directory is '/'"),
    "export": ("os.environ['LEFT'] = '1'", "$LEFT is '1', was None"),
    "unset": ("del os.environ['PATH']", "$PATH is None"),
    "signal": ("signal.signal(signal.SIGINT, print)", "the handler of SIGINT is <built-in function print"),
    "gradients": ("torch.set_grad_enabled(False)", "torch's gradients is False, was True"),
    "thread": ("threading.Thread(target=END.wait, name='late').start()", "the thread 'late', which still runs"),
    "process": ("KEPT.append(subprocess.Popen(['sleep', '600']))", ": sleep 600"),
}
FILE = """
import io, logging, logging.config, os, random, signal, subprocess, sys, threading
import numpy, pytest, torch
from tests import guard

guard.PATIENCE = 0.1
END, KEPT = threading.Event(), []

class Closing(logging.StreamHandler):
    def close(self):
        self.stream.close()
        super().close()

@pytest.fixture(scope="session", autouse=True)
def _end():
    yield
    END.set()
    for process in KEPT:
        process.wait()

def seen():
    return (os.getcwd(), sys.stdout, threading.Thread, dict(guard.variables()), signal.getsignal(signal.SIGINT),
            torch.is_grad_enabled(), random.random(), numpy.random.rand(), torch.rand(1).item())

FIRST = []

def test_first():
    FIRST.append(seen())
"""
TESTS = """
def test_{name}(capfd):
    pass

def test_spoils_{name}():
    {code}

def test_after_{name}(capsys):
    print("heard")
    assert capsys.readouterr().out == "heard\\n"
    del FIRST[1:]

def test_as_ever_{name}():
    assert seen() == FIRST[0]
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What pytest prints of a file with all of them, run in one process."""
    folder = tmp_path_factory.mktemp("spoiling")
    tests = [TESTS.format(name=name, code=code.replace("\n", "\n    ")) for name, (code, _) in SPOILING.items()]
    (folder / "test_spoiling.py").write_text(FILE + "".join(tests))
    command = [sys.executable, "-m", "pytest", "-p", "tests.guard", "-q", "-rA", "--rootdir", folder, "-c", "/dev/null"]
    options = ["-p", "no:cacheprovider", "-W", "error", folder]
    return subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("name", SPOILING)
def test_what_is_left_behind_is_told(outcome, name):
    assert re.search(rf"^(FAILED|ERROR) \S+::test_spoils_{name}\b", outcome, re.MULTILINE), outcome
    assert SPOILING[name][1] in outcome.partition(f" test_spoils_{name} _")[2].partition("\n____")[0]


@pytest.mark.parametrize("name", SPOILING)
def test_the_next_tests_stand(outcome, name):
    for which in (name, f"after_{name}", f"as_ever_{name}"):
        assert re.search(rf"^PASSED \S+::test_{which}$", outcome, re.MULTILINE), outcome
