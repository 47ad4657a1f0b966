"""DeepInspect's research questions on nets trained for it, five seeds each: robust ones, traffic signs, several labels.

python benchmarks/papers/classes_trained.py [--cases small large signs canvases] [--seeds 5] [--device cuda]
    [--minutes 7] [--out FOLDER]

Writes classes_trained.csv beside this script, or to --out; a net whose rows are there is not trained again.
$WEAKSPOT_DATA is a folder with cifar10.npz, mnist.npz and fashion-mnist.npz; for the signs see causes_signs.py.

small, large: the paper's small and large CIFAR-10 nets (158 and 1,226 neurons, Wong et al. 2018), trained against
attacks of 2/255 (Madry et al. 2018; the paper's were trained with provable bounds of that size). signs: 43 traffic
signs. canvases: several labels per image with planted company, see classes_canvases.py: trained and tested with
company, trained with and tested without, and both without.
"""

import argparse
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from causes_cases import append
from causes_signs import sign_net, signs
from classes_canvases import CLASSES, canvases, planted_pairs
from classes_study import study
from measuring import machine, read_rows
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot import Subject
from weakspot.core.source import Subset
from weakspot.data.sources import ArraySource
from weakspot.repair import CachedSource

EPSILON, STEPS, ROBUST_EPOCHS, CANVAS_EPOCHS = 2 / 255, 4, 20, 12
CANVASES = {"train": 20_000, "test": 10_000}
PROFILED = 10_000
"""Training images by which RQ1 is asked."""
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def small() -> nn.Module:
    """Two convolutions and two linear layers: 16 + 32 + 100 + 10 neurons."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(32 * 64, 100), nn.ReLU(), nn.Linear(100, 10),
    )  # fmt: skip


def large() -> nn.Module:
    """Four convolutions and three linear layers: 32 + 32 + 64 + 64 + 512 + 512 + 10 neurons."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU(),
        nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 64, 4, 2, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(64 * 64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10),
    )  # fmt: skip


def canvas_net() -> nn.Module:
    """Six convolutions with batch norm, the mean over all positions, one linear layer."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((1, 32), (32, 64), (64, 128)):
        for given in (inputs, outputs):
            layers += [nn.Conv2d(given, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(128, len(CLASSES)))


def attacked(net: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Projected gradient descent within EPSILON of each pixel, from a random start (Madry et al. 2018)."""
    change = torch.empty_like(images).uniform_(-EPSILON, EPSILON)
    for _ in range(STEPS):
        change.requires_grad_(True)
        loss = F.cross_entropy(net((images + change).clamp(0, 1)), targets)
        [slope] = torch.autograd.grad(loss, change)
        change = (change.detach() + slope.sign() * EPSILON / 2).clamp(-EPSILON, EPSILON)
    return (images + change).clamp(0, 1).detach()


def trained(net: nn.Module, source: CachedSource, *, epochs: int, device: str, seed: int, robust: bool) -> nn.Module:
    """Adam with one cycle; robust nets learn from attacked images, shifted and flipped."""
    torch.manual_seed(seed)
    net, batch = net.to(device), source.read(np.arange(len(source.ids)))
    loss = F.cross_entropy if robust else F.binary_cross_entropy_with_logits
    optimiser, size = torch.optim.Adam(net.parameters(), lr=1e-3), 500 if robust else 250
    per_epoch = -(-len(batch) // size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, epochs=epochs, steps_per_epoch=per_epoch)
    net.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(batch), device=device).split(size):
            images, targets = batch.inputs[rows], batch.known_targets[rows]
            if robust:
                images = varied(images)
                images = attacked(net, images, targets)
            optimiser.zero_grad()
            outputs = net(images)
            loss(outputs, targets if robust else targets.to(outputs.dtype)).backward()
            optimiser.step()
            schedule.step()
    return net.eval()


def varied(images: Tensor) -> Tensor:
    """A batch moved by up to three pixels, half of it mirrored."""
    moved = F.pad(images, (3, 3, 3, 3))
    down, right = torch.randint(0, 7, (2,)).tolist()
    moved = moved[:, :, down : down + images.shape[2], right : right + images.shape[3]]
    mirrored = torch.rand(len(images), device=images.device) < 0.5
    return torch.where(mirrored[:, None, None, None], moved.flip(3), moved)


