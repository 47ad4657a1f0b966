"""Repair by confusing pairs: does labelling the images that they name help more than labelling as many at random?

python benchmarks/papers/classes_repair.py [--data FOLDER] [--seeds 5] [--budget 300]

A small convolutional net is trained on 2,000 images of Fashion-MNIST or CIFAR-10, asked about its confused pairs on
2,000 others without their labels, and trained further with the budget's images of a pool of 10,000: images that
`select` names by the neurons' distances ("confusing pairs") or by the outputs alone, as many at random, and the least
confident; and on the training set alone. Everything is drawn anew for each seed. Judged by the accuracy on the public
test images, which play no other part. Writes classes_repair.csv beside this script; a seed that is there is not
trained again.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from classes_study import answers
from measuring import machine, read_rows, write_rows

from weakspot import Plan, Run, Subject
from weakspot.classes.room import steps
from weakspot.core.source import Source, Subset
from weakspot.data.sources import ArraySource
from weakspot.repair import Recipe, retrained

DATA = ("fashion-mnist", "cifar10")
TRAIN, ASKED, POOL, EPOCHS, FURTHER = 2_000, 2_000, 10_000, 15, 5


def parts(path: Path, seed: int) -> dict[str, Source]:
    """Images to learn from, to ask about and to choose from, drawn from the public training images; the public test."""
    with np.load(path) as stored:
        values = dict(stored)
    order = np.random.default_rng(seed).permutation(len(values["x_train"]))[: TRAIN + ASKED + POOL]
    cut = dict(zip(("train", "test", "pool"), np.split(order, (TRAIN, TRAIN + ASKED)), strict=True))
    own = {name: source(values["x_train"][rows], values["y_train"][rows]) for name, rows in cut.items()}
    return {**own, "judge": source(values["x_test"], values["y_test"])}


def source(pixels: np.ndarray, labels: np.ndarray) -> ArraySource:
    channels = "last" if pixels.ndim == 4 else "none"
    return ArraySource(pixels, labels.ravel().astype(np.int64), channels=channels)


def small_net(channels: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in ((channels, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10))


def trained(train: Source, seed: int) -> Subject:
    torch.manual_seed(seed)
    batch = train.read(np.arange(len(train.ids)))
    net = small_net(batch.inputs.shape[1])
    subject = Subject(net, classes=10, scores="logits")
    return retrained(subject, [train], recipe=Recipe(epochs=EPOCHS, learning_rate=0.05, batch_size=64, seed=seed))


def chosen(subject: Subject, data: Mapping[str, Source], by: str, budget: int) -> list[str]:
    """What the question about classes lists for labels."""
    asked = steps({"by": by, "select": {"from": "pool", "budget": budget}})
    with tempfile.TemporaryDirectory() as folder:
        *_, listed = Plan.of(asked).run(subject, dict(data), Run.create(Path(folder) / "run"))
    assert listed.table is not None
    return [str(name) for name in listed.table["id"].to_pylist()]


def rows_of(name: str, path: Path, seed: int, budget: int) -> list[dict[str, Any]]:
    data = parts(path, seed)
    judge = data.pop("judge")
    subject = trained(data["train"], seed)
    outputs, truth = answers(subject, data["pool"])
    ids = np.array(data["pool"].ids)
    named = chosen(subject, data, "neurons", budget)
    count = len(named)
    least = ids[np.argsort(outputs.softmax(1).max(1).values.numpy(), kind="stable")[:count]]
    picks: dict[str, list[str]] = {
        "confusing pairs": named,
        "confusing pairs, by outputs": chosen(subject, data, "outputs", count),
        "random images": sorted(np.random.default_rng(seed).choice(ids, count, replace=False).tolist()),
        "least confident": least.tolist(),
        "training set alone": [],
    }
    wrong = dict(zip(ids.tolist(), (outputs.argmax(1) != truth).tolist(), strict=True))
    before, found = accuracy(subject, judge), []
    recipe = Recipe(epochs=FURTHER, learning_rate=0.01, seed=seed)
    for method, images in picks.items():
        more = [Subset.named(data["pool"], images)] if images else []
        after = accuracy(retrained(subject, [data["train"], *more], recipe=recipe), judge)
        share = float(np.mean([wrong[each] for each in images])) if images else float("nan")
        known = {"data": name, "seed": seed, "budget": budget, "method": method, "labelled": len(images)}
        figures = {"wrong_among_labelled": round(share, 4), "before": round(before, 4), "after": round(after, 4)}
        found.append({**known, **figures, "machine": machine("cpu")})
    return found


def accuracy(subject: Subject, judge: Source) -> float:
    outputs, truth = answers(subject, judge)
    return float((outputs.argmax(1) == truth).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("WEAKSPOT_DATA", "data")))
    parser.add_argument("--names", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".csv"))
    given = parser.parse_args()
    for name in given.names:
        for seed in range(given.seeds):
            there: list[dict[str, Any]] = [*read_rows(given.results)]
            if not any((row["data"], row["seed"]) == (name, str(seed)) for row in there):
                found = rows_of(name, given.data / f"{name}.npz", seed, given.budget)
                write_rows(given.results, [*there, *found])
                print(name, seed, {row["method"]: row["after"] for row in found}, flush=True)


if __name__ == "__main__":
    main()
