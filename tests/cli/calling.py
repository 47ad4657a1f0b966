"""A call of the command line in this process, and a small project to call it on; also for scripts that are no tests."""

import io
import itertools
import signal
import sys
import textwrap
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import numpy as np

from weakspot.cli import main

NUMBER = itertools.count()
COVERAGE = "coverage: {criteria: [nc, kmnc, idc], baseline: false, agreement: false}"


class Hang(BaseException):
    """A command took longer than it may."""


@contextmanager
def at_most(seconds):
    """End what waits for ever; in the main thread only."""

    def stop(*_):
        raise Hang(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def call(*arguments):
    """Exit code, standard output and standard error."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    before = sys.argv
    sys.argv = ["weakspot", *map(str, arguments)]
    try:
        with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            main.run()
        code = "returned"  # it must end with an exit code
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.argv = before
    return code, *(stream.buffer.getvalue().decode() for stream in streams)


def make_project(folder):
    """A folder with a net, its weights, data and a configuration, under module names of its own."""
    module = f"nets_{next(NUMBER)}"
    (folder / f"{module}.py").write_text(
        textwrap.dedent(
            """
            import torch
            from torch import nn

            from weakspot import Estimate, Probe, Sum

            def net(hidden=8):
                torch.manual_seed(0)
                return nn.Sequential(nn.Linear(3, hidden), nn.ReLU(), nn.Linear(hidden, 2))

            def scaled(inputs):
                return inputs / 2

            class Mine(Probe):
                '''Counts inputs.

                times: how often each counts.
                '''

                times: int = 1
                count = Sum()

                def observe(self, seen):
                    self.count = self.count + self.times * len(seen.ids)

                def finish(self):
                    return self.finding(summary={"counted": Estimate(int(self.count))})

            class Needy(Mine):
                '''Has an option without default.'''

                must: int
            """
        )
    )
    rng = np.random.default_rng(0)
    arrays = {f"x_{s}": rng.normal(size=(n, 3)).astype(np.float32) for s, n in (("train", 40), ("test", 30))}
    targets = {f"y_{s}": rng.integers(0, 2, n) for s, n in (("train", 40), ("test", 30))}
    np.savez(folder / "data.npz", **arrays, **targets)
    made = Project(folder, module)
    made.write()
    return made


class Project:
    def __init__(self, folder, module):
        self.folder, self.module, self.file = folder, module, folder / "weakspot.yaml"

    def write(self, text=None, *, subject="", data="train: data.npz, test: data.npz", ask=COVERAGE):
        self.file.write_text(
            text
            if text is not None
            else f"subject: {{model: '{self.module}:net', scores: logits{subject}}}\ndata: {{{data}}}\nask: {{{ask}}}\n"
        )
        return self.file

    @property
    def run(self):
        return self.folder / "runs" / "weakspot"
