"""Embedded data and nets: real digits, toy volumes; the same everywhere and every time."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from tests.full_disk import files_end_at
from weakspot.core.errors import ConfigError
from weakspot.data import cache, digits, images, phantom


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    raw = load_digits()
    train, test = digits.train(), digits.test()
    assert (len(train.ids), len(test.ids)) == (1198, 599)
    assert set(train.ids).isdisjoint(test.ids)
    batch = test.read(np.arange(599))
    assert batch.ids[:2] == ("digit-0002", "digit-0005")
    rows = np.arange(2, 1797, 3)
    np.testing.assert_allclose(batch.inputs[:, 0].numpy(), raw.images[rows] / 16)
    assert batch.targets.tolist() == raw.target[rows].tolist()
    low, high = digits.BOUNDS
    assert (float(batch.inputs.min()), float(batch.inputs.max())) == (low, high)


def test_an_unknown_split_of_the_digits_is_refused():
    with pytest.raises(ConfigError, match="the digits have no split 'validation': choose 'train' or 'test'"):
        digits.digits("validation")


def accuracy(net, source):
    batch = source.read(np.arange(len(source.ids)))
    with torch.no_grad():
        return float((net(batch.inputs).argmax(1) == batch.targets).float().mean())


def test_the_embedded_net_knows_digits_and_is_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path / "cache"))
    random = torch.get_rng_state()
    first = digits.model()
    assert torch.equal(torch.get_rng_state(), random)
    assert not first.training
    assert accuracy(first, digits.test()) > 0.9
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["digits-1.safetensors"]
    monkeypatch.setattr(digits, "_train", None)
    again = digits.model()
    assert all(torch.equal(a, b) for a, b in zip(first.state_dict().values(), again.state_dict().values(), strict=True))


def ones(net):
    nn.init.ones_(net.weight)


@pytest.mark.parametrize("damage", [b"", b"nonsense" * 10])
def test_a_damaged_cache_is_trained_anew(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path))
    (tmp_path / "x.safetensors").write_bytes(damage)
    made = cache.trained_once("x", lambda: nn.Linear(2, 2), ones)
    assert torch.equal(made.weight, torch.ones(2, 2))
    assert torch.equal(load_file(tmp_path / "x.safetensors")["weight"], torch.ones(2, 2))


def test_a_cache_of_another_net_is_trained_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path))
    cache.trained_once("x", lambda: nn.Linear(3, 3), ones)
    assert cache.trained_once("x", lambda: nn.Linear(2, 2), ones).weight.shape == (2, 2)


def test_a_cache_that_cannot_be_written_costs_only_the_training(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path / "file" / "cache"))
    assert torch.equal(cache.trained_once("x", lambda: nn.Linear(2, 2), ones).weight, torch.ones(2, 2))


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path))
    assert cache.cache_folder() == tmp_path
    monkeypatch.delenv("WEAKSPOT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "weakspot"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.cache_folder() == tmp_path / "home" / ".cache" / "weakspot"


def test_toy_volumes_come_from_their_ids_alone():
    volumes = phantom.test()
    together, alone = volumes.read(np.arange(24)), volumes.read(np.array([5]))
    assert together.inputs.shape == (24, 1, 16, 16, 16)
    assert together.targets.shape == (24, 16, 16, 16)
    assert torch.equal(together.inputs[5], alone.inputs[0])
    assert torch.equal(together.targets[5], alone.targets[0])
    assert together.ids[5] == "test-005"
    assert not torch.equal(together.inputs[5], phantom.train().read(np.array([5])).inputs[0])
    counts = (together.targets.flatten(1).sum(1) > 0).float().mean()
    assert 0.5 < float(counts) < 1


def test_lesions_are_bright_and_the_rest_is_not():
    batch = phantom.test().read(np.arange(24))
    values, lesion = batch.inputs[:, 0], batch.targets == 1
    assert set(batch.targets.unique().tolist()) == {0, 1}
    assert float(values[lesion].mean()) > 0.8
    assert abs(float(values[~lesion].mean())) < 0.1


def test_volumes_are_told_apart_by_fingerprint():
    prints = {
        phantom.ToyVolumes(split, count, side).fingerprint() for split in "ab" for count in (3, 4) for side in (8, 9)
    }
    assert len(prints) == 8


def test_the_toy_net_finds_lesions(tmp_path, monkeypatch):
    net = phantom.model()
    batch = phantom.test().read(np.arange(24))
    with torch.no_grad():
        found = net(batch.inputs).argmax(1) == 1
    true = batch.targets == 1
    dice = 2 * float((found & true).sum()) / float(found.sum() + true.sum())
    assert dice > 0.6


def test_pictures_for_reports():
    shown = images.to_uint8(np.array([[0.0, 0.5], [1.0, 2.0]]), (0.0, 1.0))
    assert shown[..., 0].tolist() == [[0, 128], [255, 255]]
    assert shown.shape == (2, 2, 3)
    assert images.to_uint8(np.array([[2.0, 4.0]]))[0, :, 0].tolist() == [0, 255]
    assert images.to_uint8(np.full((1, 2, 2), 7.0)).max() == 0
    colour = np.stack([np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), np.nan)])
    assert images.to_uint8(colour, (0, 1))[0, 0].tolist() == [0, 255, 0]
    assert images.enlarged(shown, 5).shape == (6, 6, 3)
    assert images.enlarged(shown, 1).shape == (2, 2, 3)
    side_by_side = images.strip([shown, shown, shown], gap=2)
    assert side_by_side.shape == (2, 10, 3)
    assert (side_by_side[:, 2:4] == 255).all()
    assert np.array_equal(side_by_side[:, 4:6], shown)
    assert images.png(shown) == images.png(shown.copy())


def test_pictures_come_back(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 3), dtype=np.uint8)
    path = tmp_path / "x.png"
    path.write_bytes(images.png(pixels))
    back = images.decode(path.read_bytes(), sample="x.png", mode="RGB")
    assert np.array_equal(np.round(back.transpose(1, 2, 0) * 255).astype(np.uint8), pixels)


def test_a_cache_without_room_costs_the_training_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path / "cache"))
    for size in (0, 50):
        with files_end_at(size):
            assert cache.trained_once("x", lambda: nn.Linear(2, 2), ones).weight.tolist() == [[1, 1], [1, 1]]
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]