def data_folder() -> Path:
    return Path(os.environ.get("WEAKSPOT_DATA", "data"))


def cifar(split: str) -> ArraySource:
    with np.load(data_folder() / "cifar10.npz") as stored:
        return ArraySource(stored[f"x_{split}"], stored[f"y_{split}"].ravel().astype(np.int64), channels="last")


def robust_rows(kind: str, seed: int, device: str, smaller: int) -> Iterator[dict[str, Any]]:
    """One robust net; how it stands the attack is told beside its accuracy."""
    train, test = (CachedSource(_first(cifar(split), smaller), device=device) for split in ("train", "test"))
    torch.manual_seed(seed)
    net = {"small": small, "large": large}[kind]()
    net = trained(net, train, epochs=ROBUST_EPOCHS, device=device, seed=seed, robust=True)
    batch = test.read(np.arange(min(2000, len(test.ids))))
    harmed = attacked(net, batch.inputs, batch.known_targets)
    with torch.no_grad():
        stands = float((net(harmed).argmax(1) == batch.known_targets).double().mean())
    subject = Subject(net, classes=CIFAR, scores="logits", bounds=(0, 1), device=device)
    known = {"net": f"robust {kind}", "setting": f"attacked: {stands:.3f}", "seed": seed}
    yield from study(subject, test, _first(train, PROFILED), **known)


def sign_rows(seed: int, device: str, smaller: int) -> Iterator[dict[str, Any]]:
    """One net for traffic signs."""
    data, names = signs()
    subject = Subject(sign_net(data, device, seed=seed), classes=names, scores="logits", bounds=(0, 1), device=device)
    test, train = (CachedSource(_first(data[split], smaller), device=device) for split in ("test", "train"))
    yield from study(subject, test, _first(train, PROFILED), net="signs", setting="", seed=seed)


def canvas_rows(seed: int, device: str, smaller: int) -> Iterator[dict[str, Any]]:
    """A net that learnt from canvases with company, one that learnt without; what each makes of new canvases."""
    folder, planted = data_folder(), planted_pairs()
    made = {
        (split, company): CachedSource(
            canvases(folder, split, min(count, smaller), seed=seed, company=company == "with"), device=device
        )
        for split, count in CANVASES.items()
        for company in ("with", "without")
    }
    for company, tests in (("with", ("with", "without")), ("without", ("without",))):
        torch.manual_seed(seed)
        train = made["train", company]
        net = trained(canvas_net(), train, epochs=CANVAS_EPOCHS, device=device, seed=seed, robust=False)
        subject = Subject(net, task="multilabel", classes=CLASSES, scores="logits", bounds=(0, 1), device=device)
        for tested in tests:
            test, setting = made["test", tested], f"trained {company}, tested {tested} company"
            known = {"net": "canvases", "setting": setting, "seed": seed}
            yield from study(subject, test, _first(train, PROFILED), planted=planted, **known)


def _first(source: Any, count: int) -> Any:
    """A random part, always the same; all where there are not more."""
    if len(source.ids) <= count:
        return source
    return Subset(source, np.sort(np.random.default_rng(0).permutation(len(source.ids))[:count]))


CASES = {
    "small": partial(robust_rows, "small"),
    "large": partial(robust_rows, "large"),
    "signs": sign_rows,
    "canvases": canvas_rows,
}


def done(path: Path, net: str, seed: int, device: str) -> bool:
    there = {(row["net"].removeprefix("robust "), row["seed"], row["machine"]) for row in read_rows(path)}
    return (net, str(seed), machine(device)) in there


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    asked.add_argument("--seeds", type=int, default=5)
    asked.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked.add_argument("--minutes", type=float, default=1e6)
    asked.add_argument("--smaller", type=int, default=10**9, help="at most so many images, for a quick try")
    asked.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = asked.parse_args()
    until, path = time.monotonic() + 60 * given.minutes, given.out / "classes_trained.csv"
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in range(given.seeds):
        for case in given.cases:
            if time.monotonic() < until and not done(path, case, seed, given.device):
                begun = time.monotonic()
                append(path, list(CASES[case](seed, given.device, given.smaller)))
                print(f"{case}, seed {seed}: {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
