"""Three networks that steer, trained on one simulator drive that is cut into blocks of time.

    python benchmarks/papers/steering_nets.py [--device cuda] [--weights FOLDER] [--minutes 7]

writes steering_nets.csv beside this script, and the weights of every final network to FOLDER (default
$WEAKSPOT_DATA/nets). Needs `$WEAKSPOT_SHARED/data/driving.zip`: 4,053 frames in the order of time, of which 72 % have a
steering of exactly 0 and the others short key taps. A network cannot know when a key was tapped, so the labels are
smoothed over time first (a Gaussian, within each block alone).

The drive is cut into blocks of 100 frames (7 s); ten frames at both ends of each are left out, so that no frame of one
part is next to one of another. Blocks are dealt to training, validation and test (24, 8, 8), drawn once. How strongly
to smooth and how long to train is decided on the validation blocks alone: by the highest mean R² over the three
architectures. Then five networks of each are trained that way, and judged once on the test blocks, beside the constant
that is best on the training blocks. R² is against that constant, so that 0 is as good as the constant; its interval is
a bootstrap over blocks.

The architectures are those of the driving study's kind: DAVE-2 (Bojarski et al. 2016), and two of the networks of the
Udacity challenge, Epoch and Chauffeur (here its convolutions alone), with smaller inputs.
"""

import argparse
import csv
import io
import itertools
import os
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED, machine, write_rows

BLOCK, GAP = 100, 10
WIDTHS = (2, 5, 10, 14)
"""Standard deviations of the smoothing that are tried, in frames (14 a second)."""
EPOCHS = (20, 60)
"""How long training may take; tried with every width."""
BATCH, RATE = 64, 1e-3
SEEDS = 5


class Stage(nn.Module):
    """Convolution, ReLU and, for Epoch and Chauffeur, max-pooling."""

    def __init__(self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, pool: bool = False):
        super().__init__()
        padding = kernel // 2 if pool else 0
        self.conv, self.relu = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=padding), nn.ReLU()
        self.pool = nn.MaxPool2d(2) if pool else nn.Identity()

    def forward(self, maps: Tensor) -> Tensor:
        return self.pool(self.relu(self.conv(maps)))


class Steering(nn.Module):
    """A frame (3, 120, 240) in [0, 1] to its steering: the road cut out, stages, dropout, dense layers."""

    def __init__(self, size: tuple[int, int], stages: list[Stage], dense: list[int], dropout: float = 0.5):
        super().__init__()
        self.size = size
        self.stages = nn.Sequential(*stages)
        with torch.no_grad():
            width = self.stages(torch.zeros(1, 3, *size)).numel()
        self.flatten, self.dropout = nn.Flatten(), nn.Dropout(dropout)
        layers: list[nn.Module] = []
        for units in dense:
            layers += [nn.Linear(width, units), nn.ReLU()]
            width = units
        self.dense = nn.Sequential(*layers)
        self.steering = nn.Linear(width, 1)

    def forward(self, frames: Tensor) -> Tensor:
        road = F.interpolate(frames[:, :, 40:112], self.size, mode="bilinear", align_corners=False)
        features = self.dropout(self.flatten(self.stages((road - 0.5) / 0.25)))
        return self.steering(self.dense(features)).squeeze(1)  # type: ignore[no-any-return]


def dave2() -> Steering:
    """Five convolutions, three dense layers (Bojarski et al. 2016)."""
    shapes = [(3, 24, 5, 2), (24, 36, 5, 2), (36, 48, 5, 2), (48, 64, 3, 1), (64, 64, 3, 1)]
    return Steering((66, 200), [Stage(i, o, k, stride=s) for i, o, k, s in shapes], [100, 50, 10])


def epoch() -> Steering:
    """Three convolutions with pooling, one wide dense layer."""
    return Steering((48, 120), [Stage(i, o, 3, pool=True) for i, o in ((3, 32), (32, 64), (64, 128))], [128])


def chauffeur() -> Steering:
    """Six small convolutions with pooling, no dense layer."""
    shapes = [(3, 16, 5), (16, 20, 5), (20, 40, 3), (40, 60, 3), (60, 80, 2), (80, 128, 2)]
    return Steering((72, 240), [Stage(i, o, k, pool=True) for i, o, k in shapes], [])


NETS = {"dave2": dave2, "epoch": epoch, "chauffeur": chauffeur}


