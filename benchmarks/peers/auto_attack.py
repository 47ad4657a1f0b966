"""AutoAttack's standard set beside its authors' own code: robust accuracy after each attack, and seconds, in one run.

    python benchmarks/peers/auto_attack.py --reference FOLDER [--data DATA] [--device cuda] [--images 1000]
        [--epochs 30] [--queries 5000] [--only adversarial-linf plain-vgg ...] [--seconds 200]

The reference is a checkout of fra31/auto-attack (the folder that holds `autoattack`). Two kinds of nets: one trained
here against PGD (three steps at 8/255) on the 8,000 SVHN training images of the shared folder, attacked at 8/255 (L∞)
and 0.5 (L2); and plain ones of the shared folder at 1/255 (L∞), 0.2 and 0.25 (L2), on SVHN and CIFAR-10 (DATA, by
default $WEAKSPOT_DATA). Both sides get the same test images in one batch, and no TF32. Seconds are the processor's on a
CPU, so that other work on the machine has no part in them, and the clock's on a GPU. With --seconds, nets are left out
for which no time is left. Bars: at most 0.5 points apart, and no slower.
"""

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from measuring import machine, read_rows, write_rows
from net_outputs import network, parser, pixels, tensor
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot import Subject
from weakspot.attacks import Square, standard_attacks
from weakspot.attacks.attack import Case
from weakspot.attacks.goals import Goal

NAMES = ("apgd-ce", "apgd-t", "fab-t", "square")
POINTS = 0.5


def small_net(width: int = 64) -> nn.Sequential:
    """Six convolutions with batch norm, two at each of three sizes."""
    layers: list[nn.Module] = []
    before = 3
    for after in (width, width, 2 * width, 2 * width, 4 * width, 4 * width):
        stride = 2 if after != before and before != 3 else 1
        layers += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


