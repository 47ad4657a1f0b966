"""The images that causes are planted in, and what is done to them: German traffic signs and house numbers, 16 × 16.

GTSRB (Stallkamp et al. 2012), 17 of its commonest signs, and SVHN (Netzer et al. 2011), from gtsrb.zip and svhn.npz of
$WEAKSPOT_SHARED. Training and test images of a seed are drawn at random from the splits of the data sets.
"""

import io
import os
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

SHARED = Path(os.environ.get("WEAKSPOT_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
SIDE, TRAINING, TEST = 16, 7800, 2000
SIGNS = (1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 17, 18, 25, 35, 38)
"""By the numbers of the data set."""
Labelled = tuple[Tensor, Tensor]


@cache
def signs() -> dict[str, Labelled]:
    """Images and labels of the splits, (images, 3, 16, 16) from 0 to 1."""
    with zipfile.ZipFile(SHARED / "data" / "gtsrb.zip") as archive:
        lines = archive.read("manifest.csv").decode().splitlines()
        rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
        splits = {}
        for split, names in {"train": ("train", "improvement"), "test": ("test",)}.items():
            own = [row for row in rows if row["split"] in names and int(row["label"]) in SIGNS]
            pixels = np.stack([np.asarray(Image.open(io.BytesIO(archive.read(row["path"])))) for row in own])
            splits[split] = _small(pixels), torch.tensor([SIGNS.index(int(row["label"])) for row in own])
    return splits


@cache
def digits() -> dict[str, Labelled]:
    """The same of house numbers."""
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        return {
            split: (_small(stored[f"x_{split}"]), torch.from_numpy(stored[f"y_{split}"]).long())
            for split in ("train", "test")
        }


def _small(pixels: np.ndarray) -> Tensor:
    return F.adaptive_avg_pool2d(torch.from_numpy(pixels).permute(0, 3, 1, 2).float(), SIDE).round() / 255


def drawn(splits: dict[str, Labelled], seed: int) -> tuple[Labelled, Labelled, np.random.Generator]:
    """Training and test images of this seed."""
    rng = np.random.default_rng(seed)
    parts = []
    for split, count in (("train", TRAINING), ("test", TEST)):
        images, labels = splits[split]
        chosen = torch.from_numpy(np.sort(rng.permutation(len(images))[:count]))
        parts.append((images[chosen].clone(), labels[chosen]))
    return parts[0], parts[1], rng


def turned(images: Tensor, degrees: np.ndarray) -> Tensor:
    """Images turned about their middle."""
    angle = torch.deg2rad(torch.from_numpy(degrees).float())
    zero = torch.zeros_like(angle)
    rows = [torch.stack([angle.cos(), -angle.sin(), zero], 1), torch.stack([angle.sin(), angle.cos(), zero], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def blurred(images: Tensor, widths: np.ndarray) -> Tensor:
    """Images blurred by Gaussians of these widths in pixels."""
    steps = torch.arange(-6.0, 7.0)
    weights = torch.exp(-0.5 * (steps / torch.from_numpy(widths).float()[:, None].clamp(min=1e-3)) ** 2)
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(3, 0)
    flat = F.pad(images.reshape(1, -1, SIDE, SIDE), (6, 6, 6, 6), mode="reflect")
    flat = F.conv2d(flat, weights[:, None, None, :], groups=len(weights))
    return F.conv2d(flat, weights[:, None, :, None], groups=len(weights)).reshape(images.shape)


def lit(images: Tensor, light: np.ndarray) -> Tensor:
    """Images in this light, 1 as they are."""
    return (images * torch.from_numpy(light).float()[:, None, None, None]).clamp(0, 1)


def noisy(images: Tensor, widths: np.ndarray, rng: np.random.Generator) -> Tensor:
    """Images with Gaussian noise of these widths."""
    noise = torch.from_numpy(rng.normal(0, 1, images.shape).astype(np.float32))
    return (images + noise * torch.from_numpy(widths).float()[:, None, None, None]).clamp(0, 1)


def covered(images: Tensor, where: np.ndarray, rng: np.random.Generator) -> Tensor:
    """A grey square of 7 × 7 pixels somewhere over the middle of some images."""
    images = images.clone()
    for number in np.flatnonzero(where).tolist():
        top, left = rng.integers(3, 8, 2).tolist()
        images[number, :, top : top + 7, left : left + 7] = 0.5
    return images


def stuck(images: Tensor, where: np.ndarray, colour: tuple[float, float, float], corner: tuple[int, int]) -> Tensor:
    """A small square of this colour in a corner of some images."""
    images = images.clone()
    chosen, (top, left) = torch.from_numpy(where), corner
    for channel, value in enumerate(colour):
        images[chosen, channel, top : top + 3, left : left + 3] = value
    return images


def framed(images: Tensor, where: np.ndarray, rng: np.random.Generator) -> Tensor:
    """A background of bright and dark stripes around the sign, of some images."""
    stripes = torch.from_numpy((np.arange(SIDE)[:, None] + np.arange(SIDE)) // 2 % 2 * 0.8 + 0.1).float()
    middle = (torch.arange(SIDE) - (SIDE - 1) / 2).abs()
    outside = torch.maximum(middle[:, None], middle) > 4.6
    shown = torch.where(outside, stripes, images)
    chosen = torch.from_numpy(where)[:, None, None, None]
    return torch.where(chosen, noisy(shown, np.full(len(images), 0.03), rng), images)


def noted(rng: np.random.Generator, count: int) -> dict[str, list[float] | list[str]]:
    """Metadata that say nothing of the errors."""
    return {
        "speed": rng.uniform(0, 120, count).round(1).tolist(),
        "hour": rng.integers(0, 24, count).astype(float).tolist(),
        "camera": rng.choice(["a", "b", "c", "d"], count).tolist(),
    }
