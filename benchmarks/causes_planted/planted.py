"""A net with planted causes: the data that it is trained and tested on, and the net."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from images import Labelled
from torch import nn
from torch.nn import functional as F

EPOCHS, BATCH, RATE = 8, 64, 4e-3


@dataclass(frozen=True)
class Planted:
    """Training images with labels, test images with labels and metadata, and which of them have each cause.

    naming: for each cause the traits that name it; none where no trait can.
    """

    training: Labelled
    test: Labelled
    metadata: Mapping[str, list[float] | list[str]]
    causes: Mapping[str, np.ndarray]
    naming: Mapping[str, tuple[str, ...]]
    classes: int


class PlantedNet(nn.Sequential):
    """Two convolutions and two linear layers, for images of 16 × 16 pixels."""

    def __init__(self, classes: int) -> None:
        super().__init__(
            nn.Conv2d(3, 24, 5, padding=2), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 16, 96), nn.ReLU(), nn.Linear(96, classes),
        )  # fmt: skip


def trained(planted: Planted, seed: int, file: Path | None = None) -> nn.Module:
    """The net, trained on the training images moved by up to one pixel; read from the file where it is there."""
    torch.manual_seed(seed)
    net = PlantedNet(planted.classes)
    if file is not None and file.exists():
        net.load_state_dict(torch.load(file, weights_only=True))
        return net.eval()
    images, labels = planted.training
    steps = EPOCHS * -(-len(images) // BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), RATE, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(BATCH):
            moves = torch.randint(-1, 2, (2,)).tolist()
            loss = F.cross_entropy(net(images[rows].roll(moves, (2, 3))), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    if file is not None:
        torch.save(net.state_dict(), file)
    return net.eval()
