"""Embedded: toy volumes with bright lesions and fainter look-alikes, and a small segmentation net with dropout."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from weakspot.core.digest import digest
from weakspot.core.observation import Batch
from weakspot.core.stateless_random import sample_keys
from weakspot.data.cache import trained_once

CLASSES = ("background", "lesion")


@dataclass(frozen=True)
class ToyVolumes:
    """Noise with up to four bright balls (lesions) and four fainter ones (look-alikes), made from each id alone."""

    split: str
    count: int
    side: int = 16

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """One name per volume."""
        return tuple(f"{self.split}-{number:03d}" for number in range(self.count))

    def read(self, positions: np.ndarray) -> Batch:
        """The volumes at these places, with their lesion masks as targets."""
        ids = tuple(self.ids[position] for position in positions)
        made = [toy_volume(int(key), self.side) for key in sample_keys(ids)]
        inputs = torch.from_numpy(np.stack([volume for volume, _ in made]))[:, None]
        targets = torch.from_numpy(np.stack([mask for _, mask in made]).astype(np.int64))
        return Batch(ids, np.asarray(positions), inputs, targets)

    def fingerprint(self) -> str:
        """Of what determines the volumes."""
        return digest(["toy volumes 2", self.split, self.count, self.side])


def toy_volume(seed: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """A float32 volume and its lesion mask, each (side, side, side)."""
    rng = np.random.default_rng(seed)
    volume = rng.normal(0, 0.25, (side,) * 3).astype(np.float32)
    mask = np.zeros((side,) * 3, dtype=bool)
    grid = np.stack(np.meshgrid(*(np.arange(side),) * 3, indexing="ij"))
    for kind in ("lesion", "look-alike"):
        for _ in range(rng.integers(0, 5)):
            centre, radius = rng.uniform(2, side - 2, 3), rng.uniform(1.2, 2.6)
            ball = ((grid - centre[:, None, None, None]) ** 2).sum(0) <= radius**2
            volume[ball] += np.float32(rng.uniform(0.8, 1.6) if kind == "lesion" else rng.uniform(0.3, 0.9))
            mask |= ball & (kind == "lesion")
    return volume, mask


def train() -> ToyVolumes:
    """Volumes to train on."""
    return ToyVolumes("train", 48)


def test() -> ToyVolumes:
    """Volumes to examine."""
    return ToyVolumes("test", 24)


class ToyNet(nn.Sequential):
    """Three 3-D convolutions with channel dropout; logits of background and lesion per voxel."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.relu1, self.drop1 = nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.Dropout3d(0.2)
        self.conv2, self.relu2, self.drop2 = nn.Conv3d(8, 8, 3, padding=1), nn.ReLU(), nn.Dropout3d(0.2)
        self.classifier = nn.Conv3d(8, 2, 1)


def model() -> nn.Module:
    """The net, trained on the training volumes; it trains in seconds at first use and is cached."""
    return trained_once("phantom-2", ToyNet, _train)


def _train(net: nn.Module, epochs: int = 20) -> None:
    batch = train().read(np.arange(48))
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    weight = torch.tensor([1.0, 5.0])
    net.train()
    with torch.enable_grad():
        for _ in range(epochs):
            for rows in torch.randperm(48).split(8):
                optimiser.zero_grad()
                F.cross_entropy(net(batch.inputs[rows]), batch.targets[rows], weight).backward()  # type: ignore[index]
                optimiser.step()
