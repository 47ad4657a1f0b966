"""Small volumes with bright balls and fainter look-alikes, and a net with dropout that needs no training."""

import numpy as np
import torch
from torch import nn

from weakspot import Subject
from weakspot.data.sources import ArraySource


class Blur(nn.Sequential):
    """A box blur in eight channels of which dropout takes some, then the logits of background and lesion."""

    def __init__(self, drop: float = 0.3):
        super().__init__(nn.Conv3d(1, 8, 3, padding=1), nn.Dropout3d(drop), nn.Conv3d(8, 2, 1))
        with torch.no_grad():
            self[0].weight.fill_(1 / 27)
            self[0].bias.zero_()
            self[2].weight.copy_(torch.stack([-torch.ones(8), torch.ones(8)])[..., None, None, None])
            self[2].bias.copy_(torch.tensor([2.5, -2.5]))


def volumes(count: int, *, seed: int = 0, side: int = 14):
    """Volumes (count, 1, side, side, side) and masks: two lesions and two look-alikes each, in different corners."""
    rng = np.random.default_rng(seed)
    images = rng.normal(0, 0.1, (count, 1, side, side, side)).astype(np.float32)
    masks = np.zeros((count, side, side, side), dtype=np.int64)
    grid = np.stack(np.meshgrid(*(np.arange(side),) * 3, indexing="ij"))
    for image, mask in zip(images, masks, strict=True):
        for place, corner in enumerate(rng.permutation(8)[:4]):
            centre = (
                np.array([corner & 1, corner >> 1 & 1, corner >> 2]) * (side / 2) + side / 4 + rng.uniform(-1, 1, 3)
            )
            ball = ((grid - centre[:, None, None, None]) ** 2).sum(0) <= rng.uniform(1.6, 2.8) ** 2
            image[0, ball] += rng.uniform(0.7, 1.4) if place < 2 else rng.uniform(0.5, 0.9)
            mask[ball] |= place < 2
    return images, masks


def source(count: int, *, split: str = "test", seed: int = 0) -> ArraySource:
    images, masks = volumes(count, seed=seed)
    return ArraySource(images, masks, ids=[f"{split}-{number:03d}" for number in range(count)])


def subject() -> Subject:
    return Subject(Blur(), task="segmentation", classes=("background", "lesion"), scores="logits")
