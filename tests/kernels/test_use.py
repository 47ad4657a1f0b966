"""Where the kernels stand in: the same Findings as from plain operations."""

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Subject, examine, kernels
from weakspot.core import taps
from weakspot.coverage.neuron_probes import NeuronCoverage, TopNeurons
from weakspot.data.sources import ArraySource

from .conftest import DEVICE


class Tokens(nn.Module):
    """A convolution, tokens with the channels last, and a vector."""

    def __init__(self):
        super().__init__()
        self.patches, self.mixed, self.head = nn.Conv2d(3, 8, 4, stride=4), nn.Linear(8, 12), nn.Linear(12, 4)

    def forward(self, images):
        tokens = self.patches(images).relu().flatten(2).transpose(1, 2)
        return self.head(self.mixed(tokens).relu().mean(1))


@pytest.fixture
def examined():
    torch.manual_seed(0)
    model, images = Tokens(), np.random.default_rng(0).random((13, 3, 16, 16), dtype=np.float32)

    def found():
        subject = Subject(model, classes=4, scores="logits", device=DEVICE)
        return examine(subject, ArraySource(images), [NeuronCoverage(threshold=0.4), TopNeurons(top=2)])

    return found


def test_findings_are_those_of_plain_operations(examined, monkeypatch):
    from weakspot.kernels import leading, reducing

    called = []
    for module, name in ((reducing, "by_channel"), (reducing, "by_layer"), (leading, "leading_of_layers")):
        monkeypatch.setattr(module, name, _noting(getattr(module, name), name, called))
    monkeypatch.setattr(kernels, "usable", lambda values: False)
    plain = examined()
    assert not called
    monkeypatch.setattr(kernels, "usable", lambda values: True)
    monkeypatch.setattr(taps, "_LARGE", 1)
    by_kernels = examined()
    assert set(called) == {"by_channel", "by_layer", "leading_of_layers"}
    for one, other in zip(plain, by_kernels, strict=True):
        assert one.summary == other.summary
        for name, values in one.arrays.items():
            np.testing.assert_array_equal(values, other.arrays[name])


def test_small_layers_are_left_to_plain_operations(examined, monkeypatch):
    from weakspot.kernels import reducing

    monkeypatch.setattr(kernels, "usable", lambda values: True)
    monkeypatch.setattr(reducing, "by_channel", None)
    assert len(examined()) == 2


def _noting(function, name, called):
    def noted(*given):
        called.append(name)
        return function(*given)

    return noted


def test_the_cpu_and_doubles_are_left_to_plain_operations():
    assert not kernels.usable(torch.zeros(2, 2))
    assert not kernels.usable(torch.zeros(2, 2, dtype=torch.float64, device=DEVICE))


def test_where_no_kernel_can_be_built_it_is_said_once(monkeypatch):
    from weakspot.kernels import reducing

    def failing(values):
        raise RuntimeError("Failed to find C compiler.\nmore")

    monkeypatch.setattr(reducing, "by_channel", failing)
    kernels._built.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match=r"cannot be built on cpu \(Failed to find C compiler\.\): plain"):
            assert not kernels._built(torch.device("cpu"))
        assert not kernels._built(torch.device("cpu"))
    finally:
        kernels._built.cache_clear()
