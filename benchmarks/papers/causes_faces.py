"""Faces with 68 landmarks (YouTube Faces): HUDD's FLD case, a net that tells where the landmarks are.

python benchmarks/papers/causes_faces.py --pack FILE [--quality 80]   all images as one small archive of WebP sheets

Reads $WEAKSPOT_FACES, an archive made by --pack, where it is set; else faces.zip of $WEAKSPOT_SHARED. The splits there
share people: here everybody is in one split alone. An answer is wrong where its worst landmark is further off than nine
tenths of the worst landmarks in the test set. See causes_retraining.py.
"""

import argparse
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import torch
from causes_cases import Case, fitted, kept, name_of, weights_of
from causes_packing import images_of, pack, pack_option, table
from measuring import SHARED
from torch import nn
from torch.nn import functional as F

from weakspot import Subject
from weakspot.core.stateless_random import draw_keys, uniform
from weakspot.data.sources import ArraySource

EPOCHS = 60
GIVEN = SHARED / "data" / "faces.zip"
SHARES = {"train": 0.45, "pool": 0.7, "test": 0.85, "fresh test": 1.0}
"""Up to which share of the people belong to each split."""


class FaceNet(nn.Sequential):
    """Four convolutions and two linear layers; the answers begin at the mean landmarks, in pixels."""

    def __init__(self, mean: torch.Tensor) -> None:
        super().__init__()
        self.conv1, self.relu1, self.pool1 = nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)
        self.conv2, self.relu2, self.pool2 = nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        self.conv3, self.relu3, self.pool3 = nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        self.conv4, self.relu4, self.pool4 = nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.hidden, self.relu5 = nn.Linear(64 * 36, 128), nn.ReLU()
        self.landmarks = nn.Linear(128, len(mean))
        with torch.no_grad():
            self.landmarks.bias.copy_(mean)


def faces() -> dict[str, ArraySource]:
    """The splits by people, with what the landmarks and the image say of each face."""
    with zipfile.ZipFile(os.environ.get("WEAKSPOT_FACES", GIVEN)) as archive:
        entries, images = table(archive, "manifest.csv"), images_of(archive, "L")
    ids = [entry["path"] for entry in entries]
    points = np.array([[float(value) for key, value in entry.items() if key[0] in "xy"] for entry in entries])
    people = [re.sub(r"_\d+\.jpg$", "", name.partition("/")[2]) for name in ids]
    drawn = uniform(draw_keys(people, 0), 1)[:, 0]
    split = np.array(list(SHARES))[np.searchsorted(list(SHARES.values()), drawn)]
    known = traits(points.reshape(len(points), -1, 2), images)
    return {name: _split(images, points, ids, known, split == name) for name in SHARES}


def traits(points: np.ndarray, images: np.ndarray) -> dict[str, np.ndarray]:
    """How a face is held and lit, from its true landmarks (68, as in iBUG's scheme) and its pixels."""
    right, left = points[:, 36:42].mean(1), points[:, 42:48].mean(1)
    between = left - right
    width = np.linalg.norm(between, axis=1)
    nose = points[:, 30] - (left + right) / 2
    along = (nose * between).sum(1) / width**2
    return {
        "roll": np.degrees(np.arctan2(between[:, 1], between[:, 0])),
        "turned": along,
        "nodding": np.linalg.norm(nose, axis=1) / width,
        "eyes_apart": width,
        "mouth_open": np.linalg.norm(points[:, 66] - points[:, 62], axis=1) / width,
        "eyes_open": np.linalg.norm(points[:, 37] - points[:, 41], axis=1) / width,
        "brightness": images.mean((1, 2)) / 255,
        "contrast": images.std((1, 2)) / 255,
    }


def _split(
    images: np.ndarray, points: np.ndarray, ids: list[str], known: dict[str, np.ndarray], members: np.ndarray
) -> ArraySource:
    own = np.flatnonzero(members)
    columns = {name: values[own] for name, values in known.items()}
    named = [ids[place] for place in own]
    return ArraySource(images[own], points[own].astype(np.float32), ids=named, channels="none", metadata=columns)


def case(device: str, folder: Path, *, seed: int = 0) -> Case:
    """The net and its data."""
    data = faces()
    torch.manual_seed(seed)
    mean = data["train"].read(np.arange(len(data["train"].ids))).known_targets.mean(0)
    net = fitted(
        FaceNet(mean),
        data["train"],
        device=device,
        epochs=EPOCHS,
        seed=seed,
        loss=F.smooth_l1_loss,
        rate=1e-3,
        weights=weights_of(folder, "faces", seed),
    )
    subject = Subject(net, task="keypoints", bounds=(0, 1), device=device)
    return Case(name_of("faces", seed), subject, kept(data, device), (100, 300), {"angles": ("roll",)})


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    pack_option(asked)
    given = asked.parse_args()
    if given.pack:
        with zipfile.ZipFile(GIVEN) as archive:
            pack(archive, given.pack, "L", quality=given.quality)


if __name__ == "__main__":
    main()
