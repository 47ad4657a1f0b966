"""Traffic signs with planted causes of errors: what each scenario changes in training and in the test images.

GTSRB (Stallkamp et al. 2012) at 16 × 16 pixels, 17 of its commonest signs, from gtsrb.zip of $WEAKSPOT_SHARED. Every
scenario says which test images have the cause, and has metadata: those of the cause, and others that say nothing.
"""

import io
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

SHARED = Path(os.environ.get("WEAKSPOT_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
SIDE, TRAINING, TEST, EPOCHS, BATCH, RATE = 16, 9000, 2000, 8, 64, 4e-3
GROUPS = {"speed": (1, 2, 3, 4, 5, 7, 8), "ban": (9, 10, 17), "warning": (11, 18, 25), "order": (35, 38),
          "right of way": (12, 13)}  # fmt: skip
"""The signs by their kind, by the numbers of the data set."""
SIGNS = sorted(number for members in GROUPS.values() for number in members)
UNSEEN = (10, 25)
"""Signs that the net of `sub-styles` never saw: no overtaking for lorries, and road works."""


@dataclass(frozen=True)
class Planted:
    """Training images with labels, test images with labels and metadata, and which of them have each cause.

    naming: for each cause the traits that name it.
    """

    training: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    metadata: Mapping[str, list[float] | list[str]]
    causes: Mapping[str, np.ndarray]
    naming: Mapping[str, tuple[str, ...]]
    classes: int


@cache
def signs() -> dict[str, tuple[Tensor, Tensor]]:
    """Images and labels of the splits, (images, 3, 16, 16) from 0 to 1."""
    with zipfile.ZipFile(SHARED / "data" / "gtsrb.zip") as archive:
        lines = archive.read("manifest.csv").decode().splitlines()
        rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
        splits = {}
        for split, names in {"train": ("train", "improvement"), "test": ("test",)}.items():
            own = [row for row in rows if row["split"] in names and int(row["label"]) in SIGNS]
            pixels = np.stack([np.asarray(Image.open(io.BytesIO(archive.read(row["path"])))) for row in own])
            images = F.adaptive_avg_pool2d(torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255, SIDE)
            splits[split] = images, torch.tensor([SIGNS.index(int(row["label"])) for row in own])
    return splits


def drawn(seed: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], np.random.Generator]:
    """Training and test images of this seed."""
    rng = np.random.default_rng(seed)
    parts = []
    for split, count in (("train", TRAINING), ("test", TEST)):
        images, labels = signs()[split]
        chosen = torch.from_numpy(np.sort(rng.permutation(len(images))[:count]))
        parts.append((images[chosen].clone(), labels[chosen]))
    return parts[0], parts[1], rng


def turned(images: Tensor, degrees: Tensor) -> Tensor:
    """Images turned about their middle."""
    angle = torch.deg2rad(degrees.float())
    zero = torch.zeros_like(angle)
    rows = [torch.stack([angle.cos(), -angle.sin(), zero], 1), torch.stack([angle.sin(), angle.cos(), zero], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def blurred(images: Tensor, widths: Tensor) -> Tensor:
    """Images blurred by Gaussians of these widths in pixels."""
    steps = torch.arange(-6.0, 7.0)
    weights = torch.exp(-0.5 * (steps / widths[:, None].clamp(min=1e-3)) ** 2)
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(3, 0)
    flat = F.pad(images.reshape(1, -1, SIDE, SIDE), (6, 6, 6, 6), mode="reflect")
    flat = F.conv2d(flat, weights[:, None, None, :], groups=len(weights))
    return F.conv2d(flat, weights[:, None, :, None], groups=len(weights)).reshape(images.shape)


def noted(rng: np.random.Generator, count: int) -> dict[str, list[float] | list[str]]:
    """Metadata that say nothing of the errors."""
    return {
        "speed": rng.uniform(0, 120, count).round(1).tolist(),
        "hour": rng.integers(0, 24, count).astype(float).tolist(),
        "camera": rng.choice(["a", "b", "c", "d"], count).tolist(),
    }


def conditions(seed: int) -> Planted:
    """Dark, turned and blurred: each in 8 % of the test images, none in training."""
    training, (images, labels), rng = drawn(seed)
    kind = rng.choice(4, TEST, p=[0.76, 0.08, 0.08, 0.08])
    light = np.where(kind == 1, rng.uniform(0.06, 0.15, TEST), rng.uniform(0.8, 1.1, TEST))
    roll = np.where(kind == 2, rng.choice([-1, 1], TEST) * rng.uniform(25, 50, TEST), rng.normal(0, 4, TEST))
    blur = np.where(kind == 3, rng.uniform(1.2, 1.8, TEST), rng.uniform(0, 0.2, TEST))
    images = blurred(turned(images, torch.from_numpy(roll)), torch.from_numpy(blur).float())
    images = (images * torch.from_numpy(light).float()[:, None, None, None]).clamp(0, 1)
    metadata = {**noted(rng, TEST), "light": light.tolist(), "roll": roll.tolist(), "blur": blur.tolist()}
    causes = {name: kind == number for number, name in enumerate(("dark", "turned", "blurred"), start=1)}
    naming = {"dark": ("light", "brightness"), "turned": ("roll", "edge angle"), "blurred": ("blur", "sharpness")}
    return Planted(training, (images, labels), metadata, causes, naming, len(SIGNS))


def _stuck(images: Tensor, where: np.ndarray) -> Tensor:
    """A yellow square in a corner of some images."""
    images = images.clone()
    chosen = torch.from_numpy(where)
    images[chosen, :2, 1:4, 1:4] = 1.0
    images[chosen, 2, 1:4, 1:4] = 0.0
    return images


def sticker(seed: int) -> Planted:
    """A sticker that goes with one sign in training, and is on 8 % of the test images whatever the sign."""
    (images, labels), (test, truth), rng = drawn(seed)
    images = _stuck(images, ((labels == SIGNS.index(2)) & torch.from_numpy(rng.random(TRAINING) < 0.9)).numpy())
    where = rng.random(TEST) < 0.08
    metadata = {**noted(rng, TEST), "sticker": np.where(where, "yes", "no").tolist()}
    return Planted(
        (images, labels),
        (_stuck(test, where), truth),
        metadata,
        {"sticker": where},
        {"sticker": ("sticker",)},
        len(SIGNS),
    )


def sub_styles(seed: int) -> Planted:
    """Six kinds of signs; two signs, of two kinds, are not in training."""
    (images, labels), (test, truth), rng = drawn(seed)
    kind_of = torch.zeros(len(SIGNS), dtype=torch.long)
    for number, members in enumerate(GROUPS.values()):
        kind_of[[SIGNS.index(member) for member in members]] = number
    kept = ~torch.isin(labels, torch.tensor([SIGNS.index(sign) for sign in UNSEEN]))
    metadata = {**noted(rng, TEST), "sign": [f"sign {SIGNS[number]}" for number in truth.tolist()]}
    causes = {f"sign {number}": (truth == SIGNS.index(number)).numpy() for number in UNSEEN}
    naming = dict.fromkeys(causes, ("sign",))
    return Planted((images[kept], kind_of[labels[kept]]), (test, kind_of[truth]), metadata, causes, naming, len(GROUPS))


def combination(seed: int) -> Planted:
    """Noise, which training images have but for those that warn: a third of the test images, so only some go wrong."""
    (images, labels), (test, truth), rng = drawn(seed)
    warning = torch.tensor([SIGNS.index(sign) for sign in GROUPS["warning"]])
    hardened = ~torch.isin(labels, warning) & torch.from_numpy(rng.random(TRAINING) < 0.5)
    images = _noisy(images, hardened, rng)
    noisy = torch.from_numpy(rng.random(TEST) < 0.33)
    shape = torch.isin(truth, warning)
    names = np.where(shape.numpy(), "triangle", "other")
    metadata = {**noted(rng, TEST), "shape": names.tolist(), "grain": np.where(noisy, "high", "low").tolist()}
    causes = {"noisy triangle": (noisy & shape).numpy()}
    naming = {"noisy triangle": ("grain", "noise")}
    return Planted((images, labels), (_noisy(test, noisy, rng), truth), metadata, causes, naming, len(SIGNS))


def _noisy(images: Tensor, where: Tensor, rng: np.random.Generator) -> Tensor:
    noise = torch.from_numpy(rng.normal(0, 0.15, images.shape).astype(np.float32))
    return (images + noise * where[:, None, None, None]).clamp(0, 1)


SCENARIOS: Mapping[str, Callable[[int], Planted]] = {
    "conditions": conditions,
    "sticker": sticker,
    "sub-styles": sub_styles,
    "combination": combination,
}


class PlantedNet(nn.Sequential):
    """Two convolutions and two linear layers, for images of 16 × 16 pixels."""

    def __init__(self, classes: int) -> None:
        super().__init__(
            nn.Conv2d(3, 24, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(48 * 16, 96), nn.ReLU(), nn.Linear(96, classes),
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
    optimizer = torch.optim.Adam(net.parameters(), RATE)
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
