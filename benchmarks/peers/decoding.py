"""Images decoded per second: ImageFolder and ImageZip against a plain torch DataLoader with Pillow, equal workers.

    python benchmarks/peers/decoding.py [--images 600] [--repeats 5]

The images are made here: smooth colours with noise, as JPEG and PNG. The peer's dataset opens, converts and scales an
image with Pillow, numpy and torch and does nothing else; its worker processes stay alive between rounds, so that
starting them does not count. It makes no check and applies no EXIF orientation.
"""

import argparse
import io
import os
import tempfile
import zipfile
from pathlib import Path

import measuring
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from weakspot.core.source import read_ahead
from weakspot.data.sources import ImageFolder, ImageZip

BATCH = 64
KINDS = {"jpeg-224": ("jpg", 224, None), "png-32": ("png", 32, None), "jpeg-500-to-224": ("jpg", 500, (224, 224))}


def make_images(folder: Path, suffix: str, side: int, count: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = rng.integers(0, 256, (max(side // 8, 2),) * 2 + (3,), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC), dtype=np.float32)
        noisy = (smooth + rng.normal(0, 6, smooth.shape)).clip(0, 255).astype(np.uint8)
        path = folder / str(number % 10) / f"{number:05d}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noisy).save(path, **({"quality": 90} if suffix == "jpg" else {}))


def pack(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*.*")):
            archive.write(path, path.relative_to(folder).as_posix())


class PlainFiles(Dataset):
    def __init__(self, folder: Path, size: tuple[int, int] | None):
        self.paths, self.size = sorted(map(str, folder.rglob("*.*"))), size

    def __len__(self) -> int:
        return len(self.paths)

    def opened(self, number: int) -> object:
        return self.paths[number]

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        with Image.open(self.opened(number)) as image:
            picture = image.convert("RGB")
        if self.size is not None:
            picture = picture.resize(self.size[::-1], Image.Resampling.BILINEAR)
        values = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()
        return values.to(torch.float32).div(255), number % 10


class PlainZip(PlainFiles):
    def __init__(self, path: Path, size: tuple[int, int] | None):
        self.path, self.size, self.owner = path, size, None
        with zipfile.ZipFile(path) as archive:
            self.paths = sorted(archive.namelist())

    def opened(self, number: int) -> object:
        if self.owner != os.getpid():  # each worker process needs a handle of its own
            self.archive, self.owner = zipfile.ZipFile(self.path), os.getpid()
        return io.BytesIO(self.archive.read(self.paths[number]))


def ours(source: ImageFolder | ImageZip, workers: int) -> int:
    batches = [np.arange(i, min(i + BATCH, len(source.ids))) for i in range(0, len(source.ids), BATCH)]
    return sum(len(batch) for batch in read_ahead(source.read, batches, workers))


def theirs(loader: DataLoader) -> int:
    return sum(len(inputs) for inputs, _ in loader)


def loader(dataset: Dataset, workers: int) -> DataLoader:
    return DataLoader(dataset, BATCH, num_workers=workers, persistent_workers=True)


def measure(kind: str, images: int, repeats: int, scratch: Path) -> list[dict]:
    suffix, side, size = KINDS[kind]
    folder, archive = scratch / kind, scratch / f"{kind}.zip"
    make_images(folder, suffix, side, images)
    pack(folder, archive)
    rows = []
    for workers in (1, 2):
        for held, source, dataset in (
            ("folder", ImageFolder(folder, size=size), PlainFiles(folder, size)),
            ("zip", ImageZip(archive, size=size), PlainZip(archive, size)),
        ):
            peer = loader(dataset, workers)
            check_equal(source, peer)
            tasks = {"weakspot": lambda s=source, w=workers: ours(s, w), "loader": lambda p=peer: theirs(p)}
            seconds = measuring.interleaved(tasks, repeats)
            speed = {name: images / float(np.median(taken)) for name, taken in seconds.items()}
            rows.append(
                {
                    "machine": measuring.machine("cpu"),
                    "images": kind,
                    "held in": held,
                    "workers": workers,
                    "weakspot images/s": round(speed["weakspot"]),
                    "DataLoader images/s": round(speed["loader"]),
                    "times as fast": round(measuring.ratio(seconds, "loader", "weakspot"), 2),
                }
            )
    return rows


def check_equal(source: ImageFolder | ImageZip, peer: DataLoader) -> None:
    expected = next(iter(peer))[0]
    assert torch.equal(source.read(np.arange(len(expected))).inputs, expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = [row for kind in KINDS for row in measure(kind, options.images, options.repeats, Path(scratch))]
    measuring.write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
