"""Importance-driven coverage end to end: relevance, traces and clusters of 60,000 MNIST images, coverage of 10,000.

    python benchmarks/peers/importance.py

The authors' LeNet-5 (`$WEAKSPOT_SHARED/models`) over MNIST (`$WEAKSPOT_DATA`), arrays mapped from disk, 8 neurons,
class by class, with holes and thumbnails; each row in a process of its own. Peak memory over a quarter, half and all of
the training images. Bars: 3 minutes on two cores; memory of all within 5 % of a quarter's. Linux only.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from frame_memory import anonymous_bytes
from measuring import SHARED, largest, machine, write

IMAGES = (15_000, 30_000, 60_000)


def measured(images: int) -> tuple[float, int]:
    """Seconds of the whole plan, and the peak of anonymous memory meanwhile."""
    import torch
    from safetensors.torch import load_file

    from weakspot import Plan, Run, Step, Subject
    from weakspot.coverage.importance_probes import ImportanceDrivenCoverage
    from weakspot.data.sources import ArraySource

    torch.set_num_threads(2)
    sys.path.insert(0, str(SHARED / "models"))
    from paper_lenets import PaperLeNet

    net = PaperLeNet(5)
    net.load_state_dict(load_file(SHARED / "models" / "PaperLeNet5-mnist.safetensors"))
    with tempfile.TemporaryDirectory() as folder:
        data = {}
        with np.load(Path(os.environ["WEAKSPOT_DATA"]) / "mnist.npz") as stored:
            for split in ("train", "test"):
                path = Path(folder) / f"{split}.npy"
                np.save(path, stored[f"x_{split}"][:images])
                mapped = np.load(path, mmap_mode="r")
                data[split] = ArraySource(mapped, stored[f"y_{split}"][:images], channels="none")
        plan = Plan.of([Step.of(ImportanceDrivenCoverage, neurons=8, per_class=True)])
        with largest(anonymous_bytes, every=0.02) as peak:
            begun = time.perf_counter()
            subject = Subject(net, task="classification", classes=10)
            plan.run(subject, data, Run.create(Path(folder) / "run"))
            seconds = time.perf_counter() - begun
        return seconds, peak[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(*measured(options.child))
        return
    found = {}
    for images in IMAGES:
        command = [sys.executable, __file__, "--child", str(images)]
        seconds, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        found[images] = float(seconds), int(peak)
    rows = [
        {
            "training_images": images,
            "seconds": f"{seconds:.1f}",
            "peak_anonymous_mb": round(peak / 1e6),
            "ratio_to_first": f"{peak / found[IMAGES[0]][1]:.3f}",
            "bar": "≤ 180 s, ≤ 1.05",
            "held": "yes" if seconds <= 180 and peak <= 1.05 * found[IMAGES[0]][1] else "no",
            "machine": machine("cpu"),
        }
        for images, (seconds, peak) in found.items()
    ]
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
