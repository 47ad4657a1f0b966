"""Memory over 10,000 images: relevance of input and inner layers, batch after batch, must stay flat.

Usage: python benchmarks/peers/relevance_memory.py [--device cuda] [--images 10000] [--threads 2]
"""

import argparse
import gc
from pathlib import Path

import torch
from measuring import machine, write
from relevance_peers import images, network

from weakspot.relevance import relevance

BATCH = 50


def in_use(device: str) -> float:
    """Megabytes held now: resident memory, or what torch has allocated on the GPU."""
    if device.startswith("cuda"):
        return torch.cuda.memory_allocated() / 2**20
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    gc.disable()  # reference counts alone must free everything
    net, pictures = network("ResN", options.device), images(5000, options.device)[0]
    rows, begun = [], 0.0
    for done in range(0, options.images, BATCH):
        first = done % len(pictures)
        relevance(net, pictures[first : first + BATCH], layers=["group2", "group3", "classifier:input"])
        so_far = done + BATCH
        if so_far == 500 or so_far % 2500 == 0:
            used = in_use(options.device)
            begun = begun or used
            rows.append(
                {
                    "machine": machine(options.device),
                    "images": so_far,
                    "megabytes": round(used, 1),
                    "times_after_500": round(used / begun, 3),
                    "bar": "" if so_far == 500 else "≤ 1.05",
                }
            )
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
