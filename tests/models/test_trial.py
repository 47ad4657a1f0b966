"""What one batch shows, on a network that was trained on known inputs."""

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Subject
from weakspot.core.observation import Batch
from weakspot.models import Normalise
from weakspot.models.trial import better_normalisations, look_like_probabilities, try_out, usual_normalisations


def batch_of(inputs, targets):
    return Batch(tuple(map(str, range(len(inputs)))), np.arange(len(inputs)), inputs, targets)


class ReadsCentres(nn.Module):
    """Answers with the nearest of ten mean colours: right for inputs on one scale alone."""

    def __init__(self, centres):
        super().__init__()
        self.register_buffer("centres", centres)

    def forward(self, images):
        return -(images.mean((2, 3))[:, None] - self.centres).square().sum(2)


@pytest.fixture(scope="module")
def colours():
    """64 images whose mean colour is one of ten, from 0 to 1."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.rand(10, 3, generator=generator)
    targets = torch.arange(64) % 10
    images = centres[targets][:, :, None, None].expand(-1, -1, 4, 4) + 0.02 * torch.randn(
        64, 3, 4, 4, generator=generator
    )
    return centres, batch_of(images.clamp(0, 1), targets)


WANTS = {
    "from 0 to 255": Normalise(255.0),
    "from −1 to 1": Normalise(1, (0.5,), (0.5,)),
    "with ImageNet's mean and standard deviation": Normalise(1, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "from 0 to 1, blue first": Normalise(bgr=True),
}


@pytest.mark.parametrize("name", WANTS)
def test_the_normalisation_a_model_was_made_for_is_found(colours, name):
    centres, batch = colours
    model = ReadsCentres(WANTS[name](centres[:, :, None, None])[:, :, 0, 0])
    now = try_out(Subject(model, classes=10), batch)
    assert now.accuracy < 0.6
    found = better_normalisations(lambda p: Subject(model, classes=10, preprocess=p), batch, now.right)
    assert found[0].name == name
    assert found[0].accuracy > 0.95
    right = try_out(Subject(model, classes=10, preprocess=WANTS[name]), batch)
    assert right.accuracy == found[0].accuracy


def test_the_datas_own_statistics_are_found(colours):
    centres, batch = colours
    mean, std = batch.inputs.mean((0, 2, 3)), batch.inputs.std((0, 2, 3))
    model = ReadsCentres((centres - mean) / std)
    now = try_out(Subject(model, classes=10), batch)
    found = better_normalisations(lambda p: Subject(model, classes=10, preprocess=p), batch, now.right)
    assert "with the data's own mean and standard deviation" in [alternative.name for alternative in found[:2]]


def test_nothing_is_better_where_all_is_well(colours):
    centres, batch = colours
    model = ReadsCentres(centres)
    now = try_out(Subject(model, classes=10), batch)
    assert now.accuracy > 0.95
    assert better_normalisations(lambda p: Subject(model, classes=10, preprocess=p), batch, now.right) == []


def test_nothing_is_better_where_nothing_can_be_known(colours):
    """A model that knows nothing wins and loses by chance: no advice."""
    _, batch = colours
    for seed in range(5):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Flatten(), nn.Linear(48, 10))
        now = try_out(Subject(model, classes=10), batch)
        shuffled = batch_of(batch.inputs, batch.targets[torch.randperm(64)])
        now = try_out(Subject(model, classes=10), shuffled)
        assert better_normalisations(lambda p, net=model: Subject(net, preprocess=p), shuffled, now.right) == []


def test_what_one_batch_shows():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5), nn.Softmax(1))
    inputs = torch.linspace(-1, 2, 3 * 16).reshape(3, 1, 4, 4)
    with torch.no_grad():
        targets = net(inputs).argmax(1)
    targets[0] = (targets[0] + 1) % 5
    trial = try_out(Subject(net, classes=5), batch_of(inputs, targets))
    assert (trial.samples, trial.inputs, trial.outputs, trial.input_range) == (3, (1, 4, 4), (5,), (-1.0, 2.0))
    assert trial.accuracy == pytest.approx(2 / 3)
    assert trial.penultimate.label == "3"
    assert trial.like_probabilities
    assert try_out(Subject(net, task="regression"), batch_of(inputs, targets)).accuracy is None
    assert try_out(Subject(net), batch_of(inputs, None)).accuracy is None
    black = try_out(Subject(net.forward), batch_of(inputs, targets))
    assert (black.penultimate, black.layers) == (None, ())


@pytest.mark.parametrize(
    ("outputs", "one", "several"),
    [
        ([[0.2, 0.8], [0.5, 0.5]], True, True),
        ([[0.2, 0.7]], False, True),
        ([[-0.1, 1.1]], False, False),
        ([[3.0, -2.0]], False, False),
    ],
)
def test_what_looks_like_probabilities(outputs, one, several):
    assert look_like_probabilities(torch.tensor(outputs), one_of_them=True) is one
    assert look_like_probabilities(torch.tensor(outputs), one_of_them=False) is several


def test_bytes_are_brought_to_one_first():
    ranges = {name: normalise.scale for name, normalise in usual_normalisations(torch.full((2, 1, 2, 2), 200.0))}
    assert ranges["from 0 to 1"] == pytest.approx(1 / 255)
    assert ranges["from 0 to 255"] == pytest.approx(1)
    assert not any("ImageNet" in name for name in ranges), "that is for three channels"
