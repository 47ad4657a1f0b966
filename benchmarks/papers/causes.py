"""Do the clusters find causes that were planted? A gaze detector, trained on eyes without them, fails for known causes.

python benchmarks/papers/causes.py [--device cuda] [--out FOLDER]   adds what is missing to causes.csv beside it
python benchmarks/papers/causes.py --small                          a quick try; writes causes_small.csv

HUDD's tables, and what retraining brings, are in causes_retraining.py.

The detector learns eight directions of the gaze from open eyes in good light. The test set mixes eyes of that kind
with eyes that are closed, behind reflecting glasses, in the dark, out of focus, or seen by a tilted camera. Every wrong
answer has a known cause: the part of the mixture its image comes from; "border" for the parts that were trained on.
Compared by the adjusted Rand index with these causes: clusters of heat maps as weakspot makes them, of each layer and
of the best one; as HUDD's released code makes them (distances of distances, knee of the gradient); and clusters made
alike of raw pixels, of penultimate features, and of heat maps divided by their length.

And, as the paper counts (RQ1, 57 to 100 % of the clusters), the share of the clusters with a parameter of the simulator
whose variance falls by half and more against the test set ("reduced"), beside the share for which that is hardly chance
("explained") and that of as large clusters drawn at random.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from causes_cases import append
from causes_eyes import ANGLES
from measuring import machine, read_rows
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot import Subject, examine
from weakspot.causes.analysis import ErrorImages
from weakspot.causes.clusters import ClusterRecipe, best_layer, cluster_layer
from weakspot.causes.distances import heat_map_distances
from weakspot.causes.error_probes import Errors
from weakspot.causes.parameters import Parameters
from weakspot.causes.probes import RootCauses
from weakspot.causes.reclustering import recluster
from weakspot.causes.traits import shared_traits
from weakspot.core.source import Source
from weakspot.data.eyes import CLASSES, EyeRanges, Eyes
from weakspot.data.sources import ArraySource

KNOWN = EyeRanges(opening=(0.6, 1.0), light=(0.8, 1.1), reflection=(0.0, 0.2), blur=(0.2, 0.6), roll=(-8.0, 8.0))
PLANTED = {
    "border": KNOWN,
    "closed": replace(KNOWN, closed=1.0),
    "reflection": replace(KNOWN, glasses=1.0, reflection=(0.9, 1.0)),
    "dark": replace(KNOWN, light=(0.08, 0.2)),
    "blurred": replace(KNOWN, blur=(2.5, 3.5)),
    "tilted": replace(KNOWN, roll=(35.0, 50.0)),
}


class GazeNet(nn.Sequential):
    """Four convolutions and two linear layers, for images of 48 × 80 pixels."""

    def __init__(self, width: int = 16) -> None:
        super().__init__(
            *_block(3, width),
            *_block(width, 2 * width),
            *_block(2 * width, 2 * width),
            *_block(2 * width, 2 * width),
            nn.Flatten(),
            nn.Linear(2 * width * 3 * 5, 64),
            nn.ReLU(),
            nn.Linear(64, len(CLASSES["gaze"])),
        )


def _block(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]


@dataclass(frozen=True)
class Size:
    train: int
    epochs: int
    test_each: int
    seeds: tuple[int, ...]


FULL, SMALL = Size(5000, 8, 300, (0, 1, 2, 3, 4)), Size(1500, 4, 80, (0,))


def all_of(source: Source) -> tuple[Tensor, Tensor]:
    batch = source.read(np.arange(len(source.ids)))
    return batch.inputs, batch.known_targets


def trained(size: Size, seed: int, device: str) -> GazeNet:
    """A detector that knows open eyes in good light only."""
    torch.manual_seed(seed)
    net = GazeNet().to(device)
    inputs, targets = (part.to(device) for part in all_of(Eyes(size.train, ranges=KNOWN, seed=100 + seed)))
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(size.epochs):
        for rows in torch.randperm(len(inputs)).split(64):
            optimiser.zero_grad()
            F.cross_entropy(net(inputs[rows]), targets[rows]).backward()
            optimiser.step()
    return net.eval()


def planted_test(each: int, seed: int) -> ArraySource:
    """The mixture; the name of each image begins with its cause."""
    parts = [Eyes(each, ranges=ranges, seed=200 + seed, name=cause) for cause, ranges in PLANTED.items()]
    batches = [part.read(np.arange(each)) for part in parts]
    columns = {name: np.concatenate([batch.metadata[name] for batch in batches]) for name in batches[0].metadata}
    images, targets = (torch.cat([getattr(batch, name) for batch in batches]) for name in ("inputs", "targets"))
    ids = [name for part in parts for name in part.ids]
    return ArraySource(images.numpy(), targets.numpy(), ids=ids, metadata=columns)


def causes_of(ids: np.ndarray) -> np.ndarray:
    return np.array([name.partition("-")[0] for name in ids])


def agreement(labels: np.ndarray, ids: np.ndarray) -> dict[str, Any]:
    """How far clusters and causes agree: adjusted Rand index, adjusted mutual information, purity."""
    causes = causes_of(ids)
    own = [causes[labels == label] for label in np.unique(labels)]
    right = sum(np.unique(members, return_counts=True)[1].max() for members in own)
    return {
        "clusters": len(own),
        "ari": round(float(adjusted_rand_score(causes, labels)), 3),
        "ami": round(float(adjusted_mutual_info_score(causes, labels)), 3),
        "purity": round(right / len(ids), 3),
    }


def traits(labels: np.ndarray, places: np.ndarray, known: Parameters) -> dict[str, Any]:
    """Of how many clusters some parameter varies half as much as in the test set; and of as large random ones."""
    clusters = [places[labels == label] for label in np.unique(labels) if (labels == label).sum() > 1]
    shuffled = np.random.default_rng(0).permutation(len(known.values))
    drawn = np.split(shuffled[: sum(map(len, clusters))], np.cumsum([len(members) for members in clusters])[:-1])
    own, chance = shared_traits(known, clusters), shared_traits(known, drawn)
    return {
        "reduced": round(float(own.reduced.mean()), 3),
        "explained": round(float(own.explained.mean()), 3),
        "reduced_at_random": round(float(chance.reduced.mean()), 3),
    }


def compared(net: nn.Module, test: ArraySource, progress: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """One row per way of clustering the same wrong answers."""
    subject = Subject(net, classes=CLASSES["gaze"], scores="logits")
    errors = examine(subject, test, [Errors()])[0]
    options = {"errors": errors, "keep": "none", "precision": "float32", "pictures": 0}
    found, of_unit_length = examine(subject, test, [RootCauses(**options), RootCauses(**options, unit_length=True)])
    images, unit = ErrorImages.of_finding(found), ErrorImages.of_finding(of_unit_length).distances
    causes, counts = np.unique(causes_of(images.ids), return_counts=True)
    progress(f"{len(images)} errors: {dict(zip(causes.tolist(), counts.tolist(), strict=True))}")
    places = np.array([test.ids.index(name) for name in images.ids])
    everything = test.read(np.arange(len(test.ids)))
    inputs, known = everything.inputs[places], Parameters.of_columns(everything.metadata, ANGLES)
    with torch.no_grad():
        features = nn.Sequential(*list(net)[:-1])(inputs.to(subject.device)).cpu().numpy()
    best = int(found.arrays["best_layer"])
    planted = ClusterRecipe(clusters=len(PLANTED))
    released = ClusterRecipe(compare="distances", bend="gradient")

    def row(what: str, distances: np.ndarray, recipe: ClusterRecipe | None = None) -> dict[str, Any]:
        layer = cluster_layer(distances, recipe)
        told = {**agreement(layer.labels, images.ids), **traits(layer.labels, places, known)}
        return {"what": what, **told, "layer_score": round(layer.score, 4)}

    pixels, penultimate = heat_map_distances(inputs.numpy()), heat_map_distances(features)
    rows = []
    for recipe, told in ((None, "knee"), (planted, "k as planted")):
        rows += [row(f"raw pixels, {told}", pixels, recipe), row(f"penultimate features, {told}", penultimate, recipe)]
        chosen = int(recluster(found, recipe, replicates=0).arrays["best_layer"])
        rows.append(row(f"heat maps, best layer, {told}", images.distances[chosen], recipe))
    rows.append(row("heat maps, released code, its k", images.distances[best], released))
    rows += [row(f"heat maps, layer {images.layers[i]}, knee", d) for i, d in enumerate(images.distances)]
    rows += [row(f"heat maps of unit length, layer {images.layers[i]}, knee", d) for i, d in enumerate(unit)]
    for recipe, told in ((None, "knee"), (planted, "k as planted")):
        chosen = best_layer([cluster_layer(d, recipe) for d in unit])
        rows.append(row(f"heat maps of unit length, best layer, {told}", unit[chosen], recipe))
    return [{"errors": len(images), **each} for each in rows]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--small", action="store_true")
    asked.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = asked.parse_args()
    size, path = (SMALL, "causes_small.csv") if given.small else (FULL, "causes.csv")
    given.out.mkdir(parents=True, exist_ok=True)
    for seed in size.seeds:
        there = read_rows(given.out / path)
        if (str(seed), machine(given.device)) not in {(row["seed"], row["machine"]) for row in there}:
            net, test = trained(size, seed, given.device), planted_test(size.test_each, seed)
            append(
                given.out / path, [{"seed": seed, **r, "machine": machine(given.device)} for r in compared(net, test)]
            )


if __name__ == "__main__":
    main()
