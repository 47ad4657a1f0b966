"""Intervals of accuracy with and without groups, on filmed traffic signs (GTSRB, Stallkamp et al. 2012).

    python benchmarks/data/grouped.py [--out FILE]

writes grouped.csv beside this script, or to --out. A small net is trained on 837 tracks of 15 frames, and examined on
470 others: accuracy with its interval as if frames were independent, and by track. Then tracks are drawn, as many as
the column says, 1,000 times: how often does the interval hold the accuracy over all tracks? Neighbouring frames are
predicted alike, so that 15 frames tell little more than one.
"""

import argparse
import csv
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from weakspot import Subject, examine
from weakspot.data.sources import ArraySource, Grouped
from weakspot.repair import Predictions
from weakspot.statistics import wilson_interval
from weakspot.statistics.clustered import design_effect, grouped_share_interval

GIVEN = Path(os.environ.get("WEAKSPOT_SHARED", "")) / "data" / "gtsrb.zip"
COLUMNS = ("tracks", "frames", "method", "accuracy", "low", "high", "width", "coverage", "design_effect")
DRAWS = 1000


def signs(*splits: str) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]]:
    """Images, labels, tracks and paths of the splits."""
    with zipfile.ZipFile(GIVEN) as archive:
        rows = list(csv.DictReader(io.TextIOWrapper(archive.open("manifest.csv"), encoding="utf-8")))
        parts = {}
        for split in splits:
            own = [row for row in rows if row["split"] == split]
            images = np.stack([np.asarray(Image.open(archive.open(row["path"])).convert("RGB")) for row in own])
            labels, tracks = np.array([int(row["label"]) for row in own]), np.array([row["track"] for row in own])
            parts[split] = (images.transpose(0, 3, 1, 2), labels, tracks, [row["path"] for row in own])
    return parts


class SignNet(nn.Sequential):
    """Two convolutions and a linear layer."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 36, 43),
        )  # fmt: skip


def trained(images: np.ndarray, labels: np.ndarray, *, epochs: int = 4) -> nn.Module:
    """The net after a few epochs, so that it has errors."""
    torch.manual_seed(0)
    net, inputs = SignNet(), torch.from_numpy(images).float() / 255
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(inputs[rows]), torch.from_numpy(labels)[rows]).backward()
            optimiser.step()
    return net.eval()


def study(correct: np.ndarray, tracks: np.ndarray, drawn: int | None) -> list[dict[str, object]]:
    """The rows of one number of tracks; without a number, all of them once."""
    truth, rng = float(correct.mean()), np.random.default_rng(0)
    names = np.unique(tracks)
    places = {name: np.flatnonzero(tracks == name) for name in names}
    held, widths = {"frames": 0, "tracks": 0}, {"frames": 0.0, "tracks": 0.0}
    ends = {}
    repeats = DRAWS if drawn else 1
    for _ in range(repeats):
        chosen = rng.choice(names, drawn) if drawn else names
        rows = np.concatenate([places[name] for name in chosen])
        groups = np.repeat(np.arange(len(chosen)), [len(places[name]) for name in chosen])
        ends["frames"] = wilson_interval(int(correct[rows].sum()), len(rows))
        ends["tracks"] = grouped_share_interval(correct[rows], groups)
        for method, (low, high) in ends.items():
            held[method] += bool(low <= truth <= high)
            widths[method] += float(high - low) / repeats
    effect = design_effect(correct - truth, tracks)
    of = drawn or len(names)
    common = {"tracks": of, "frames": round(of * len(correct) / len(names)), "accuracy": f"{truth:.4f}"}
    return [
        common
        | {"method": f"by {method}", "width": f"{widths[method]:.4f}"}
        | ({"coverage": f"{held[method] / DRAWS:.3f}"} if drawn else {})
        | ({} if drawn else {"low": f"{ends[method][0]:.4f}", "high": f"{ends[method][1]:.4f}"})
        | ({} if drawn else {"design_effect": f"{effect if method == 'tracks' else 1:.1f}"})
        for method in ends
    ]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".csv"))
    given = asked.parse_args()
    torch.set_num_threads(1)
    parts = signs("train", "improvement")
    subject = Subject(trained(*parts["train"][:2]), classes=43, scores="logits", bounds=(0, 1))
    images, labels, tracks, paths = parts["improvement"]
    source = Grouped(ArraySource(images, labels, ids=paths, metadata={"track": tracks}), "track")
    [finding] = examine(subject, source, [Predictions()])
    by_id = dict(zip(finding.table["id"].to_pylist(), finding.table["correct"].to_pylist(), strict=True))
    correct = np.array([by_id[path] for path in paths])
    rows = [row for drawn in (None, 20, 50, 100, 200) for row in study(correct, tracks, drawn)]
    assert abs(float(rows[1]["low"]) - finding.summary["accuracy"].low) < 1e-4, "examine and the formula differ"
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
