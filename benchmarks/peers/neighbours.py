"""Making and running neighbours: 50 rotated and shifted ones of every image, through the whole examination.

    python benchmarks/peers/neighbours.py [--device cuda] [--images 10000] [--looks 50] [--batch 64 512] [--cuda-graphs]

Bars: the examination at least 0.85 times the throughput of the bare forward pass over neighbours made beforehand;
making them at least 4 times as fast as a loop over images with Pillow and 2 times kornia's `warp_affine`, on the same
images, 28 × 28 grey and 224 × 224 in colour. `--memory` measures the peak memory at 1, 2 and 4 times the images or
neighbours instead, of neighbour accuracy and of what explains it; it must not grow by more than 5 %.

Needs kornia. The bare pass goes over a few batches of neighbours again and again, so that it need not store them all.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from frame_memory import anonymous_bytes
from measuring import SHARED, architectures, interleaved, largest, machine, ratio, write
from PIL import Image

from weakspot import Subject, examine
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.own_process import keep_freed_memory
from weakspot.data.sources import ArraySource
from weakspot.looks import Neighbour, Rotate, Shift
from weakspot.robustness import ClassRobustness, NeighbourAccuracy, VariationEffects, WeakPlaces

LOOK = Neighbour(Rotate(30) & Shift(3))
NETS = {"LeNet5": "mnist", "ResN": "cifar10"}
DATA = Path(os.environ.get("WEAKSPOT_DATA", "data"))
HELD = 16
"""Batches of neighbours that the bare pass goes over."""


def real_images(dataset: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first test images, float32 with channels first, and their classes."""
    path = DATA / f"{dataset}.npz"
    if not path.exists():
        sys.exit(f"needs {path}: set $WEAKSPOT_DATA to a folder with mnist.npz and cifar10.npz")
    with np.load(path) as stored:
        images, targets = stored["x_test"][:count], stored["y_test"][:count].reshape(-1)
    images = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    return (images / 255).astype(np.float32), targets.astype(np.int64)


