"""What one batch shows, on a network that was trained on known inputs."""

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Subject
from weakspot.core.observation import Batch
from weakspot.models import Normalise
from weakspot.models.trial import (
    better_normalisations,
    better_order,
    compared_normalisations,
    look_like_probabilities,
    try_out,
    usual_normalisations,
)


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
    found = better_normalisations(lambda p: Subject(model, classes=10, preprocess=p), batch, now.correct)
    assert found[0].name == name
    assert found[0].accuracy > 0.95
    right = try_out(Subject(model, classes=10, preprocess=WANTS[name]), batch)
    assert right.accuracy == found[0].accuracy


def test_the_datas_own_statistics_are_found(colours):
    centres, batch = colours
    mean, std = batch.inputs.mean((0, 2, 3)), batch.inputs.std((0, 2, 3))
    model = ReadsCentres((centres - mean) / std)
    now = try_out(Subject(model, classes=10), batch)
    found = better_normalisations(lambda p: Subject(model, classes=10, preprocess=p), batch, now.correct)
    assert "with the data's own mean and standard deviation" in [alternative.name for alternative in found[:2]]


def test_nothing_is_better_where_all_is_well(colours):
    centres, batch = colours
    model = ReadsCentres(centres)
    now = try_out(Subject(model, classes=10), batch)
    assert now.accuracy > 0.95
    assert better_normalisations(lambda p: Subject(model, classes=10, preprocess=p), batch, now.correct) == []


def test_nothing_is_better_where_nothing_can_be_known(colours):
    """A model that knows nothing wins and loses by chance: no advice."""
    _, batch = colours
    for seed in range(5):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Flatten(), nn.Linear(48, 10))
        now = try_out(Subject(model, classes=10), batch)
        shuffled = batch_of(batch.inputs, batch.targets[torch.randperm(64)])
        now = try_out(Subject(model, classes=10), shuffled)
        assert better_normalisations(lambda p, net=model: Subject(net, preprocess=p), shuffled, now.correct) == []


class ReadsNumbers(nn.Module):
    """Reads the sample's number from its first pixel; how many are right depends on the range of the inputs."""

    def __init__(self, targets):
        super().__init__()
        self.register_buffer("targets", targets)

    def forward(self, images):
        low, high, values = images.min(), images.max(), images[:, 0, 0, 0]
        shares, wrong_every = (values / 255, 5) if high > 2 else ((values + 1) / 2, 10) if low < -0.9 else (values, 1)
        number = (shares * (len(self.targets) - 1)).round().long().clamp(0, len(self.targets) - 1)
        answer = torch.where(number % wrong_every == 0, 1 - self.targets[number], self.targets[number])
        return nn.functional.one_hot(answer, 2).float()


def test_the_best_normalisation_comes_first_not_the_first_that_helps():
    targets = torch.arange(64) // 32
    batch = batch_of(torch.linspace(0, 1, 64)[:, None, None, None].expand(-1, 1, 4, 4), targets)
    model = ReadsNumbers(targets)
    now = try_out(Subject(model, classes=2), batch)
    how = (lambda p: Subject(model, classes=2, preprocess=p)), batch, now.correct
    compared = compared_normalisations(*how)
    assert compared[0].name == "from −1 to 1" and compared[0].better and compared[0].accuracy == pytest.approx(57 / 64)
    second = next(one for one in compared if one.name == "from 0 to 255")
    assert second.better and second.accuracy == pytest.approx(51 / 64)
    assert {one.name for one in compared} == {name for name, _ in usual_normalisations(batch.inputs)}
    assert [one.accuracy for one in compared] == sorted((one.accuracy for one in compared), reverse=True)
    assert better_normalisations(*how) == [one for one in compared if one.better]


def test_an_order_of_the_classes_that_is_far_better_is_found(colours):
    centres, batch = colours
    shuffled = torch.randperm(10, generator=torch.Generator().manual_seed(1))
    trial = try_out(Subject(ReadsCentres(centres[shuffled]), classes=10), batch)
    found = better_order(trial)
    assert trial.accuracy < 0.3 and found.accuracy > 0.9
    assert found.order == tuple(shuffled.tolist()), "output i is the class whose centre it has"
    assert better_order(try_out(Subject(ReadsCentres(centres), classes=10), batch)) is None


def test_no_order_is_better_where_nothing_can_be_known(colours):
    """The best of all orders always fits the samples it was chosen by."""
    _, batch = colours
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        answers = torch.nn.functional.one_hot(torch.randint(10, (64,), generator=generator), 10).float()
        targets = torch.randint(10, (64,), generator=generator)
        random = try_out(Subject(lambda x, given=answers: given[: len(x)], classes=10), batch_of(batch.inputs, targets))
        assert better_order(random) is None
    beyond = try_out(Subject(nn.Sequential(nn.Flatten(), nn.Linear(48, 3))), batch)
    assert better_order(beyond) is None, "there are more classes than outputs"
    assert better_order(try_out(Subject(nn.Flatten(), task="regression"), batch)) is None


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