def trained_against_pgd(device: str, epochs: int, train: int | None, width: int) -> nn.Module:
    """Madry's training: each batch is replaced by what three steps of PGD make of it; ε rises to 8/255."""
    torch.manual_seed(0)
    stored, known = (part[:train] for part in pixels("svhn", Path(), "train"))
    images, labels = tensor(stored).to(device), torch.from_numpy(known).to(device)
    net, size = small_net(width).to(device), 128
    steps = epochs * (len(images) // size)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.03, total_steps=steps)
    for epoch in range(epochs):
        epsilon = (
            8 / 255 * min(1, max(0, epoch - 2) / (epochs / 3))
        )  # at full strength from the start nothing is learnt
        for rows in torch.randperm(len(images), device=device)[: len(images) // size * size].split(size):
            x, y = images[rows], labels[rows]
            changed = (x + torch.empty_like(x).uniform_(-epsilon, epsilon)).clamp_(0, 1)
            for _ in range(3):
                leaf = changed.requires_grad_()
                (gradient,) = torch.autograd.grad(F.cross_entropy(net(leaf), y), leaf)
                moved = leaf.detach() + epsilon / 2 * gradient.sign()
                changed = torch.minimum(torch.maximum(moved, x - epsilon), x + epsilon).clamp_(0, 1)
            optimiser.zero_grad()
            F.cross_entropy(net(changed), y).backward()
            optimiser.step()
            schedule.step()
    return net


def plain(name: str) -> Callable[[argparse.Namespace], nn.Module]:
    return lambda options: network(name, options.device)


def adversarial(options: argparse.Namespace) -> nn.Module:
    if not hasattr(options, "robust_net"):
        begun = time.perf_counter()
        options.robust_net = trained_against_pgd(options.device, options.epochs, options.train, options.width)
        print(f"trained against PGD in {time.perf_counter() - begun:.0f} s", flush=True)
    return options.robust_net


class Attacked(NamedTuple):
    """What is attacked, and how."""

    about: str
    load: Callable[[argparse.Namespace], nn.Module]
    data: str
    norm: str
    epsilon: float


SETS = {
    "adversarial-linf": Attacked("trained against PGD", adversarial, "svhn", "linf", 8 / 255),
    "plain-vgg": Attacked("VGG-16 at half width, SVHN", plain("Vgg16Half-svhn"), "svhn", "linf", 1 / 255),
    "adversarial-l2": Attacked("trained against PGD", adversarial, "svhn", "l2", 0.5),
    "plain-resnet": Attacked("ResNet-32, SVHN", plain("ResN-svhn"), "svhn", "linf", 1 / 255),
    "cifar-resnet": Attacked("ResNet-32, CIFAR-10", plain("ResN-cifar10"), "cifar10", "linf", 1 / 255),
    "cifar-resnet-l2": Attacked("ResNet-32, CIFAR-10", plain("ResN-cifar10"), "cifar10", "l2", 0.25),
    "cifar-resnet-l2-near": Attacked("ResNet-32, CIFAR-10", plain("ResN-cifar10"), "cifar10", "l2", 0.2),
}


def clock(device: str) -> float:
    """Seconds: of the processor, or of the clock beside a GPU."""
    return time.perf_counter() if device.startswith("cuda") else time.process_time()


def ours(
    net: nn.Module, x: Tensor, y: Tensor, norm: Any, epsilon: float, options: Any
) -> Iterator[tuple[float, float]]:
    """Each attack of the standard set on what the ones before left."""
    subject = Subject(net, classes=10, scores="logits", bounds=(0, 1), device=options.device)
    ids = [f"s{number}" for number in range(len(x))]
    others = standard_attacks(epsilon, norm)[:-1]
    begun, made = clock(options.device), x.clone()
    for attack in (*others, Square(epsilon=epsilon, norm=norm, queries=options.queries)):
        with torch.no_grad():
            rows = (net(made).argmax(1) == y).nonzero()[:, 0]
            case = Case(subject, subject.forward, x[rows], [ids[row] for row in rows.tolist()], Goal(y[rows]), 0)
            made[rows] = attack.change(case)
            right = float((net(made).argmax(1) == y).double().mean())
        assert float((made - x).flatten(1).norm(float("inf") if norm == "linf" else 2, 1).max()) <= epsilon * 1.00001
        yield right, clock(options.device) - begun


def theirs(
    net: nn.Module, x: Tensor, y: Tensor, norm: str, epsilon: float, options: Any
) -> Iterator[tuple[float, float]]:
    """The same of the reference, as it reports it."""
    from autoattack import AutoAttack

    attack = AutoAttack(net, norm={"linf": "Linf", "l2": "L2"}[norm], eps=epsilon, seed=0, device=options.device)
    attack.square.n_queries = options.queries
    said: list[tuple[str, float]] = []
    attack.logger.log = lambda line: said.append((line, clock(options.device)))
    begun = clock(options.device)
    attack.run_standard_evaluation(x, y, bs=len(x))
    for line, now in said:
        match = re.search(r"robust accuracy after \S+: ([\d.]+)%", line)
        if match:
            yield float(match[1]) / 100, now - begun


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--reference", type=Path, required=True)
    arguments.add_argument("--images", type=int, default=1000)
    arguments.add_argument("--train", type=int)
    arguments.add_argument("--epochs", type=int, default=30)
    arguments.add_argument("--width", type=int, default=64)
    arguments.add_argument("--queries", type=int, default=5000)
    arguments.add_argument("--only", nargs="*", choices=tuple(SETS), default=list(SETS))
    arguments.add_argument("--seconds", type=float, default=float("inf"))
    arguments.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = arguments.parse_args()
    sys.path.insert(0, str(options.reference))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    begun, rows, took = time.perf_counter(), [], 0.0
    for name in options.only:
        if time.perf_counter() - begun + took > options.seconds:
            print(f"{name} is left out: no time")
            continue
        started = time.perf_counter()
        rows += measure(name, options)
        took = max(took, time.perf_counter() - started)
        keep(options.out, rows)


def keep(path: Path, rows: list[dict[str, Any]]) -> None:
    """Replace the rows of these nets, norms and machines; keep the others."""
    same = ("machine", "net", "norm", "epsilon")
    measured = {tuple(str(row[key]) for key in same) for row in rows}
    kept = [row for row in read_rows(path) if tuple(row[key] for key in same) not in measured]
    write_rows(path, [*kept, *rows], columns=list(rows[0]))


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    about, load, data, norm, epsilon = SETS[name]
    net = load(options).to(options.device, memory_format=torch.channels_last).eval().requires_grad_(False)
    images, labels = (part[: options.images] for part in pixels(data, options.data))
    x, y = tensor(images).to(options.device), torch.from_numpy(labels).to(options.device)
    with torch.no_grad():
        clean = float((net(x).argmax(1) == y).double().mean())
    found = [list(side(net, x, y, norm, epsilon, options)) for side in (ours, theirs)]
    return [
        {
            "machine": machine(options.device),
            "net": about,
            "norm": norm,
            "epsilon": round(epsilon, 5),
            "images": len(x),
            "square_queries": options.queries,
            "clean_accuracy": round(clean, 4),
            "after": attack,
            "robust_weakspot": round(one[0], 4),
            "robust_reference": round(other[0], 4),
            "points_apart": round(100 * (one[0] - other[0]), 2),
            "bar_points": POINTS,
            "seconds_weakspot": round(one[1], 1),
            "seconds_reference": round(other[1], 1),
        }
        for attack, one, other in zip(NAMES, *found, strict=False)
    ]


if __name__ == "__main__":
    main()
