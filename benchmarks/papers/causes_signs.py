"""Traffic signs (GTSRB, Stallkamp et al. 2012): HUDD's TSR case, and the 43 classes of classes_trained.py.

python benchmarks/papers/causes_signs.py --pack FILE [--quality 80]   all images as one small archive of WebP sheets
python benchmarks/papers/causes_signs.py --show FOLDER                contact sheets of the root-cause clusters

Reads $WEAKSPOT_SIGNS, an archive made by --pack, where it is set; else gtsrb.zip of $WEAKSPOT_SHARED. Packed images are
compressed a second time (root mean square difference about 5 of 255).

Train and pool share no track (a track is one sign, filmed). Root causes are found in a random half of the
official test images that are there; the other half is the fresh test set. See causes_retraining.py.
"""

import argparse
import os
import zipfile
from pathlib import Path

import numpy as np
import torch
from causes_cases import Case, chosen, fitted, kept, name_of, weights_of
from causes_packing import images_of, pack, pack_option, table
from measuring import SHARED
from torch import nn

from weakspot import Subject
from weakspot.core.source import Subset
from weakspot.data.sources import ArraySource

EPOCHS = 12
GIVEN = SHARED / "data" / "gtsrb.zip"


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
    with zipfile.ZipFile(os.environ.get("WEAKSPOT_SIGNS", GIVEN)) as archive:
        entries, images = table(archive, "manifest.csv"), images_of(archive, "RGB")
        names = [row["SignName"] for row in table(archive, "classes.csv")]
    splits = np.array([entry["split"] for entry in entries])
    return {split: _split(images, entries, splits == split) for split in ("train", "pool", "test")}, names


def _split(images: np.ndarray, entries: list[dict[str, str]], members: np.ndarray) -> ArraySource:
    own = [entry for entry, member in zip(entries, members, strict=True) if member]
    grey = images[members].mean(3, dtype=np.float32) / 255
    known = {name: np.array([float(entry[name]) for entry in own]) for name in ("width", "height")}
    known |= {"brightness": grey.mean((1, 2)), "contrast": grey.std((1, 2))}
    labels, ids = [int(entry["label"]) for entry in own], [entry["path"] for entry in own]
    return ArraySource(images[members], labels, ids=ids, channels="last", metadata=known)


def sign_net(data: dict[str, ArraySource], device: str, *, seed: int = 0, weights: Path | None = None) -> nn.Module:
    """The net, trained on the training tracks with images moved by up to two pixels."""
    torch.manual_seed(seed)
    return fitted(SignNet(), data["train"], device=device, epochs=EPOCHS, seed=seed, shift=2, weights=weights)


def case(device: str, folder: Path, *, seed: int = 0, **options: str) -> Case:
    """The net and its data, the test images in two halves."""
    data, names = signs()
    net = sign_net(data, device, seed=seed, weights=weights_of(folder, "signs", seed))
    subject = Subject(net, classes=names, scores="logits", bounds=(0, 1), device=device)
    order = np.random.default_rng(0).permutation(len(data["test"].ids))
    halves = [Subset(data["test"], np.sort(half)) for half in np.array_split(order, 2)]
    splits = {"train": data["train"], "test": halves[0], "pool": data["pool"], "fresh test": halves[1]}
    return Case(name_of("traffic signs", seed), subject, kept(splits, device), (300, 1000), options)


def show(folder: Path) -> None:
    """The pictures of the clusters, and a line on each, by the best layer and by the last convolution."""
    folder.mkdir(parents=True, exist_ok=True)
    for layers in ("all", "conv3"):
        causes, *_ = chosen(case("cpu", folder, layers=layers), 300)
        (folder / layers).mkdir(exist_ok=True)
        for name, picture in causes.media.items():
            (folder / layers / f"{name.replace(' ', '-')}.png").write_bytes(picture.png)
        for row in causes.table.to_pylist():
            print({key: row[key] for key in ("cluster", "images", "errors", "shared", "stability") if key in row})


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    pack_option(asked)
    asked.add_argument("--show", type=Path)
    given = asked.parse_args()
    if given.pack:
        with zipfile.ZipFile(GIVEN) as archive:
            pack(archive, given.pack, "RGB", quality=given.quality)
    if given.show:
        show(given.show)


if __name__ == "__main__":
    main()
