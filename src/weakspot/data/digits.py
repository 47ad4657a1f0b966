"""Embedded: scikit-learn's handwritten digits (1,797 real 8×8 images, Alpaydin and Kaynak 1998) and a small net."""

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from weakspot.core.errors import ConfigError
from weakspot.data.cache import trained_once
from weakspot.data.sources import ArraySource

CLASSES = tuple("0123456789")
BOUNDS = (0.0, 1.0)


@cache
def _arrays() -> tuple[np.ndarray, np.ndarray]:
    bunch = load_digits()
    return (bunch.images / 16).astype(np.float32)[:, None], bunch.target.astype(np.int64)


def digits(split: str) -> ArraySource:
    """The "train" split (1,198 images) or the "test" split (599): every third image is a test image."""
    if split not in ("train", "test"):
        raise ConfigError(f"the digits have no split {split!r}: choose 'train' or 'test'")
    images, targets = _arrays()
    rows = np.flatnonzero((np.arange(len(images)) % 3 == 2) == (split == "test"))
    return ArraySource(images[rows], targets[rows], ids=[f"digit-{row:04d}" for row in rows])


def train() -> ArraySource:
    """The training split."""
    return digits("train")


def test() -> ArraySource:
    """The test split."""
    return digits("test")


class DigitNet(nn.Sequential):
    """Two convolutions and two linears."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.relu1 = nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()
        self.conv2, self.relu2, self.pool = nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.hidden, self.relu3 = nn.Linear(512, 64), nn.ReLU()
        self.classifier = nn.Linear(64, 10)


def model() -> nn.Module:
    """The net, trained on the training split; it trains in seconds at first use and is cached."""
    return trained_once("digits-1", DigitNet, _train)


def _train(net: nn.Module, epochs: int = 15) -> None:
    batch = train().read(np.arange(1198))
    images, targets = batch.inputs, batch.targets
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)
    net.train()
    with torch.enable_grad():
        for _ in range(epochs):
            for rows in torch.randperm(len(images)).split(64):
                optimiser.zero_grad()
                F.cross_entropy(net(images[rows]), targets[rows]).backward()  # type: ignore[index]
                optimiser.step()
