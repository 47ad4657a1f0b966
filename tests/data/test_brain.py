"""The brain-like phantom: made from the id alone, with truth that holds, and hard enough to err on."""

import nibabel
import numpy as np
import pytest
import torch
from scipy import ndimage

from weakspot.core.errors import ConfigError, RunError
from weakspot.data import brain_nets
from weakspot.data.brain import CLASSES, SHAPE, SPACING, BrainVolumes, brain, brain_of, write_data_set
from weakspot.data.nifti import NiftiFolder


def test_made_from_the_id_alone():
    source = BrainVolumes("test", 5)
    together, alone = source.read(np.arange(5)), source.read(np.array([3]))
    assert together.inputs.shape == (5, 2, *SHAPE) and together.inputs.dtype == torch.float32
    assert torch.equal(together.inputs[3], alone.inputs[0]) and torch.equal(together.targets[3], alone.targets[0])
    assert not torch.equal(together.inputs[0], BrainVolumes("train", 1).read(np.array([0])).inputs[0])
    assert [float(alone.metadata[f"spacing_{axis}"][0]) for axis in "zyx"] == list(SPACING)
    assert len({BrainVolumes(s, n, SHAPE).fingerprint() for s in "ab" for n in (1, 2)}) == 4


@pytest.mark.parametrize("seed", range(4))
def test_lesions_are_bright_then_dark_and_look_alikes_lie_apart(seed):
    made = brain(seed)
    flair, t1 = made.images
    assert 1 <= made.lesions.max() <= 8 and len(made.kinds) == made.look_alikes.max()
    assert not ((made.lesions > 0) & (made.look_alikes > 0)).any()
    _, count = ndimage.label(made.lesions > 0, np.ones((3, 3, 3)))
    for number in range(1, made.lesions.max() + 1):
        own = made.lesions == number
        shell = ndimage.binary_dilation(own, iterations=2) & ~ndimage.binary_dilation(own) & (made.lesions == 0)
        assert own.sum() >= 3
        assert flair[own].mean() > np.median(flair[shell]) and t1[own].mean() < t1[shell].max()
    assert count >= 1 and made.images[:, 0, 0, 0].tolist() == [0, 0]


def test_too_small_for_a_brain():
    with pytest.raises(ConfigError, match="16 voxels or more"):
        brain(0, (8, 32, 32))


def test_written_as_a_data_set(tmp_path):
    write_data_set(tmp_path / "set", ["x", "y"])
    source = NiftiFolder(tmp_path / "set")
    batch = source.read(np.array([0, 1]))
    assert np.array_equal(batch.inputs[1], brain_of("y").images) and source.classes == CLASSES
    assert np.array_equal(batch.targets[0], brain_of("x").lesions > 0)
    assert source.grid("x").spacing == pytest.approx(SPACING)
    assert nibabel.load(tmp_path / "set" / "labelsTr" / "x.nii.gz").shape == SHAPE[::-1]
    with pytest.raises(RunError, match="exists already"):
        write_data_set(tmp_path / "set", ["x"])


def test_the_network_finds_lesions_and_takes_look_alikes_for_some(tmp_path):
    batch = brain_nets.test().read(np.arange(8))
    with torch.no_grad():
        found = brain_nets.model(0)(batch.inputs).argmax(1).numpy() == 1
    true = batch.targets.numpy() == 1
    assert 2 * (found & true).sum() / (found.sum() + true.sum()) > 0.4
    labels = [ndimage.label(own, np.ones((3, 3, 3))) for own in found]
    false = sum(int(not true[i][own == n].any()) for i, (own, count) in enumerate(labels) for n in range(1, count + 1))
    assert false >= 5
    brain_nets.write_stored_samples(tmp_path / "stored", ["x"], folds=1)
    with np.load(tmp_path / "stored" / "fold_0" / "x.npz") as stored:
        assert stored["probabilities"].shape == (2, *SHAPE)
        assert np.allclose(stored["probabilities"].sum(0), 1, atol=2e-3)
