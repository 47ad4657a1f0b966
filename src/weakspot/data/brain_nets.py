"""Embedded: small networks for the brain-like volumes of `weakspot.data.brain`, and stored samples of five of them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot.core.errors import RunError
from weakspot.core.files import whole_folder
from weakspot.core.observation import Batch
from weakspot.data.brain import SEQUENCES, BrainVolumes, brain_of
from weakspot.data.cache import trained_once

_STEPS, _PATCHES, _SIDE = 120, 8, 12
"""Of the training: how many steps, patches per step, and voxels along each side of a patch."""


class BrainNet(nn.Sequential):
    """Two blocks of convolution, batch norm, ReLU and channel dropout; logits of background and lesion.

    It sees two voxels far, so it takes many look-alikes for lesions: there is something to tell apart.
    """

    def __init__(self) -> None:
        super().__init__(*_block(len(SEQUENCES), 12), *_block(12, 12), nn.Conv3d(12, 2, 1))


def _block(before: int, after: int) -> tuple[nn.Module, ...]:
    return nn.Conv3d(before, after, 3, padding=1), nn.BatchNorm3d(after), nn.ReLU(), nn.Dropout3d(0.2)


def train() -> BrainVolumes:
    """Volumes that `model` is trained on."""
    return BrainVolumes("train", 16)


def validation() -> BrainVolumes:
    """Volumes for a lesion model to learn from."""
    return BrainVolumes("validation", 24)


def test() -> BrainVolumes:
    """Volumes to examine."""
    return BrainVolumes("test", 16)


def model(fold: int = 0) -> nn.Module:
    """The network, trained in seconds at first use and cached; each fold leaves out a fifth of the volumes."""
    return trained_once(f"brain-1-{fold}", BrainNet, partial(_train, fold=fold))


def _train(net: nn.Module, fold: int) -> None:
    volumes = train()
    batch = volumes.read(np.array([index for index in range(volumes.count) if index % 5 != fold]))
    rng = np.random.default_rng(fold)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(fold)
        for module in net.modules():
            if isinstance(module, nn.Conv3d):
                module.reset_parameters()
        optimiser = torch.optim.Adam(net.train().parameters(), lr=1e-2)
        for _ in range(_STEPS):
            inputs, targets = _patches(batch, rng)
            optimiser.zero_grad()
            F.cross_entropy(net(inputs), targets, torch.tensor([1.0, 4.0])).backward()
            optimiser.step()


def _patches(batch: Batch, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Random patches, most of them around a lesion."""
    inputs, targets = [], []
    for index in rng.integers(len(batch), size=_PATCHES).tolist():
        mask = batch.known_targets[index]
        lesion = mask.nonzero()
        centre = rng.integers(mask.shape) if rng.random() < 0.4 else lesion[rng.integers(len(lesion))].numpy()
        corner = centre - _SIDE // 2 + rng.integers(-3, 4, 3)
        z, y, x = (slice(start, start + _SIDE) for start in np.clip(corner, 0, np.array(mask.shape) - _SIDE).tolist())
        inputs.append(batch.inputs[index, :, z, y, x])
        targets.append(mask[z, y, x])
    return torch.stack(inputs), torch.stack(targets)


def write_stored_samples(folder: str | Path, cases: Sequence[str], *, folds: int = 5) -> None:
    """Softmax volumes of several networks as nnU-Net stores them: `folder/fold_K/CASE.npz`, key `probabilities`."""
    if Path(folder).exists():
        raise RunError(f"{folder} exists already: remove it, or choose another place")
    with whole_folder(Path(folder)) as scratch, torch.no_grad():
        for fold in range(folds):
            (scratch / f"fold_{fold}").mkdir()
            net = model(fold)
            for case in cases:
                softmax = net(torch.from_numpy(brain_of(case).images)[None]).softmax(1)[0].numpy()
                np.savez_compressed(scratch / f"fold_{fold}" / f"{case}.npz", probabilities=softmax.astype(np.float16))
