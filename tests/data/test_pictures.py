"""Small pictures of every input: what they show, and how they are asked for."""

import numpy as np
import pytest
import torch

from weakspot import Subject, examine
from weakspot.core.errors import ConfigError
from weakspot.data.arrays import ArraySource
from weakspot.data.pictures import Pictures
from weakspot.data.thumbnails import thumbnails
from weakspot.registry import steps_of


def kept(inputs, **options):
    subject = Subject(torch.nn.Flatten(), task="classification")
    source = ArraySource(inputs, ids=[f"s{number}" for number in range(len(inputs))])
    return examine(subject, source, [Pictures(**options)])[0]


def test_pictures_stand_in_the_order_of_the_data():
    inputs = np.linspace(0, 1, 5, dtype=np.float32)[:, None, None, None] * np.ones((5, 1, 4, 6), np.float32)
    found = kept(inputs)
    assert found.table["id"].to_pylist() == ["s0", "s1", "s2", "s3", "s4"]
    assert found.arrays["pixels"].shape == (5, 4, 6, 3)
    assert found.arrays["pixels"][:, 0, 0, 0].tolist() == [0, 64, 128, 191, 255], "what is dark stays dark"


def test_larger_images_are_made_smaller_by_means():
    inputs = np.zeros((1, 3, 4, 8), np.float32)
    inputs[:, 0, :2, :2], inputs[:, 1, 2:, 6:] = 1, 0.5
    small = thumbnails(torch.from_numpy(inputs), 4)
    assert small.shape == (1, 2, 4, 3)
    assert small[0, 0, 0].tolist() == [255, 0, 0]
    assert small[0, 1, 3].tolist() == [0, 128, 0]


def test_other_values_are_stretched_image_by_image():
    inputs = torch.tensor([[-2.0, 2.0], [0.0, 10.0], [3.0, 3.0]])[:, None, :, None]
    assert thumbnails(inputs, 8)[..., 0, 0].tolist() == [[0, 255], [0, 255], [0, 0]]


@pytest.mark.parametrize(
    ("inputs", "size"), [(np.zeros((3, 5), np.float32), 64), (np.zeros((3, 1, 4, 4), np.float32), 0)]
)
def test_what_is_no_image_has_none(inputs, size):
    found = kept(inputs, size=size)
    assert found.summary["inputs"].value == 3
    assert found.arrays == {}


def test_pictures_of_several_splits_are_asked_for():
    steps = steps_of("pictures", {"size": 32, "splits": ["test", "train"]})
    assert [(step.probe, step.split, step.options) for step in steps] == [
        (Pictures, "test", {"size": 32}), (Pictures, "train", {"size": 32}),
    ]  # fmt: skip
    assert [step.split for step in steps_of("pictures", {})] == ["test"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"size": -1}, "size is -1: expected pixels"),
        ({"size": "large"}, "size is 'large'"),
        ({"splits": "test"}, "splits is 'test': expected a list of splits"),
        ({"splits": []}, "expected a list of splits"),
        ({"side": 3}, "no option 'side'"),
    ],
)
def test_what_cannot_be_asked_is_told(options, told):
    with pytest.raises(ConfigError, match=told):
        steps_of("pictures", options)
