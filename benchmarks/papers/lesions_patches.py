"""Patches of volumes to train on, and how they are varied: flips, rotation, contrast, noise and blur.

The kinds are those of Lambert et al. 2022. Everything is drawn from one numpy generator, so that it can be repeated;
noise is drawn where the patch lies, and differs between a CPU and a GPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.errors import DataError

Pair = tuple[Tensor, Tensor]
"""Images (sequences, z, y, x) and the mask (z, y, x)."""


def drawn_patch(
    images: Tensor, mask: Tensor, size: Sequence[int], rng: np.random.Generator, *, around: float = 0.5
) -> Pair:
    """A random patch; with the chance `around` one that holds a lesion's voxel in its middle half, where there is one.

    Volumes smaller than the patch are padded with 0.
    """
    if mask.ndim != len(size) or images.shape[1:] != mask.shape:
        raise DataError(f"images {tuple(images.shape)} and mask {tuple(mask.shape)} do not fit a patch {tuple(size)}")
    missing = [max(0, side - length) for side, length in zip(size, mask.shape, strict=True)]
    if any(missing):
        pad = [amount for side in reversed(missing) for amount in (side // 2, side - side // 2)]
        images, mask = F.pad(images, pad), F.pad(mask, pad)
    room = np.array(mask.shape) - np.array(size)
    corner = rng.integers(room + 1)
    lesion = mask.nonzero() if rng.random() < around else mask.new_zeros((0, 3))
    if len(lesion):
        voxel = lesion[int(rng.integers(len(lesion)))].cpu().numpy()
        within = np.floor(np.multiply(size, rng.uniform(0.25, 0.75, len(size)))).astype(int)
        corner = np.clip(voxel - within, 0, room)
    where = [slice(start, start + side) for start, side in zip(corner.tolist(), size, strict=True)]
    return images[:, *where], mask[*where]


@dataclass(frozen=True)
class Augmentation:
    """What may happen to a patch; each with a chance of one half. The paper names the kinds and no numbers.

    degrees: rotation about a random axis, up to so far either way. contrast: intensities times 1 ± this, about their
    mean. noise: its standard deviation, up to this share of the patch's own. blur: standard deviation of a Gaussian in
    voxels, up to this.
    """

    degrees: float = 15.0
    contrast: float = 0.25
    noise: float = 0.1
    blur: float = 1.0

    def __call__(self, images: Tensor, mask: Tensor, rng: np.random.Generator) -> Pair:
        """A varied copy of both; masks are turned by the nearest voxel."""
        dims = [axis for axis in (-3, -2, -1) if rng.random() < 0.5]
        images, mask = images.flip(dims), mask.flip(dims)
        if rng.random() < 0.5:
            images, mask = turned(images, mask, rotation(rng.normal(size=3), rng.uniform(-1, 1) * self.degrees))
        if rng.random() < 0.5:
            mean = images.mean((1, 2, 3), keepdim=True)
            images = mean + (images - mean) * (1 + self.contrast * rng.uniform(-1, 1))
        if rng.random() < 0.5:
            spread = float(images.std()) * self.noise * rng.uniform()
            images = images + spread * _normal(images, rng)
        if rng.random() < 0.5:
            images = blurred(images, self.blur * rng.uniform(0.1, 1))
        return images, mask


def _normal(like: Tensor, rng: np.random.Generator) -> Tensor:
    """Standard normal noise of the same shape and kind, where `like` lies."""
    own = torch.Generator(like.device).manual_seed(int(rng.integers(2**63)))
    return torch.randn(like.shape, generator=own, device=like.device, dtype=like.dtype)


def rotation(axis: np.ndarray, degrees: float) -> np.ndarray:
    """The matrix that turns by an angle about an axis (Rodrigues' formula).

    >>> rotation(np.array([0.0, 0.0, 2.0]), 90).round(6).tolist()
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    x, y, z = axis / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.deg2rad(degrees)
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)


def turned(images: Tensor, mask: Tensor, matrix: np.ndarray) -> Pair:
    """Both turned about their centre by a rotation of (x, y, z), in voxels; what comes from outside is the border's."""
    sides = np.array(mask.shape[::-1], dtype=np.float64)
    relative = matrix * sides[None] / sides[:, None]  # grid_sample counts from −1 to 1 along every axis
    theta = torch.from_numpy(np.hstack([relative, np.zeros((3, 1))])).to(images)[None]
    grid = F.affine_grid(theta, [1, 1, *mask.shape], align_corners=False)
    image = F.grid_sample(images[None], grid, mode="bilinear", padding_mode="border", align_corners=False)[0]
    labels = F.grid_sample(
        mask[None, None].to(images.dtype), grid, mode="nearest", padding_mode="border", align_corners=False
    )
    return image, labels[0, 0].round().to(mask.dtype)


def blurred(images: Tensor, sigma: float) -> Tensor:
    """A Gaussian blur of each sequence, one axis after another; borders are repeated."""
    reach = max(1, int(np.ceil(3 * sigma)))
    steps = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
    weights = torch.exp(-steps.square() / (2 * sigma**2))
    weights = weights / weights.sum()
    values = images[:, None]
    for axis in range(3):
        shape = [1, 1, 1, 1, 1]
        shape[2 + axis] = len(weights)
        pad = [0] * 6
        pad[2 * (2 - axis)] = pad[2 * (2 - axis) + 1] = reach
        values = F.conv3d(F.pad(values, pad, mode="replicate"), weights.reshape(shape))
    return values[:, 0]
