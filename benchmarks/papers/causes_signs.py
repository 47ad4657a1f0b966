"""Root causes and retraining on real images: a small net for traffic signs (GTSRB, Stallkamp et al. 2012).

python benchmarks/papers/causes_signs.py [--show FOLDER] [--clusters-only]

Writes causes_signs.csv (how few images to inspect, the paper's median is 6.87 % of the errors; and on how many of the
images chosen to be labelled the net fails, beside all of the improvement set) and, unless the clusters alone are
wanted, causes_signs_retraining.csv; with --show contact sheets of the clusters go to FOLDER. Needs $WEAKSPOT_SHARED.

Train and improvement set share no track (a track is one sign, filmed); the test set is from the official one. The net
is trained on part of the tracks, so that it has something to learn from the others.
"""

import csv
import io
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from causes_retraining import chosen, retraining_data, rows_of
from measuring import SHARED, machine, write

from weakspot import Finding, Subject, examine
from weakspot.core.source import Source, Subset
from weakspot.data.sources import ArraySource
from weakspot.repair import Answers, Recipe, proved

EPOCHS, BUDGET, REPEATS = 12, 300, 2


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
    with zipfile.ZipFile(SHARED / "data" / "gtsrb.zip") as archive:
        entries = list(csv.DictReader(io.StringIO(archive.read("manifest.csv").decode())))
        names = [row["SignName"] for row in csv.DictReader(io.StringIO(archive.read("classes.csv").decode()))]
        return {split: _split(archive, entries, split) for split in ("train", "improvement", "test")}, names


def _split(archive: zipfile.ZipFile, entries: list[dict[str, str]], split: str) -> ArraySource:
    own = [entry for entry in entries if entry["split"] == split]
    images = np.stack([_pixels(archive.read(entry["path"])) for entry in own])
    grey = images.mean(1, dtype=np.float32) / 255
    known = {name: np.array([float(entry[name]) for entry in own]) for name in ("width", "height")}
    known |= {"brightness": grey.mean((1, 2)), "contrast": grey.std((1, 2))}
    return ArraySource(
        images, [int(entry["label"]) for entry in own], ids=[entry["path"] for entry in own], metadata=known
    )


def _pixels(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).transpose(2, 0, 1)


def trained(source: Source) -> nn.Module:
    """Adam with a falling rate, images moved by up to two pixels."""
    torch.manual_seed(0)
    net, batch = SignNet(), source.read(np.arange(len(source.ids)))
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(batch)).split(64):
            moved = batch.inputs[rows].roll(tuple(torch.randint(-2, 3, (2,)).tolist()), (2, 3))
            optimiser.zero_grad()
            F.cross_entropy(net(moved), batch.known_targets[rows]).backward()
            optimiser.step()
        schedule.step()
    return net.eval()


def shown(causes: Finding, folder: Path) -> None:
    """The pictures of the clusters, and a line on each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in causes.media.items():
        (folder / f"{name.replace(' ', '-')}.png").write_bytes(picture.png)
    for row in causes.table.to_pylist():
        print({key: row[key] for key in ("cluster", "images", "errors", "shared", "stability") if key in row})


def failing(subject: Subject, source: Source) -> float:
    """The share of the samples that the net fails on."""
    return round(1 - examine(subject, source, [Answers()])[0].summary["accuracy"].value, 4)


def cluster_row(causes: Finding, layers: str, **more: Any) -> dict[str, Any]:
    told = causes.summary
    wanted = ("errors", "clusters", "stable_clusters", "alone", "layer", "images_to_inspect")
    shares = ("share_to_inspect", "explained_clusters", "reduced_clusters")
    return {
        "layers": layers,
        **{name: told[name].value for name in wanted},
        **{name: round(told[name].value, 4) for name in shares},
        **more,
        "machine": machine("cpu"),
    }


def main() -> None:
    data, names = signs()
    subject = Subject(trained(data["train"]), classes=names, scores="logits", bounds=(0, 1))
    rows, pool = [], data["improvement"]
    with tempfile.TemporaryDirectory() as folder:
        for layers in ("all", "conv3"):
            begun = time.perf_counter()
            causes, unsafe = chosen(subject, data, BUDGET, f"{folder}/{layers}", layers=layers)
            seconds = round(time.perf_counter() - begun, 1)
            unsafe_images = Subset.named(pool, unsafe.table["id"].to_pylist())
            told = {"chosen": len(unsafe_images.ids), "failing_chosen": failing(subject, unsafe_images)}
            rows.append(
                cluster_row(causes, layers, **told, failing_improvement=failing(subject, pool), seconds=seconds)
            )
            if "--show" in sys.argv:
                shown(causes, Path(sys.argv[sys.argv.index("--show") + 1]) / layers)
        write(Path(__file__).with_name("causes_signs.csv"), rows)
        if "--clusters-only" in sys.argv:
            return
        causes, unsafe = chosen(subject, data, BUDGET, f"{folder}/all")
        made = proved(
            subject,
            retraining_data(data, causes, unsafe, "test"),
            recipe=Recipe(),
            repeats=REPEATS,
            validation=0.0,
        )
        retraining = rows_of(made.finding, case="traffic signs", budget=unsafe.table.num_rows, test="test")
    write(Path(__file__).with_name("causes_signs_retraining.csv"), retraining)


if __name__ == "__main__":
    main()
