"""DeepInspect's research questions (Tian et al. 2020) on nine nets for CIFAR-10, Fashion-MNIST and SVHN.

python benchmarks/papers/classes.py [--data FOLDER] [--device cuda] [--nets ResN-cifar10 …] [--images 10000]
    [--minutes 7] [--out FOLDER]

--data, by default $WEAKSPOT_DATA, is a folder with cifar10.npz and fashion-mnist.npz; the nets and SVHN come from
$WEAKSPOT_SHARED, by default a folder `shared` beside the checkout. Writes classes.csv beside this script, or to --out;
a net whose rows are there is not asked again. What coverage tells of the classes is asked of 4,000 training images.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from causes_cases import append
from classes_study import study

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED, architectures, machine, read_rows

from weakspot import Subject
from weakspot.data.sources import ArraySource

PROFILED = 4_000
NETS = [f"{net}-{data}" for data in ("cifar10", "fashion_mnist", "svhn") for net in ("ResN", "WideResN", "Vgg16Half")]


def images_of(name: str, split: str, folder: Path, most: int) -> ArraySource:
    """The first images of a data set."""
    path = folder / f"{name.replace('_', '-')}.npz"
    if not path.exists() and name == "svhn":
        path = SHARED / "data" / "svhn.npz"
    if not path.exists():
        sys.exit(f"needs {path}: name the folder with the public data, or set $WEAKSPOT_DATA")
    with np.load(path) as stored:
        inputs, targets = stored[f"x_{split}"][:most], stored[f"y_{split}"][:most].ravel().astype(np.int64)
    return ArraySource(inputs, targets, channels="last" if inputs.ndim == 4 else "none")


def rows_of(name: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """One net, at three places."""
    architecture, _, data = name.partition("-")
    models = architectures()
    net = models.build(architecture, data)
    net = models.load_half_precision(net, str(SHARED / "models" / f"{name}.safetensors")).eval().to(given.device)
    subject = Subject(net, classes=10, scores="logits", device=given.device)
    test, train = (
        images_of(data, *part) for part in (("test", given.data, given.images), ("train", given.data, PROFILED))
    )
    return study(subject, test, train, net=architecture, data=data)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, default=Path(os.environ.get("WEAKSPOT_DATA", "data")))
    asked.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked.add_argument("--nets", nargs="+", default=NETS, choices=NETS)
    asked.add_argument("--images", type=int, default=10_000)
    asked.add_argument("--minutes", type=float, default=1e6)
    asked.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = asked.parse_args()
    until, path = time.monotonic() + 60 * given.minutes, given.out / "classes.csv"
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.nets:
        there = [f"{row['net']}-{row['data']}" for row in read_rows(path) if row["machine"] == machine(given.device)]
        if name not in there and time.monotonic() < until:
            append(path, rows_of(name, given))


if __name__ == "__main__":
    main()
