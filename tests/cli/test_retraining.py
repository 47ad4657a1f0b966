"""`weakspot causes retrain`: labels of a Run in, better weights and an honest comparison out."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
import torch
import yaml
from safetensors.torch import load_file

from weakspot import Finding, Run
from weakspot.core.finding import Estimate

NUMBER = itertools.count()

NETS = """
import numpy as np
import torch
from torch import nn

from weakspot.data.sources import ArraySource


def net():
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    return made


def data(split, targets=True):
    rng = np.random.default_rng(len(split))
    inputs = rng.normal(size=(120, 4)).astype(np.float32)
    true = np.abs(inputs[:, :3]).argmax(1)
    return ArraySource(inputs, true if targets else None, ids=[f"{split}-{n:03d}" for n in range(120)])


def train(model, batches, *, validation, recipe):
    with torch.no_grad():
        model[2].bias.add_(recipe.learning_rate)
"""
FILE = """
subject: {{model: "{module}:net", classes: [red, green, blue], scores: logits}}
data:
  train: {{path: "{module}:data", arguments: {{split: train}}}}
  test: {{path: "{module}:data", arguments: {{split: test}}}}
  pool: {{path: "{module}:data", arguments: {{split: pool, targets: {targets}}}}}
ask: {{causes: {{replicates: 0}}}}
"""


@pytest.fixture
def labelled(tmp_path, weakspot, request):
    """A Run with root causes and forty labels."""
    module = f"retrained_{next(NUMBER)}"
    (tmp_path / f"{module}.py").write_text(NETS)
    file = tmp_path / "it.yaml"
    file.write_text(FILE.format(module=module, targets=getattr(request, "param", "true")))
    assert weakspot("causes", file, "--quiet") == (0, "", "")
    run = Run.open(tmp_path / "runs" / "it")
    rng = np.random.default_rng(len("pool"))
    true = np.abs(rng.normal(size=(120, 4)).astype(np.float32)[:, :3]).argmax(1)
    names = [f"pool-{n:03d}" for n in range(50)]
    labels = [["red", "green", "blue"][true[n]] if n < 40 else None for n in range(50)]
    table = pa.table({"id": names, "cluster": [1 + n % 3 for n in range(50)], "label": labels})
    run.save(Finding(name="causes.labels", summary={"labelled": Estimate(40)}, table=table))
    return file, run


FEW = ("--repeats", 2, "--epochs", 3, "--learning-rate", 0.05, "--batch-size", 16)


def test_better_weights_a_finding_and_a_new_file(weakspot, labelled):
    file, run = labelled
    code, out, _ = weakspot("causes", "retrain", file, *FEW)
    assert code == 0
    assert "next: weakspot examine" in out
    finding = run["causes.retraining"]
    assert set(finding.table["method"].to_pylist()) == {"unsafe set", "random images", "failing images"}
    assert finding.summary["repeats"].value == 2
    assert any(part.startswith("cluster") for part in finding.table["part"].to_pylist())
    assert not (run.folder / "retraining").exists()
    assert weakspot("report", run.folder, "--quiet") == (0, "", "")
    weights = load_file(run.folder / "retrained.safetensors")
    assert weights["0.weight"].shape == (16, 4)
    written = yaml.safe_load((file.parent / "it-retrained.yaml").read_text())
    assert written["subject"]["weights"] == "runs/it/retrained.safetensors"
    assert weakspot("causes", file.parent / "it-retrained.yaml", "--quiet")[0] == 0
    again = Run.open(file.parent / "runs" / "it-retrained")
    after = finding.arrays["after-unsafe_set"][0]
    assert again["causes.errors"].summary["errors"].value == (~after).sum()


def test_json_and_a_training_function_of_ones_own(weakspot, labelled):
    file, run = labelled
    module = file.read_text().split('model: "')[1].split(":net")[0]
    given = ("--train-function", f"{module}:train", "--learning-rate", 0.5, "--no-baselines", "--repeats", 1)
    code, out, _ = weakspot("causes", "retrain", file, *given, "--validation", 0, "--json")
    assert code == 0
    [entry] = json.loads(out)
    assert entry["summary"]["baselines"]["value"] == "none"
    old = yaml.safe_load(file.read_text())["subject"]
    assert old["model"] == f"{module}:net"
    torch.manual_seed(0)
    bias = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))[2].bias
    assert torch.allclose(load_file(run.folder / "retrained.safetensors")["2.bias"], bias + 0.5)


def test_interrupted_it_goes_on_and_ends_with_the_same_weights(weakspot, labelled, monkeypatch):
    file, run = labelled
    assert weakspot("causes", "retrain", file, *FEW, "--quiet")[0] == 0
    whole = load_file(run.folder / "retrained.safetensors")
    (run.folder / "retrained.safetensors").unlink()
    samples = itertools.count()

    def interrupt(self, some):
        if next(samples) == 25:  # batches: in the third epoch of the first training
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("weakspot.asking.progress.Bar.advance", interrupt)
        code, _, err = weakspot("causes", "retrain", file, *FEW)
    assert code == 130
    assert "stopped; the same command resumes from here" in err
    [kept] = (run.folder / "retraining").iterdir()
    assert json.loads((kept / "progress.json").read_text())["epochs"] == 2
    assert weakspot("causes", "retrain", file, *FEW, "--quiet")[0] == 0
    again = load_file(run.folder / "retrained.safetensors")
    assert all(torch.equal(whole[name], again[name]) for name in whole)


@pytest.mark.parametrize("labelled", ["false"], indirect=True)
def test_without_targets_there_are_no_baselines(weakspot, labelled):
    file, run = labelled
    assert weakspot("causes", "retrain", file, *FEW, "--quiet") == (0, "", "")
    assert run["causes.retraining"].summary["baselines"].value == "none"


def test_what_cannot_be_retrained_is_told(weakspot, labelled):
    file, run = labelled
    code, _, err = weakspot("causes", "retrain", file, "--split", "fresh")
    assert code == 2
    assert "retraining needs the split 'fresh', and the data have only train, test, pool" in err
    file.write_text(file.read_text() + "retrain: {epoch: 3}\n")
    assert "retrain.epoch is not known: did you mean 'epochs'?" in weakspot("causes", "retrain", file)[2]
    file.write_text(file.read_text().replace("retrain: {epoch: 3}\n", "").replace("[red", "[rouge"))
    assert "is of another model than the file names now" in weakspot("causes", "retrain", file)[2]
    empty = pa.table({"id": ["a"], "cluster": [1], "label": pa.array([None], pa.string())})
    run.save(Finding(name="causes.labels", table=empty))
    code, _, err = weakspot("causes", "retrain", file)
    assert code == 2
    assert "holds no labels, so there is nothing to retrain on: choose images with `weakspot causes select`" in err


def test_the_controls_are_chosen_on_the_command_line(labelled, weakspot):
    file, run = labelled
    asked = [
        "--method",
        "random images repeated",
        "--method",
        "least confident images repeated",
        "--method",
        "training set alone",
    ]
    assert weakspot("causes", "retrain", file, "--repeats", 1, "--epochs", 1, *asked, "--quiet") == (0, "", "")
    made = set(run["causes.retraining"].table["method"].to_pylist())
    assert made == {"unsafe set", "random images repeated", "least confident images repeated", "training set alone"}
    code, _, said = weakspot("causes", "retrain", file, "--method", "luck", "--quiet")
    assert code != 0 and "there is no method 'luck': choose from unsafe set, random images" in said