def examination(name: str, batch_size: int, options: argparse.Namespace) -> dict[str, object]:
    """Throughput of `examine` with exact neighbour accuracy, against the bare forward pass."""
    models, dataset = architectures(), NETS[name]
    net = models.load_half_precision(
        models.build(name, dataset), str(SHARED / "models" / f"{name}-{dataset}.safetensors")
    )
    count = options.images if name == "LeNet5" else max(1, options.images // options.fewer)
    images, targets = real_images(dataset, count)
    subject = Subject(net.to(options.device), classes=10, scores="logits", cuda_graphs=options.cuda_graphs)
    source = ArraySource(images, targets)
    probe = NeighbourAccuracy(variation=LOOK.variation, looks=options.looks, early_stopping="never")
    starts = range(0, count, batch_size)
    batches = [source.read(np.arange(start, min(start + batch_size, count))) for start in starts]
    ready = [LOOK.images(batch.inputs.to(options.device), batch.ids, 1) for batch in batches[:HELD]]

    def bare() -> None:
        with torch.no_grad():
            for _ in range(options.looks + 1):
                for place in range(len(batches)):
                    net(ready[place % len(ready)][: len(batches[place])])

    def examined() -> None:
        examine(subject, source, [probe], execution=ExecutionOptions(batch_size=batch_size))

    seconds = interleaved({"bare": bare, "examined": examined}, options.repeats, options.device)
    return {
        "machine": machine(options.device) + (", CUDA graphs" if options.cuda_graphs else ""),
        "task": f"examine {name}, {count} images, {options.looks} neighbours, batches of {batch_size}",
        "ratio": round(1 / ratio(seconds, "examined", "bare"), 3),
        "against": "bare forward",
        "bar": 0.85,
        "neighbours_per_second": round(count * options.looks / float(np.median(seconds["examined"]))),
    }


def making(shape: tuple[int, int, int], count: int, options: argparse.Namespace) -> list[dict[str, object]]:
    """Neighbours per second, against Pillow and kornia on the same images and maps."""
    import kornia  # not needed for the rest, which also runs where it cannot be had

    images = torch.rand(count, *shape, generator=torch.Generator().manual_seed(0)).to(options.device)
    ids = [f"s{number}" for number in range(count)]
    drawn, size = LOOK.drawn(ids, 1), shape[1:]
    photographs = [Image.fromarray(photograph) for photograph in _as_bytes(images)]
    tasks = {
        "weakspot": lambda: LOOK.images(images, ids, 1),
        "kornia": lambda: kornia.geometry.warp_affine(images, _forward_maps(drawn, size).to(images), size),
        "pillow": lambda: [_with_pillow(p, row) for p, row in zip(photographs, drawn.tolist(), strict=True)],
    }
    _check_agreement(tasks["weakspot"](), tasks["kornia"](), tasks["pillow"]())
    seconds = interleaved(tasks, options.repeats, options.device)
    return [
        {
            "machine": machine(options.device),
            "task": f"make {count} of {shape[1]} × {shape[2]}, {shape[0]} channels",
            "ratio": round(ratio(seconds, peer, "weakspot"), 2),
            "against": peer,
            "bar": bar,
            "neighbours_per_second": round(count / float(np.median(seconds["weakspot"]))),
        }
        for peer, bar in (("kornia", 2), ("pillow", 4))
    ]


def _as_bytes(images: torch.Tensor) -> list[np.ndarray]:
    turned = (images.cpu().numpy() * 255).round().astype(np.uint8).transpose(0, 2, 3, 1)
    return [image[..., 0] if image.shape[-1] == 1 else image for image in turned]


def _forward_maps(drawn: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """From a place in the image to the place in its neighbour, in pixels from the corner, as kornia wants it."""
    import kornia

    height, width = size
    centre = torch.tensor([[(width - 1) / 2, (height - 1) / 2]], dtype=torch.float64).expand(len(drawn), -1)
    scale = torch.ones_like(centre)
    maps = kornia.geometry.get_rotation_matrix2d(centre, -drawn[:, 0], scale)  # kornia turns the other way
    maps[:, :, 2] += drawn[:, 1:]
    return maps


def _with_pillow(image: Image.Image, parameters: list[float]) -> np.ndarray:
    """Pillow's own rotation about the centre, then shift; its `translate` keeps to fractions of pixels."""
    angle, x, y = parameters
    turned = image.rotate(-angle, resample=Image.Resampling.BILINEAR, translate=(x, y))
    return np.asarray(turned)


def _check_agreement(ours: torch.Tensor, kornias: torch.Tensor, pillows: list[np.ndarray]) -> None:
    """All three warp alike; at the border Pillow fills otherwise, so it is compared inside."""
    if float((ours - kornias).abs().max()) > 1e-3:
        sys.exit("kornia's neighbours differ from ours: they were not asked for the same")
    inner = ours[..., 8:-8, 8:-8].cpu().numpy()
    theirs = np.stack(pillows).reshape(len(pillows), *ours.shape[2:], -1).transpose(0, 3, 1, 2)[..., 8:-8, 8:-8] / 255
    both = (inner > 0) & (theirs > 0)
    if float(np.abs(inner - theirs)[both].mean()) > 0.01:
        sys.exit("Pillow's neighbours differ from ours: they were not asked for the same")


def peak(images: int, looks: int) -> int:
    """Peak of anonymous memory, in bytes, while so many images with so many neighbours are examined."""
    some, targets = real_images("mnist", 1000)
    rows = np.arange(images) % 1000
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "x.npy", some[rows])
        source = ArraySource(np.load(Path(folder) / "x.npy", mmap_mode="r"), targets[rows])
        how = {"variation": LOOK.variation, "looks": looks}
        probes = [NeighbourAccuracy(early_stopping="never", **how)]
        probes += [kind(**how) for kind in (WeakPlaces, ClassRobustness, VariationEffects)]
        subject = Subject(architectures().build("LeNet5", "mnist"), classes=10, scores="logits")
        with largest(anonymous_bytes) as top:
            examine(subject, source, probes)
    return top[0]


def memory() -> list[dict[str, object]]:
    """1, 2 and 4 times as many images, or neighbours, each in a process of its own."""
    rows = []
    for images, looks in ((2000, 10), (4000, 10), (8000, 10), (2000, 20), (2000, 40)):
        command = [sys.executable, __file__, "--peak", str(images), str(looks)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        bytes_ = int(done.stdout.split()[-1])
        rows.append({"task": f"memory, {images} images, {looks} neighbours", "megabytes": round(bytes_ / 1e6)})
    return [
        {"machine": machine("cpu"), **row, "of_first": round(row["megabytes"] / rows[0]["megabytes"], 3)}
        for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=10000)
    parser.add_argument("--fewer", type=int, default=20, help="a CPU runs ResN on this fraction of the images")
    parser.add_argument("--looks", type=int, default=50)
    parser.add_argument("--batch", type=int, nargs="+", default=[512])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", choices=[*NETS, "making"])
    parser.add_argument("--cuda-graphs", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak", type=int, nargs=2, metavar=("IMAGES", "LOOKS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak(*options.peak))
        return
    if options.memory:
        write(Path(__file__).with_name("neighbours_memory.csv"), memory())
        return
    keep_freed_memory()
    nets = [name for name in NETS if options.only in (None, name)]
    rows = [examination(name, batch_size, options) for name in nets for batch_size in options.batch]
    if options.only in (None, "making"):
        rows += making((1, 28, 28), 1024, options) + making((3, 224, 224), 32, options)
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
