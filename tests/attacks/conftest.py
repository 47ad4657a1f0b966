"""Small nets and data for the attacks."""

import numpy as np
import pytest
import torch
from torch import nn

from weakspot.core.subject import Subject
from weakspot.data import digits
from weakspot.data.sources import ArraySource


@pytest.fixture(scope="session")
def tiny_images():
    return torch.from_numpy(np.random.default_rng(4).random((9, 2, 4, 4), dtype=np.float32))


@pytest.fixture(scope="session")
def tiny_net(tiny_images):
    """Untrained and smooth, three classes over 2 × 4 × 4 numbers, none of which wins everywhere."""
    torch.manual_seed(3)
    net = nn.Sequential(nn.Conv2d(2, 6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(24, 3)).eval()
    with torch.no_grad():
        net[-1].bias -= net(tiny_images).mean(0)
        net[-1].weight *= 3
        net[-1].bias *= 3
    return net


@pytest.fixture(scope="session")
def digit_net():
    return digits.model()


@pytest.fixture
def digit_subject(digit_net):
    return Subject(digit_net, classes=10, scores="logits", bounds=(0, 1))


def some(source, count):
    """The first samples of a source as a source of their own."""
    batch = source.read(np.arange(count))
    return ArraySource(batch.inputs.numpy(), batch.targets.numpy(), ids=batch.ids)


@pytest.fixture(scope="session")
def some_digits():
    return some(digits.test(), 37)
