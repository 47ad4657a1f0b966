"""No test may change what the next one meets: one that leaves something behind fails by its name.

What can be put back is put back, so that the tests after it stand.
"""

import gc
import os
import random
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import torch

PATIENCE = 30.0
"""Seconds for threads and processes that are ending; only a test that fails waits that long."""
TASKS = Path("/proc/self/task")
STAYING = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "torch/_inductor/compile_worker")
"""Processes that a library starts once and keeps."""
OF_SERVERS = "AnyIO worker thread"
"""The name of threads that end with the server that they belong to, which may be a fixture's of several tests."""
OF_OTHERS = (
    "PYTEST_", "RAY_", "KERAS_", "TF_", "TORCH", "_TORCH", "TRITON_", "CUDA_", "XLA_", "KMP_", "OMP_", "HF_",
    "PYTHONBREAKPOINT",
)  # fmt: skip
"""Variables that pytest and libraries set for themselves, some when they are first loaded."""


def pytest_addoption(parser):
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run files, and the tests in each, in random order")


def pytest_collection_modifyitems(config, items):
    """Whole files together: what a file's tests share is made once."""
    seed = config.getoption("--shuffle")
    if seed is not None:
        chance = random.Random(seed)
        files = {item.path: chance.random() for item in items}
        items.sort(key=lambda item: (files[item.path], chance.random()))


@pytest.fixture(scope="session", autouse=True)
def _streams_stay_open():
    """Whoever closes the streams that pytest captures with fails there: all later tests of the process would, too."""
    with kept_open(sys.stdout), kept_open(sys.stderr):
        yield


@contextmanager
def kept_open(stream):
    """Refuse to close a text stream, or what it writes to."""
    guarded = (stream, stream.buffer)
    for part in guarded:
        part.close = _refuse
    try:
        yield
    finally:
        for part in guarded:
            del part.close


def _refuse():
    pytest.fail("a test closes a stream that pytest captures output with: close only what the test has opened")


@pytest.fixture(autouse=True)
def _leaves_nothing():
    """Compare what others depend on, before and after each test; chance begins alike for every one of them."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    before = World()
    yield
    left = before.left_behind()
    if left:
        pytest.fail("this test leaves behind: " + "; ".join(left), pytrace=False)


class World:
    """What every test of a process shares."""

    def __init__(self):
        self.settings, self.variables = settings(), variables()
        self.threads, self.processes = set(threading.enumerate()), children()

    def left_behind(self):
        """What is not as it was, in words; put back as far as it can be."""
        if self._new_threads() or children() - self.processes:
            gc.collect()  # what was left in a cycle ends now, not in the midst of another test
        return [*self._changed_settings(), *self._changed_variables(), *self._threads(), *self._processes()]

    def _changed_settings(self):
        after = settings()
        for name, (value, put_back) in self.settings.items():
            now = after[name][0]
            if now != value:
                put_back(value)
                yield f"{name} is {now!r}, was {value!r}"

    def _changed_variables(self):
        now = variables()
        for name in sorted(
            name for name in now.keys() | self.variables.keys() if now.get(name) != self.variables.get(name)
        ):
            yield f"${name} is {now.get(name)!r}, was {self.variables.get(name)!r}"
            if name in self.variables:
                os.environ[name] = self.variables[name]
            else:
                del os.environ[name]

    def _new_threads(self):
        new = set(threading.enumerate()) - self.threads
        return [thread for thread in new if not thread.daemon and thread.name != OF_SERVERS]

    def _threads(self):
        until = time.monotonic() + PATIENCE
        for thread in self._new_threads():
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                yield f"the thread {thread.name!r}, which still runs"

    def _processes(self):
        until = time.monotonic() + PATIENCE
        while (new := children() - self.processes) and time.monotonic() < until:
            time.sleep(0.05)
        for process in sorted(new):
            yield f"the process {process}: {command_of(process)}"
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)


def settings():
    """Settings of the whole process, each with what sets it."""
    found = {
        "the working directory": (str(Path.cwd()), os.chdir),
        "threading.Thread": (threading.Thread, lambda value: setattr(threading, "Thread", value)),
        "sys.argv": (list(sys.argv), lambda value: setattr(sys, "argv", value)),
        "torch's gradients": (torch.is_grad_enabled(), torch.set_grad_enabled),
        "torch's default dtype": (torch.get_default_dtype(), torch.set_default_dtype),
        "torch's determinism": (torch.are_deterministic_algorithms_enabled(), torch.use_deterministic_algorithms),
        "numpy's error handling": (np.geterr(), lambda value: np.seterr(**value)),
    }
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        found[f"the handler of {number.name}"] = (signal.getsignal(number), _handle(number))
    return found


def _handle(number):
    return lambda handler: signal.signal(number, handler)


def variables():
    return {name: value for name, value in os.environ.items() if not name.startswith(OF_OTHERS)}


def children():
    """The ids of this process's living children; none where the system does not tell."""
    found = set()
    for task in TASKS.iterdir() if TASKS.exists() else ():
        with suppress(OSError):  # a thread that has just ended
            found.update(map(int, (task / "children").read_text().split()))
    return {process for process in found if _lives(process)}


def _lives(process):
    """Whether it has not ended, also where nobody has asked for its status yet, and is not one that stays."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and not any(name in command_of(process) for name in STAYING)
    except OSError:
        return False


def command_of(process):
    return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()
