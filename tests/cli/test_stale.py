"""A model that is edited between two calls of the same command: what it answered before is not used again."""

import json
import sys

import numpy as np
import pytest

NETS = """
import torch
from torch import nn

SCALE = 1.0


class Net(nn.Module):
    def __init__(self, shift=0.0):
        super().__init__()
        self.layer, self.shift = nn.Linear(3, 2, bias=False), shift
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[1.0, 0, 0], [-1.0, 0, 0]]))

    def forward(self, x):
        return self.layer(x) + torch.tensor([0.0, self.shift])


def preprocess(x):
    return x * SCALE
"""
PROBE = """
from weakspot import Estimate, Probe, Sum


class Wrong(Probe):
    '''The share of inputs that are predicted incorrectly.'''

    wrong, seen = Sum(), Sum()

    def observe(self, seen):
        self.wrong = self.wrong + (seen.predicted != seen.targets).sum()
        self.seen = self.seen + len(seen.ids)

    def finish(self):
        return self.finding(summary={"error_share": Estimate(float(self.wrong / self.seen))})
"""


class Project:
    """A net that is always right, and a rule that it must be."""

    def __init__(self, folder, weakspot, monkeypatch):
        self.folder, self._call = folder, weakspot
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        values = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
        np.savez(folder / "data.npz", x_test=values, y_test=(values[:, 0] < 0).astype(int))
        (folder / "stale_nets.py").write_text(NETS)
        (folder / "stale_probe.py").write_text(PROBE)
        (folder / "policy.yaml").write_text("rules:\n- {finding: wrong, number: error_share, at_most: 0.2}\n")

    def edit(self, old, new):
        text = (self.folder / "stale_nets.py").read_text()
        assert old in text
        (self.folder / "stale_nets.py").write_text(text.replace(old, new))

    def examine(self, run="run", arguments="{}"):
        """The share of errors, what was told, and whether the gate lets it pass."""
        sys.modules.pop("stale_nets", None)
        subject = f"{{model: 'stale_nets:Net', preprocess: 'stale_nets:preprocess', arguments: {arguments}}}"
        (self.folder / "weakspot.yaml").write_text(f"subject: {subject}\ndata: {{test: data.npz}}\nask: {{}}\n")
        asked = ("--probe", "stale_probe:Wrong", "--run", self.folder / run)
        code, _, said = self._call("examine", self.folder / "weakspot.yaml", *asked)
        assert code == 0, said
        finding = json.loads((self.folder / run / "findings" / "wrong" / "finding.json").read_text())
        passed = self._call("gate", self.folder / run, self.folder / "policy.yaml")[0] == 0
        return dict(finding["summary"])["error_share"]["value"], said, passed


@pytest.fixture
def project(tmp_path, weakspot, monkeypatch):
    yield Project(tmp_path, weakspot, monkeypatch)
    for name in ("stale_nets", "stale_probe"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [("return self.layer(x)", "return -self.layer(x)"), ("SCALE = 1.0", "SCALE = -1.0"), ("x * SCALE", "x * -SCALE")],
    ids=["forward", "a constant of pre-processing", "pre-processing"],
)
def test_an_edited_model_is_examined_again(project, old, new):
    assert project.examine()[::2] == (0.0, True)
    project.edit(old, new)
    assert project.examine()[::2] == (1.0, False)
    assert project.examine("fresh")[0] == 1.0


def test_other_arguments_are_another_model(project):
    assert project.examine()[0] == 0.0
    assert project.examine(arguments="{shift: 100.0}")[0] > 0.2


def test_a_model_that_varies_is_told_on_the_command_line(project):
    assert "differently" not in project.examine()[1]
    project.edit("return self.layer(x)", "return self.layer(x) + torch.rand(2)")
    said = [line for line in project.examine()[1].splitlines() if "differently" in line]
    assert len(said) == 1 and said[0].startswith(
        "weakspot: the model answers differently each time: the same 4 samples"
    )
