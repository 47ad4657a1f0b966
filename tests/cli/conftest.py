"""What all tests of the command line share: a call in this process, and a small project."""

import itertools
import sys
import textwrap

import numpy as np
import pytest

from weakspot.cli import main

NUMBER = itertools.count()
COVERAGE = "coverage: {criteria: [nc, kmnc, idc], baseline: false, agreement: false}"


@pytest.fixture
def weakspot(monkeypatch, capsys):
    """Calls the command in this process: exit code, standard output, standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["weakspot", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main.run()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return call


@pytest.fixture
def project(tmp_path):
    """A folder with a net, its weights, data and a configuration, under module names of its own."""
    module = f"nets_{next(NUMBER)}"
    (tmp_path / f"{module}.py").write_text(
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
    np.savez(tmp_path / "data.npz", **arrays, **targets)
    made = Project(tmp_path, module)
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
