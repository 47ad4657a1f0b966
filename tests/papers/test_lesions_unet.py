"""The U-Net and its training: the block's dropout, the loss by hand, patches, and going on after a kill."""

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "papers"))
from lesions_patches import Augmentation, blurred, drawn_patch, rotation, turned
from lesions_unet import UNet3d, UNetRecipe, dice_cross_entropy, train_unet

from tests.models.test_exported_others import assert_same
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.core.source import Subset
from weakspot.data.brain import BrainVolumes

SMALL = UNetRecipe(epochs=3, learning_rate=1e-2, batch_size=2, patch=(8, 16, 12), patience=5)


def small_net(seed=0):
    torch.manual_seed(seed)
    return UNet3d(2, widths=(4, 8))


def test_dropout_ends_each_block_and_odd_sizes_come_back():
    net = UNet3d(2, 3, widths=(4, 8, 16), dropout=0.3).eval()
    blocks = [*net.encode, *net.decode]
    assert len(blocks) == 5 and all(isinstance(block[-1], nn.Dropout3d) and block[-1].p == 0.3 for block in blocks)
    assert sum(isinstance(module, nn.Dropout3d) for module in net.modules()) == 5
    with torch.no_grad():
        assert net(torch.zeros(1, 2, 7, 9, 12)).shape == (1, 3, 7, 9, 12)
    with pytest.raises(ConfigError, match="two levels"):
        UNet3d(widths=(4,))


def test_the_loss_by_hand():
    logits = torch.tensor([[[[[2.0, -1.0, 0.0]]], [[[0.0, 1.0, 0.0]]]]])
    targets = torch.tensor([[[[0, 1, 1]]]])
    lesion = [1 / (1 + np.exp(2)), 1 / (1 + np.exp(-2)), 0.5]
    entropy = -(np.log(1 - lesion[0]) + np.log(lesion[1]) + np.log(lesion[2])) / 3
    dice = (2 * (lesion[1] + lesion[2]) + 1) / (sum(lesion) + 2 + 1)
    assert float(dice_cross_entropy(logits, targets)) == pytest.approx(entropy + 1 - dice, abs=1e-6)


def test_training_learns_and_leaves_the_given_network_alone():
    volumes = BrainVolumes("train", 8)
    net = small_net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    recipe = UNetRecipe(epochs=8, learning_rate=2e-2, batch_size=2, patch=(12, 16, 16), augmentation=None)
    trained = train_unet(net, Subset(volumes, range(6)), validation=Subset(volumes, [6, 7]), recipe=recipe)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    batch = volumes.read(np.array([6, 7]))
    with torch.no_grad():
        losses = [float(dice_cross_entropy(own(batch.inputs), batch.targets)) for own in (net.eval(), trained)]
    assert losses[1] < 0.7 * losses[0] and not trained.training


class StopError(Exception):
    """The kill."""


class Stops(BrainVolumes):
    """Fails after so many readings."""

    def __init__(self, after):
        super().__init__("train", 4)
        object.__setattr__(self, "left", itertools.count(after, -1))

    def read(self, positions):
        if next(self.left) <= 0:
            raise StopError
        return super().read(positions)


