"""Volumes, ensembles and windows as `weakspot.yaml` names them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tests.data.niftis import data_set
from weakspot.asking.config import read_config
from weakspot.asking.loading import load
from weakspot.core.errors import ConfigError, DataError
from weakspot.data.nifti import NiftiFolder
from weakspot.looks import Ensemble, StoredSamples

CONFIG = """
subject:
  model: "torch.nn:Conv3d"
  arguments: {in_channels: 1, out_channels: 2, kernel_size: 1}
  weights: [one.safetensors, two.safetensors]
  task: segmentation
  scores: logits
  window: [4, 4, 4]
data:
  test: {path: set, spacing: [2, 2, 2], orientation: RAS, normalise: volume, sequences: [1], cases: cases.txt}
  all: set/imagesTr
"""


def loaded(folder: Path, text: str):
    (folder / "weakspot.yaml").write_text(text)
    return load(read_config(folder / "weakspot.yaml"), folder)


@pytest.fixture
def project(tmp_path):
    data_set(tmp_path / "set")
    (tmp_path / "cases.txt").write_text("b\n")
    for seed, name in enumerate(("one", "two")):
        torch.manual_seed(seed)
        save_file(nn.Conv3d(1, 2, 1).state_dict(), tmp_path / f"{name}.safetensors")
    return tmp_path


def test_volumes_an_ensemble_and_a_window(project):
    found = loaded(project, CONFIG)
    assert isinstance(found.data["all"], NiftiFolder) and found.data["all"].ids == ("a", "b")
    batch = found.data["test"].read(np.array([0]))
    assert batch.ids == ("b",) and batch.inputs.shape == (1, 1, 4, 4, 3)
    model = found.subject.model
    assert isinstance(model, Ensemble) and len(model.members) == 2
    assert not torch.equal(model.members[0].weight, model.members[1].weight)
    assert not found.subject.white_box  # a window stands between
    with found.subject.borrowed() as forward, torch.no_grad():
        assert torch.allclose(forward(batch.inputs), model(batch.inputs), atol=1e-5)


def test_stored_samples_are_a_model_without_weights(project, monkeypatch):
    monkeypatch.chdir(project)
    for fold in ("fold_0", "fold_1"):
        (project / fold).mkdir()
        np.savez(project / fold / "a.npz", probabilities=np.full((2, 8, 7, 6), 0.5))
    text = """
subject: {model: "weakspot.looks:StoredSamples", arguments: {folders: [fold_0, fold_1]}, task: segmentation,
          scores: probabilities}
data: {test: set}
"""
    subject = loaded(project, text).subject
    for turned in ("{path: set, orientation: RAS}", "{path: set, spacing: [1, 1, 1]}"):
        with pytest.raises(ConfigError, match="stored samples lie on the grid of the image files"):
            loaded(project, text.replace("{test: set}", f"{{test: {turned}}}"))
    assert isinstance(subject.model, StoredSamples)
    first = subject.fingerprint()
    np.savez(project / "fold_1" / "a.npz", probabilities=np.full((2, 8, 7, 6), 0.4))
    assert loaded(project, text).subject.fingerprint() != first


def test_what_is_refused(project):
    with pytest.raises(ConfigError, match=r"weakspot.yaml:5: .*three.safetensors"):
        loaded(project, CONFIG.replace("two.safe", "three.safe"))
    with pytest.raises(ConfigError, match=r"cannot read .*none.txt"):
        loaded(project, CONFIG.replace("cases.txt", "none.txt"))
    (project / "cases.txt").write_text("c")
    with pytest.raises(DataError, match=r"weakspot.yaml:10: .*no case c"):
        loaded(project, CONFIG)