@dataclass(frozen=True)
class Drive:
    """All frames, the log's steering, and each frame's block and part ("" for the ends of blocks)."""

    frames: np.ndarray
    steering: np.ndarray
    block: np.ndarray
    part: np.ndarray

    def labels(self, width: float) -> np.ndarray:
        """Steering smoothed within each block."""
        smooth = np.empty(len(self.steering), dtype=np.float32)
        for number in np.unique(self.block):
            own = self.block == number
            smooth[own] = gaussian_filter1d(self.steering[own], width, mode="nearest")
        return smooth


def drive() -> Drive:
    path = SHARED / "data" / "driving.zip"
    if not path.exists():
        sys.exit(f"needs {path}: set $WEAKSPOT_SHARED")
    from PIL import Image

    with zipfile.ZipFile(path) as archive:
        log = list(csv.DictReader(io.StringIO(archive.read("manifest.csv").decode())))
        frames = np.stack([np.asarray(Image.open(io.BytesIO(archive.read(row["path"])))) for row in log])
    steering = np.array([float(row["steering"]) for row in log])
    return Drive(frames, steering, *parts(len(log)))


def parts(frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Block and part of each frame."""
    block = np.minimum(np.arange(frames) // BLOCK, frames // BLOCK - 1)
    count = int(block[-1]) + 1
    dealt = np.random.default_rng(0).permutation(count)
    share = count // 5
    of_block = np.full(count, "train", dtype="<U10")
    of_block[dealt[:share]], of_block[dealt[share : 2 * share]] = "test", "validation"
    part = of_block[block]
    for number in range(count):
        own = np.flatnonzero(block == number)
        part[own[:GAP]] = part[own[-GAP:]] = ""
    return block, part


def trained(name: str, frames: Tensor, labels: Tensor, seed: int, *, epochs: int) -> Steering:
    """AdamW down a cosine on mirrored, brightened and shifted frames; the last weights count."""
    torch.manual_seed(seed)
    net = NETS[name]().to(frames.device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-2)
    steps = epochs * (len(frames) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps, pct_start=0.1)
    spread = float(labels.std())
    net.train()
    for _ in range(epochs):
        order = torch.randperm(len(frames), device=frames.device)
        for own in order[: len(order) // BATCH * BATCH].split(BATCH):
            inputs, wanted = varied(frames[own], labels[own])
            loss = ((net(inputs) * spread - wanted) / spread).square().mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
    with torch.no_grad():  # outputs are steering, not multiples of its spread
        net.steering.weight.mul_(spread)
        net.steering.bias.mul_(spread)
    return net.eval()


def varied(frames: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Half of them mirrored, with the steering's sign; lighter or darker; up or down by up to four pixels."""
    inputs = frames.float() / 255
    mirrored = torch.rand(len(inputs), device=inputs.device) < 0.5
    inputs = torch.where(mirrored[:, None, None, None], inputs.flip(3), inputs)
    inputs = (inputs * torch.empty(len(inputs), 1, 1, 1, device=inputs.device).uniform_(0.7, 1.3)).clamp(0, 1)
    inputs = inputs.roll(int(torch.randint(-4, 5, ())), 2)
    return inputs, torch.where(mirrored, -labels, labels)


@torch.inference_mode()
def answers(net: nn.Module, frames: Tensor) -> np.ndarray:
    return torch.cat([net(some.float() / 255) for some in frames.split(256)]).cpu().numpy()


def r_squared(said: np.ndarray, truth: np.ndarray, constant: float) -> float:
    return float(1 - ((said - truth) ** 2).sum() / ((constant - truth) ** 2).sum())


def interval(said: np.ndarray, truth: np.ndarray, constant: float, block: np.ndarray) -> tuple[float, float]:
    """Of R², by drawing blocks."""
    chance, numbers, found = np.random.default_rng(0), np.unique(block), []
    places = {number: np.flatnonzero(block == number) for number in numbers}
    for _ in range(2000):
        rows = np.concatenate([places[number] for number in chance.choice(numbers, len(numbers))])
        found.append(r_squared(said[rows], truth[rows], constant))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


class Trial:
    """The drive on a device, ready for training with labels of any width."""

    def __init__(self, data: Drive, device: str):
        self.data, self.device = data, device
        self.frames = torch.from_numpy(data.frames).permute(0, 3, 1, 2).contiguous().to(device)

    def net(self, name: str, width: float, seed: int, epochs: int) -> tuple[Steering, np.ndarray, float]:
        labels, rows = self.data.labels(width), self.data.part == "train"
        own = torch.from_numpy(labels[rows]).to(self.device)
        net = trained(name, self.frames[torch.from_numpy(np.flatnonzero(rows))], own, seed, epochs=epochs)
        return net, labels, float(labels[rows].mean())

    def judged(self, net: Steering, labels: np.ndarray, constant: float, part: str) -> dict[str, Any]:
        rows = np.flatnonzero(self.data.part == part)
        said, truth = answers(net, self.frames[torch.from_numpy(rows)]), labels[rows]
        low, high = interval(said, truth, constant, self.data.block[rows])
        return {
            "part": part,
            "r2": round(r_squared(said, truth, constant), 4),
            "r2_low": round(low, 4),
            "r2_high": round(high, 4),
            "mse": round(float(((said - truth) ** 2).mean()), 6),
            "mse_constant": round(float(((constant - truth) ** 2).mean()), 6),
            "frames": len(rows),
        }


def choosing(trial: Trial, choices: list[int], until: float) -> Iterator[dict[str, Any]]:
    """Every width, length and architecture on the validation blocks."""
    for width, epochs, name in itertools.product(WIDTHS, choices, NETS):
        if time.monotonic() < until:
            net, labels, constant = trial.net(name, width, 0, epochs)
            what = {"stage": "choosing", "net": name, "smoothing": width, "epochs": epochs, "seed": 0}
            yield what | trial.judged(net, labels, constant, "validation")


def best(rows: list[dict[str, Any]]) -> tuple[float, int]:
    """The smoothing and the epochs with the highest mean R² on the validation blocks."""
    found: dict[tuple[float, int], list[float]] = {}
    for row in rows:
        found.setdefault((row["smoothing"], row["epochs"]), []).append(row["r2"])
    return max(found, key=lambda choice: float(np.mean(found[choice])))


def final(trial: Trial, width: float, epochs: int, folder: Path, until: float) -> Iterator[dict[str, Any]]:
    """Five networks of each architecture on all three parts; their weights are kept."""
    from safetensors.torch import save_file

    for seed, name in itertools.product(range(SEEDS), NETS):
        if time.monotonic() < until:
            net, labels, constant = trial.net(name, width, seed, epochs)
            weights = {key: value.half().cpu().contiguous() for key, value in net.state_dict().items()}
            save_file(weights, folder / f"{name}-{seed}.safetensors", metadata={"smoothing": str(width)})
            what = {"stage": "final", "net": name, "smoothing": width, "epochs": epochs, "seed": seed}
            yield from (what | trial.judged(net, labels, constant, part) for part in ("train", "validation", "test"))


def loaded(name: str, folder: Path, seed: int = 0) -> tuple[Steering, float]:
    """A final network and the smoothing of its labels."""
    from safetensors import safe_open

    path = folder / f"{name}-{seed}.safetensors"
    if not path.exists():
        sys.exit(f"needs {path}: run benchmarks/papers/steering_nets.py first")
    net = NETS[name]()
    with safe_open(path, "pt") as stored:
        net.load_state_dict({key: stored.get_tensor(key).float() for key in stored.keys()})  # noqa: SIM118
        return net.eval(), float(stored.metadata()["smoothing"])


def nets_folder() -> Path:
    """Where weights are that the scripts of this folder train."""
    return Path(os.environ.get("WEAKSPOT_DATA", "data")) / "nets"


def argument_parser(about: str | None, script: str) -> argparse.ArgumentParser:
    """What every script about networks of this folder can be told."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--weights", type=Path, default=nets_folder())
    parser.add_argument("--results", type=Path, default=Path(script).with_suffix(".csv"))
    return parser


def main() -> None:
    parser = argument_parser(__doc__, __file__)
    parser.add_argument("--epochs", type=int, nargs="+", default=EPOCHS)
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    if all((options.weights / f"{name}-{seed}.safetensors").exists() for name in NETS for seed in range(SEEDS)):
        print(f"the networks are in {options.weights} already")
        return
    options.weights.mkdir(parents=True, exist_ok=True)
    trial, rows = Trial(drive(), options.device), []
    named = {"machine": machine(options.device)}
    for row in choosing(trial, options.epochs, until):
        rows.append(named | row)
        write_rows(options.results, rows)
        print(row, flush=True)
    for row in final(trial, *best(rows), options.weights, until):
        rows.append(named | row)
        write_rows(options.results, rows)
        print(row, flush=True)


if __name__ == "__main__":
    main()