def test_an_interrupted_training_ends_with_the_same_weights(tmp_path):
    whole = train_unet(small_net(), BrainVolumes("train", 4), recipe=SMALL, checkpoints=tmp_path / "a")
    with pytest.raises(StopError):
        train_unet(small_net(), Stops(10), recipe=SMALL, checkpoints=tmp_path / "b")
    kept = next((tmp_path / "b").iterdir())
    names = sorted(path.name for path in kept.iterdir())
    assert names == ["course.json", "digests.json", "moments.safetensors", "weights.safetensors"]
    resumed = Stops(4)  # one epoch is left
    again = train_unet(small_net(), resumed, recipe=SMALL, checkpoints=tmp_path / "b")
    for one, other in zip(whole.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(one, other)


def test_a_longer_training_goes_on_where_a_shorter_one_ended(tmp_path):
    volumes = BrainVolumes("train", 2)
    recipe = replace(SMALL, epochs=2)
    whole = train_unet(small_net(), volumes, recipe=recipe)
    train_unet(small_net(), volumes, recipe=replace(recipe, epochs=1), checkpoints=tmp_path)
    longer = train_unet(small_net(), volumes, recipe=recipe, checkpoints=tmp_path)
    for one, other in zip(whole.state_dict().values(), longer.state_dict().values(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(ConfigError, match="holds 2 epochs, and 1 are asked for"):
        train_unet(small_net(), volumes, recipe=replace(recipe, epochs=1), checkpoints=tmp_path)


@pytest.mark.parametrize(("rate", "epochs"), [(1e-30, 3), (0.5, 6)])
def test_the_best_weights_are_kept_and_patience_ends_it(tmp_path, rate, epochs):
    """Where nothing changes, after two epochs without a gain; else the weights of the lowest loss come back."""
    volumes = BrainVolumes("train", 3)
    recipe = UNetRecipe(
        epochs=6, learning_rate=rate, batch_size=2, patch=(24, 32, 28), patience=2 if epochs == 3 else 9
    )
    net, judged = nn.Conv3d(2, 2, 1), Subset(volumes, [2])
    trained = train_unet(net, Subset(volumes, [0, 1]), validation=judged, recipe=recipe, checkpoints=tmp_path)
    losses = json.loads(next(tmp_path.glob("*/course.json")).read_text())["losses"]
    assert len(losses) == epochs
    batch = judged.read(np.array([0]))
    with torch.no_grad():
        assert float(dice_cross_entropy(trained(batch.inputs), batch.targets)) == pytest.approx(min(losses), abs=1e-4)


def test_what_is_refused():
    volumes = BrainVolumes("train", 3)
    with pytest.raises(DataError, match="'train-000' is trained on and judged by"):
        train_unet(small_net(), volumes, validation=Subset(volumes, [0]), recipe=SMALL)
    with pytest.raises(ConfigError, match="patch of 1 or more"):
        UNetRecipe(patch=(0, 1, 1))
    broken = small_net()
    nn.init.constant_(broken.classifier.weight, float("nan"))
    with pytest.raises(SubjectError, match="in epoch 1: lower the learning rate"):
        train_unet(broken, volumes, recipe=SMALL)


def test_patches_hold_what_the_volume_holds_there():
    rng = np.random.default_rng(0)
    images = torch.arange(2 * 10 * 9 * 8.0).reshape(2, 10, 9, 8)
    mask = torch.zeros(10, 9, 8, dtype=torch.int64)
    mask[9, 0, 7] = 1
    for _ in range(20):
        patch, label = drawn_patch(images, mask, (4, 5, 3), rng, around=1.0)
        assert patch.shape == (2, 4, 5, 3) and int(label.sum()) == 1
        z, y, x = label.nonzero()[0].tolist()
        assert patch[:, z, y, x].tolist() == images[:, 9, 0, 7].tolist()
    patch, label = drawn_patch(images, mask, (12, 9, 8), rng)
    assert patch.shape == (2, 12, 9, 8) and torch.equal(patch[:, 1:-1], images) and int(label.sum()) == 1
    free = [int(drawn_patch(images, mask, (4, 5, 3), rng, around=0.0)[1].sum()) for _ in range(30)]
    assert min(free) == 0
    with pytest.raises(DataError, match="do not fit a patch"):
        drawn_patch(images, mask[0], (4, 5, 3), rng)


def test_turning_moves_the_image_and_the_mask_alike():
    """Against scipy's resampling by the same matrix; a quarter turn is exact."""
    rng = np.random.default_rng(1)
    volume = ndimage.gaussian_filter(rng.normal(size=(9, 11, 13)), 2).astype(np.float32)
    mask = torch.from_numpy((volume > 0.02).astype(np.int64))
    matrix = rotation(np.array([1.0, 2.0, 3.0]), 12)
    image, label = turned(torch.from_numpy(volume)[None], mask, matrix)
    in_zyx = matrix[::-1, ::-1]
    centre = (np.array(volume.shape) - 1) / 2
    expected = ndimage.affine_transform(volume, in_zyx, centre - in_zyx @ centre, order=1, mode="nearest")
    assert np.allclose(image[0].numpy(), expected, atol=1e-5)
    assert (label.numpy() == (expected > 0.02)).mean() > 0.95
    cube = torch.from_numpy(rng.normal(size=(1, 4, 4, 4)))
    quarter, _ = turned(cube, mask[:4, :4, :4], rotation(np.array([0.0, 0.0, 1.0]), 90))
    assert any(torch.allclose(quarter, cube.rot90(k, (2, 3)), atol=1e-6) for k in (1, 3))


def test_blur_is_a_gaussian():
    rng = np.random.default_rng(2)
    volume = rng.normal(size=(2, 8, 9, 10))
    expected = [ndimage.gaussian_filter(own, 0.8, mode="nearest", radius=3) for own in volume]
    assert np.allclose(blurred(torch.from_numpy(volume), 0.8).numpy(), expected, atol=1e-6)


def test_augmentation_is_drawn_from_its_generator_alone():
    volumes = BrainVolumes("train", 1).read(np.array([0]))
    one, two, other = (
        Augmentation()(volumes.inputs[0], volumes.targets[0], np.random.default_rng(s)) for s in (3, 3, 4)
    )
    assert torch.equal(one[0], two[0]) and torch.equal(one[1], two[1]) and not torch.equal(one[0], other[0])
    assert one[0].shape == volumes.inputs[0].shape and one[1].dtype == torch.int64


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("decomposed", [False, True])
def test_an_exported_unet_gives_the_same_outputs(tmp_path, decomposed):
    torch.manual_seed(0)
    assert_same(UNet3d(1, 2, widths=(4, 8, 16)), (1, 8, 8, 8), tmp_path / "unet.pt2", decomposed=decomposed)
