"""Functions of others as variations: plain ones, kornia's, and what they must not do."""

import random
import sys

import numpy as np
import pytest
import torch

from weakspot import examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.looks import ByFunction, Neighbour, variation
from weakspot.robustness import NeighbourAccuracy

IDS = ["a", "b", "c"]


def images(low=0.0, high=1.0):
    return low + (high - low) * torch.rand(3, 3, 12, 15, generator=torch.Generator().manual_seed(0))


def noise_of_all(image):
    """Draws from every generator there is."""
    return image + 0.1 * torch.rand(image.shape) + 0.1 * float(np.random.rand()) + 0.1 * random.random()


def grain(image, seed):
    """An array from 0 to 1, with a generator of its own."""
    return image * np.random.default_rng(seed).random(image.shape, dtype=np.float32)


def mirrored(image):
    assert image.dtype == np.uint8 and image.shape == (12, 15, 3)
    return image[:, ::-1]


@pytest.mark.parametrize("made", [ByFunction(noise_of_all), ByFunction(grain, "array", "argument")])
def test_each_image_is_seeded_by_its_id_alone(made):
    look, given = Neighbour(made, seed=1, bounds=(0, 1)), images()
    together = look.images(given, IDS, 1)
    assert torch.equal(together, look.images(given, IDS, 1))
    assert torch.equal(together[1:2], look.images(given[1:2], IDS[1:2], 1))
    assert not torch.equal(together, look.images(given, IDS, 2))
    assert not torch.equal(together, look.images(given, ["d", "e", "f"], 1))
    assert together.min() >= 0 and together.max() <= 1


def test_global_generators_are_put_back():
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    Neighbour(ByFunction(noise_of_all), bounds=(0, 1)).images(images(), IDS, 1)
    assert random.getstate() == states[0] and np.random.get_state()[1].tolist() == states[1]
    assert torch.equal(torch.get_rng_state(), states[2])


def test_bytes_are_whole_numbers_and_bounds_are_the_subjects():
    given = torch.round(images() * 255) / 255 * 2 - 1
    made = Neighbour(ByFunction(mirrored, "bytes"), bounds=(-1, 1)).images(given, IDS, 1)
    torch.testing.assert_close(made, given.flip(3))


def test_a_configuration_names_the_function(monkeypatch):
    monkeypatch.setitem(sys.modules, "my_looks", sys.modules[__name__])
    asked = variation({"function": {"call": "my_looks:mirrored", "images": "bytes"}})
    assert asked == ByFunction("my_looks:mirrored", "bytes")
    assert variation({"function": "my_looks:noise_of_all"}) == ByFunction("my_looks:noise_of_all")
    given = torch.round(images() * 255) / 255
    made = Neighbour(asked, bounds=(0, 1)).images(given, IDS, 1)
    torch.testing.assert_close(made, given.flip(3))


def test_a_model_is_examined_with_a_function():
    from weakspot import Subject

    subject = Subject(digits.model(), classes=digits.CLASSES, scores="logits", bounds=(0, 1))
    probe = NeighbourAccuracy(variation=ByFunction(noise_of_all), looks=3, early_stopping="never")
    source = limited(digits.test(), 20)
    findings = [examine(subject, source, [probe])[0] for _ in range(2)]
    assert findings[0].table.equals(findings[1].table) and findings[0].summary["inputs"].value == 20


def test_other_code_is_another_variation():
    def one(image):
        return image

    def other(image):
        return image * 0.5

    records = [ByFunction(function).__canonical__() for function in (one, other)]
    assert records[0]["code"] != records[1]["code"] and records[0]["code"] == ByFunction(one).__canonical__()["code"]


def test_kornias_augmentations_are_looks():
    from kornia import augmentation

    look, given = Neighbour(ByFunction(augmentation.RandomPlasmaBrightness(p=1.0)), bounds=(0, 1)), images()
    together = look.images(given, IDS, 1)
    assert together.shape == given.shape and not torch.equal(together, given)
    assert torch.equal(together, look.images(given, IDS, 1))
    assert torch.equal(together[2:], look.images(given[2:], IDS[2:], 1))
    turned = Neighbour(ByFunction(augmentation.RandomAffine(30.0, p=1.0)), bounds=(0, 1)).images(given, IDS, 1)
    assert not torch.equal(turned, given)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"call": lambda image: image[:, :5]}, DataError, r"shape \(3, 5, 15\) of one of shape \(3, 12, 15\)"),
        ({"call": lambda image: image.numpy()}, DataError, "gave a ndarray, expected a tensor"),
        ({"call": lambda image: image * float("nan")}, DataError, "NaN or infinity"),
        ({"call": "no.such:thing"}, ConfigError, "'no.such:thing': No module named 'no'; expected module:name"),
        ({"call": "math:thing"}, ConfigError, "has no attribute 'thing'"),
        ({"call": 3}, ConfigError, "call of ByFunction is a int: expected what can be called"),
        ({"call": abs, "images": "pil"}, ConfigError, "images of ByFunction is 'pil': choose one of tensor, array"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        Neighbour(ByFunction(**options), bounds=(0, 1)).images(images(), IDS, 1)
