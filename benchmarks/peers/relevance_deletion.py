"""Deletion curves on trained networks and real images: pixels go grey in the order of their relevance.

The figure is the area under the curve of the winning class's probability against the share of pixels deleted: the
lower, the better the map found what mattered.

Usage: python benchmarks/peers/relevance_deletion.py [--device cuda] [--images 256] [--threads 2]
"""

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import torch
from measuring import machine, write
from relevance_peers import captum_epsilon_plus, images, network, zennit_epsilon_plus
from torch import Tensor, nn

from weakspot import relevance as lrp

SHARES = torch.linspace(0, 0.5, 11)
BATCH = 64
Attribute = Callable[[Tensor], Tensor]


def deleted(batch: Tensor, order: Tensor, share: float) -> Tensor:
    """The images with their most relevant pixels grey."""
    count = round(share * order.shape[1])
    keep = torch.ones_like(order, dtype=torch.bool).scatter_(1, order[:, :count], False)
    return torch.where(keep.view(len(batch), 1, *batch.shape[2:]), batch, 0.5)


@torch.no_grad()
def area(net: nn.Module, pictures: Tensor, attribute: Attribute) -> Tensor:
    """Area under each image's deletion curve."""
    areas = []
    for batch in pictures.split(BATCH):
        with torch.enable_grad():
            order = attribute(batch).sum(1).flatten(1).argsort(1, descending=True)
        winner = net(batch).argmax(1, keepdim=True)
        curve = [net(deleted(batch, order, float(s))).softmax(1).gather(1, winner)[:, 0] for s in SHARES]
        areas.append(torch.trapezoid(torch.stack(curve, 1), dx=1 / (len(SHARES) - 1), dim=1))
    return torch.cat(areas)


def ours(net: nn.Module, method: lrp.Method) -> Attribute:
    return lambda batch: lrp.relevance(net, batch, method=method, conservation=False).input


def measure(name: str, device: str, count: int) -> list[dict[str, object]]:
    net, (pictures, labels) = network(name, device), images(count, device)
    with torch.no_grad():
        right = torch.cat([net(batch).argmax(1) for batch in pictures.split(BATCH)]) == labels
    pictures = pictures[right]
    noise = torch.Generator().manual_seed(0)
    methods: dict[str, Attribute] = {
        "random": lambda batch: torch.rand(batch.shape, generator=noise).to(batch),
        "weakspot epsilon_plus": ours(net, lrp.epsilon_plus()),
        "weakspot epsilon_plus, biases redistributed": ours(net, lrp.epsilon_plus(bias="redistributed")),
        "weakspot epsilon_plus_flat": ours(net, lrp.epsilon_plus_flat()),
        "weakspot epsilon_gamma_box": ours(net, lrp.epsilon_gamma_box(-2.0, 2.0)),
        "weakspot deep_importance": ours(net, lrp.deep_importance()),
        "weakspot gradient x input": ours(net, lrp.GradientTimesInput()),
        "weakspot integrated gradients": ours(net, lrp.IntegratedGradients(steps=16, baseline=0.5)),
    }
    rows = [row(name, device, method, area(net, pictures, attribute)) for method, attribute in methods.items()]
    for peer, make in (
        ("zennit EpsilonPlus", zennit_epsilon_plus),
        ("captum epsilon, alpha1beta0", captum_epsilon_plus),
    ):
        with make(network(name, device)) as attribute:
            rows.append(row(name, device, peer, area(net, pictures, attribute)))
    return rows


def row(name: str, device: str, method: str, areas: Tensor) -> dict[str, object]:
    error = float(areas.std()) / math.sqrt(len(areas))
    return {
        "machine": machine(device),
        "net": name,
        "method": method,
        "area_under_deletion_curve": round(float(areas.mean()), 4),
        "standard_error": round(error, 4),
        "images": len(areas),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = [row for name in ("ResN", "WideResN", "Vgg16Half") for row in measure(name, options.device, options.images)]
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
