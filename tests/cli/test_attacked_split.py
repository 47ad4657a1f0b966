"""A split that is another one, attacked."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from weakspot.cli.main import app

NETS = """
import torch
from torch import nn

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "attacked_nets.py").write_text(NETS)
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "clean.npz", x=rng.random((30, 3, 2, 2), dtype=np.float32), y=rng.integers(0, 3, 30))
    return tmp_path


def examined(folder, test: str, *arguments: str):
    (folder / "weakspot.yaml").write_text(
        "subject: {model: 'attacked_nets:net', scores: logits, bounds: [0, 1]}\n"
        f"data:\n  test: {test}\n  clean: {{path: clean.npz, inputs: x, targets: y}}\n"
        "ask: {predictions: {}}\n"
    )
    return CliRunner().invoke(app, ["examine", str(folder / "weakspot.yaml"), "--json", *arguments])


def test_an_attacked_split_is_examined_like_any_other(folder):
    done = examined(folder, "{path: clean, attack: fgsm, arguments: {epsilon: 0.3}}")
    assert done.exit_code == 0, done.exception
    clean = examined(folder, "{path: clean.npz, inputs: x, targets: y}", "--run", str(folder / "other"))
    after, before = (json.loads(run.stdout)[0]["summary"] for run in (done, clean))
    assert after["accuracy"]["value"] < before["accuracy"]["value"]
    assert list((folder / "runs" / "weakspot" / "sets").iterdir())


def test_only_so_many_samples_are_attacked_as_are_looked_at(folder):
    done = examined(folder, "{path: clean, attack: fgsm, arguments: {epsilon: 0.3}}", "--limit", "8")
    assert done.exit_code == 0, done.exception
    (made,) = (folder / "runs" / "weakspot" / "sets").glob("*/part-000000/inputs.npy")
    assert np.load(made).shape == (8, 3, 2, 2)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (
            "{path: cleen, attack: fgsm, arguments: {epsilon: 0.3}}",
            "yaml:3: .*expected the split to attack",
        ),
        ("{path: clean, attack: fgms, arguments: {epsilon: 0.3}}", "did you mean 'fgsm'"),
        ("{path: clean, attack: fgsm, arguments: {epsilon: much}}", "epsilon is 'much'"),
        (
            "{path: clean, attack: fgsm, arguments: {epsilon: 0.3}, size: [2, 2]}",
            "size means nothing",
        ),
    ],
)
def test_an_attack_that_cannot_be_made_is_refused(folder, test, message):
    refused = examined(folder, test)
    assert re.search(message, str(refused.exception), re.DOTALL), refused.exception
