"""What a query of the black box costs: making one neighbour, and the answer of a network to it.

    python benchmarks/papers/robustness_cost.py [--device cuda] [--images 1 100 512] [--rounds 50]

writes robustness_cost.csv beside this script, for ResNet-32 on three data sets: milliseconds per query, as the mean and
the standard deviation over rounds of 15 queries of so many images at a time, from the pixels to the classes on the CPU.
A single image is asked all its queries in one pass, of several images all are asked one after the other. Model and
images are on the device before the first round.
Published: 0.031 ± 0.015 ms on CIFAR-10 in batches of 100.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED, architectures, interleaved, machine, write

from robustness import NETS, QUERIES, images, tensor
from weakspot import Subject
from weakspot.core.own_process import keep_freed_memory
from weakspot.core.tasks import predicted
from weakspot.looks import Neighbour, Rotate, Shift

LOOK = Neighbour(Rotate(30) & Shift(3))


def subject(net: str, device: str) -> Subject:
    models, (name, data) = architectures(), net.split("-")
    model = models.load_half_precision(models.build(name, data), str(SHARED / "models" / f"{net}.safetensors"))
    return Subject(model, classes=10, scores="logits", bounds=(0, 1), device=device)


def cost(net: str, pixels: torch.Tensor, options: argparse.Namespace) -> dict[str, Any]:
    """Images that are all asked once after the other; a single one with all its queries at once."""
    asked, size = subject(net, options.device), len(pixels)
    ids = [str(number) for number in range(size)]
    look, numbers = LOOK.within(asked.bounds), range(1, QUERIES + 1)
    passes = [list(numbers)] if size == 1 else [[number] for number in numbers]

    def making() -> None:
        for some in passes:
            look.several(lambda made: made, pixels, ids, some)

    def querying() -> None:
        for some in passes:
            predicted(look.several(asked.forward, pixels, ids, some), asked.task, asked.scores).cpu()

    with asked.borrowed(), torch.no_grad():
        seconds = interleaved({"making": making, "querying": querying}, options.rounds, options.device)
    each = {name: 1000 * np.array(found) / (QUERIES * size) for name, found in seconds.items()}
    return {
        "machine": machine(options.device),
        "net": net,
        "images": size,
        "neighbours_per_pass": size * len(passes[0]),
        "milliseconds_per_query": round(float(each["querying"].mean()), 5),
        "deviation": round(float(each["querying"].std(ddof=1)), 5),
        "median": round(float(np.median(each["querying"])), 5),
        "of_which_making": round(float(np.median(each["making"])), 5),
        "rounds": options.rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("WEAKSPOT_DATA", "data")))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, nargs="+", default=[1, 100, 512])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=[net for net in NETS if net.startswith("ResN")])
    parser.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    keep_freed_memory()
    rows = []
    for net in options.nets:
        pixels = tensor(images(net.split("-")[1], options.data)["x_test"][: max(options.images)], options.device)
        rows += [cost(net, pixels[:size], options) for size in options.images]
    write(options.results, rows)


if __name__ == "__main__":
    main()
