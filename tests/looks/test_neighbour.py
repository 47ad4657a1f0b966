"""Neighbours as the examination makes them, and made again from what it found."""

import importlib.util

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import ExecutionOptions, Subject, examine
from weakspot.core import forward_passes
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.core.look import Original
from weakspot.core.needs import Needs
from weakspot.core.probe import Probe, Rows
from weakspot.data.sources import ArraySource
from weakspot.looks import Brightness, Fog, Jpeg, Neighbour, Noise, Rain, Rotate, Shift, Variation
from weakspot.robustness import NeighbourAccuracy


class Said(Probe):
    """Keeps every output of every look.

    variation: how neighbours differ.
    seed: of the draws.
    """

    variation: Variation = Rotate(30) & Shift(3)
    seed: int = 0
    said = Rows()

    @property
    def needs(self):
        return Needs({Original(): 1, Neighbour(self.variation, self.seed): 3})

    def observe(self, seen):
        assert seen.number == 0 or seen.look == Neighbour(self.variation, self.seed)
        self.__dict__.setdefault("kept", []).append(seen.outputs.clone())

    def close(self, ids):
        self.said.append(ids, outputs=torch.stack(self.kept, 1))
        self.kept = []

    def finish(self):
        rows = self.said.read()
        return self.finding(arrays={"outputs": np.asarray(rows["outputs"])}, table={"id": np.array(rows.ids)})


@pytest.fixture
def images():
    return np.random.default_rng(0).random((7, 3, 12, 14)).astype(np.float32) * 255


def told(images, made, bounds):
    subject = Subject(nn.Flatten(), task="regression", bounds=bounds)
    return examine(subject, ArraySource(images), [Said(variation=made, seed=4)])[0]


@pytest.mark.parametrize("made", [Rotate(30) & Shift(3), Brightness() & Rotate(9), Rain() | Fog(), Noise() & Jpeg()])
def test_a_neighbour_is_made_again_from_the_finding(images, made, tmp_path):
    finding = told(images, made, (0, 255))
    finding.save(tmp_path / "finding")
    look = Neighbour.of(Finding.load(tmp_path / "finding"), bounds=(0, 255))
    assert look == Neighbour(made, 4)
    place = 5
    name = finding.table["id"][place].as_py()
    for number in (1, 2, 3):
        again = look.images(torch.from_numpy(images[place : place + 1]), [name], number)
        seen = finding.arrays["outputs"][place, number].reshape(again.shape)
        np.testing.assert_allclose(again.numpy(), seen, atol=2e-3)
        assert np.abs(seen - images[place]).mean() > 0.5


def test_the_subjects_bounds_reach_the_look(images):
    made = told(images, Brightness((1, 1)), (0, 255)).arrays["outputs"]
    np.testing.assert_allclose(made[:, 1:], 255)
    with pytest.raises(ConfigError, match="Brightness must know the smallest and largest value"):
        told(images, Brightness((1, 1)), None)


def test_a_finding_without_neighbours_has_none_to_make_again():
    with pytest.raises(ConfigError, match="was not made with neighbours"):
        Neighbour.of(Finding("coverage"))


def test_made_anew_the_stored_neighbours_get_the_stored_answers(shared, architectures, svhn):
    """Parameters as published beside the predictions, images as made here."""
    folder = shared / "models" / "neighbours"
    spec = importlib.util.spec_from_file_location("neighbours", folder / "neighbours.py")
    published = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(published)
    chosen, looks = slice(0, 120), (0, 20, 49)
    parameters = torch.from_numpy(published.neighbour_parameters(5000, 50, 20242)[chosen]).double()
    images = torch.from_numpy(svhn[0][chosen].astype(np.float32) / 255)
    images = images.movedim(-1, 1) if images.shape[-1] == 3 else images
    for name in ("ResN", "WideResN", "Vgg16Half"):
        net = architectures.build(name, "svhn")
        architectures.load_half_precision(net, str(shared / "models" / f"{name}-svhn.safetensors"))
        with np.load(folder / f"{name}-svhn-predicted.npz") as stored:
            expected = stored["test"][chosen]
        with torch.no_grad():
            made = [net((Rotate(30) & Shift(3)).apply(images, parameters[:, look])).argmax(1) for look in looks]
        agree = torch.stack(made, 1).numpy() == expected[:, [look + 1 for look in looks]]
        assert agree.mean() >= 0.98
        assert 0.7 < (expected[:, 1:] == expected[:, :1]).mean() < 0.99  # neighbours do change answers


@pytest.mark.parametrize("early_stopping", ["never", "certain"])
@pytest.mark.parametrize("variation", [Rotate(30) & Shift(3), Rotate(20) | Shift(2) | Brightness(0.2)])
def test_looks_that_share_a_forward_pass_find_the_same(monkeypatch, variation, early_stopping):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 36, 4))
    calls: list[int] = []
    net.register_forward_hook(lambda module, given, output: calls.append(len(output)))
    rng = np.random.default_rng(0)
    source = ArraySource(rng.random((30, 1, 8, 8), dtype=np.float32), rng.integers(0, 4, 30))
    subject = Subject(net, scores="logits", bounds=(0, 1))
    probe = NeighbourAccuracy(variation=variation, looks=20, early_stopping=early_stopping)
    execution = ExecutionOptions(batch_size=16, workers=0)
    alone = examine(subject, source, [probe], execution=execution)[0]
    apart, calls[:] = len(calls), []
    monkeypatch.setitem(forward_passes._TOGETHER, "cpu", 16 * 64 * 7)
    shared = examine(subject, source, [probe], execution=execution)[0]
    assert len(calls) < apart / 3
    assert max(calls) == 16 * 7
    assert shared.table.equals(alone.table)
    assert shared.summary == alone.summary
