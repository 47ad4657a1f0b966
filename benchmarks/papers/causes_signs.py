"""Traffic signs (GTSRB, Stallkamp et al. 2012): HUDD's TSR case, and the 43 classes of classes_trained.py.

python benchmarks/papers/causes_signs.py --pack FILE [--quality 80]   all images as one small archive of WebP sheets
python benchmarks/papers/causes_signs.py --show FOLDER                contact sheets of the root-cause clusters

Reads $WEAKSPOT_SIGNS, an archive made by --pack, where it is set; else gtsrb.zip of $WEAKSPOT_SHARED. Packed images are
compressed a second time (root mean square difference about 5 of 255).

Train and improvement set share no track (a track is one sign, filmed). Root causes are found in a random half of the
official test images that are there; the other half is the fresh test set. See causes_retraining.py.
"""

import argparse
import csv
import io
import os
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from causes_cases import Case, chosen, fitted, kept
from causes_packing import pack, pixels, unpacked
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED

from weakspot import Subject
from weakspot.core.source import Subset
from weakspot.data.sources import ArraySource

EPOCHS = 12


class SignNet(nn.Sequential):
    """Three convolutions and two linear layers, for images of 48 × 48 pixels and 43 signs."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.relu1 = nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.ReLU()
        self.conv2, self.relu2, self.pool2 = nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        self.conv3, self.relu3, self.pool3 = nn.Conv2d(24, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.hidden, self.relu4 = nn.Linear(32 * 36, 96), nn.ReLU()
        self.classifier = nn.Linear(96, 43)


def signs() -> tuple[dict[str, ArraySource], list[str]]:
    """The splits with what is known of the images, and the names of the signs."""
    with zipfile.ZipFile(os.environ.get("WEAKSPOT_SIGNS", SHARED / "data" / "gtsrb.zip")) as archive:
        entries = _rows(archive, "manifest.csv")
        names = [row["SignName"] for row in _rows(archive, "classes.csv")]
        found = unpacked(archive, len(entries), "RGB")
        images = _read(archive, entries) if found is None else found
    splits = np.array([entry["split"] for entry in entries])
    return {split: _split(images, entries, splits == split) for split in ("train", "improvement", "test")}, names


def _rows(archive: zipfile.ZipFile, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(archive.read(name).decode())))


def _read(archive: zipfile.ZipFile, entries: list[dict[str, str]]) -> np.ndarray:
    return np.stack([pixels(archive.read(entry["path"]), "RGB") for entry in entries])


def _split(images: np.ndarray, entries: list[dict[str, str]], members: np.ndarray) -> ArraySource:
    own = [entry for entry, member in zip(entries, members, strict=True) if member]
    grey = images[members].mean(3, dtype=np.float32) / 255
    known = {name: np.array([float(entry[name]) for entry in own]) for name in ("width", "height")}
    known |= {"brightness": grey.mean((1, 2)), "contrast": grey.std((1, 2))}
    labels, ids = [int(entry["label"]) for entry in own], [entry["path"] for entry in own]
    return ArraySource(images[members], labels, ids=ids, channels="last", metadata=known)


def packed(path: Path, quality: int) -> None:
    """All images as sheets, in the order of the manifest."""
    with zipfile.ZipFile(SHARED / "data" / "gtsrb.zip") as archive:
        tables = {name: archive.read(name) for name in ("manifest.csv", "classes.csv")}
        pack(_read(archive, _rows(archive, "manifest.csv")), tables, path, quality=quality)


def sign_net(data: dict[str, ArraySource], device: str, *, seed: int = 0, weights: Path | None = None) -> nn.Module:
    """The net, trained on the training tracks with images moved by up to two pixels."""
    torch.manual_seed(seed)
    return fitted(SignNet(), data["train"], device=device, epochs=EPOCHS, seed=seed, shift=2, weights=weights)


def case(device: str, folder: Path, *, seed: int = 0, **options: str) -> Case:
    """The net and its data, the test images in two halves."""
    data, names = signs()
    weights = folder / f"causes_signs{f'_{seed}' if seed else ''}.safetensors"
    net = sign_net(data, device, seed=seed, weights=weights)
    subject = Subject(net, classes=names, scores="logits", bounds=(0, 1), device=device)
    order = np.random.default_rng(0).permutation(len(data["test"].ids))
    halves = [Subset(data["test"], np.sort(half)) for half in np.array_split(order, 2)]
    splits = {"train": data["train"], "test": halves[0], "improvement": data["improvement"], "fresh test": halves[1]}
    return Case("traffic signs", subject, kept(splits, device), (300, 1000), options)


def show(folder: Path) -> None:
    """The pictures of the clusters, and a line on each, by the best layer and by the last convolution."""
    folder.mkdir(parents=True, exist_ok=True)
    for layers in ("all", "conv3"):
        with tempfile.TemporaryDirectory() as run:
            causes, *_ = chosen(case("cpu", folder, layers=layers), 300, Path(run) / "run")
            (folder / layers).mkdir(exist_ok=True)
            for name, picture in causes.media.items():
                (folder / layers / f"{name.replace(' ', '-')}.png").write_bytes(picture.png)
            for row in causes.table.to_pylist():
                print({key: row[key] for key in ("cluster", "images", "errors", "shared", "stability") if key in row})


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--pack", type=Path)
    asked.add_argument("--quality", type=int, default=80)
    asked.add_argument("--show", type=Path)
    given = asked.parse_args()
    if given.pack:
        packed(given.pack, given.quality)
    if given.show:
        show(given.show)


if __name__ == "__main__":
    main()
