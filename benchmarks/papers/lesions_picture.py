"""Figure 1 of Lambert et al. 2022 on a glioma: what a network's dropout passes give, its lesions, and one as a graph.

python benchmarks/papers/lesions_picture.py   writes docs/images/papers-lesions-framework.png; needs $WEAKSPOT_SHARED

The patient is the first test patient of the folds with true and false positives on one slice. Probabilities are the
stored means of 20 dropout passes; entropy is that of the mean.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from measuring import SHARED

from weakspot.lesions.graphs import lesion_edges, lesion_nodes
from weakspot.lesions.metrics_components import adjusted_iou, lesion_components, true_positives

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "papers-lesions-framework.png"
SCALE, GAP, HEAD = 2, 8, 22
ENOUGH = 20
"""Pixels of a lesion of each kind, so that both can be seen."""
RIGHT, WRONG = (0, 158, 115), (213, 94, 0)


class Case(NamedTuple):
    """A patient's volumes; which lesions are true; and the slice that is shown."""

    flair: np.ndarray
    probability: np.ndarray
    labels: np.ndarray
    true: np.ndarray
    slice: int


def cases() -> Iterator[Case]:
    """Patients with both kinds of lesions on one slice."""
    lgg = SHARED / "data" / "lgg"
    volumes = np.load(lgg / "volumes.npz")
    for fold in json.loads((lgg / "folds.json").read_text()):
        said = np.load(lgg / f"McDropoutUNet-lgg_fold{fold['fold']}-probabilities.npz")
        for patient in fold["test"]:
            probability = said[f"test/{patient}"].astype(np.float64) / 256
            labels, count = lesion_components(probability > 0.5)
            truth, _ = lesion_components(volumes[f"mask/{patient}"] > 0)
            true = true_positives(adjusted_iou(labels, truth))
            seen = [np.isin(labels, 1 + np.flatnonzero(own)).sum((1, 2)) for own in (true, ~true)]
            if count and (least := np.minimum(*seen)).max() >= ENOUGH:
                shown = int(np.argmax(least))
                yield Case(volumes[f"flair/{patient}"], probability, labels, true, shown)


def grey(values: np.ndarray) -> Image.Image:
    pixels = (255.0 * values / max(np.percentile(values, 99.8), 1e-9)).clip(0, 255).astype(np.uint8)
    return Image.fromarray(pixels).resize((pixels.shape[1] * SCALE, pixels.shape[0] * SCALE)).convert("RGB")


def entropy(probability: np.ndarray) -> np.ndarray:
    p = probability.clip(1e-6, 1 - 1e-6)
    return np.asarray(-(p * np.log2(p) + (1 - p) * np.log2(1 - p)))


def outlined(case: Case) -> Image.Image:
    """True positives green, false ones red."""
    shown = np.asarray(grey(case.flair[case.slice])).copy()
    labels = np.kron(case.labels[case.slice], np.ones((SCALE, SCALE), dtype=np.int64))
    for label in np.unique(labels[labels > 0]):
        own = labels == label
        inner = own.copy()
        for axis in (0, 1):
            inner &= np.roll(own, 1, axis) & np.roll(own, -1, axis)
        shown[own & ~inner] = RIGHT if case.true[label - 1] else WRONG
    return Image.fromarray(shown)


def graph(case: Case) -> Image.Image:
    """The nodes of the smallest lesion on the slice and their edges; the lighter a node, the higher its entropy."""
    here = np.unique(case.labels[case.slice])[1:]
    label = min(here, key=lambda each: int((case.labels == each).sum()))
    nodes = lesion_nodes((case.labels == label).astype(np.int32), 1)
    places, edges = nodes.places, lesion_edges(nodes)
    own = np.flatnonzero(places[:, 0] == case.slice)
    low, high = places[own, 1:].min(0), places[own, 1:].max(0)
    side = case.flair.shape[2] * SCALE
    step = (side - 30) / max(1, *(high - low))
    spots = 15 + (places[:, 1:] - low) * step
    unsure = entropy(case.probability[tuple(places.T)])
    picture = Image.new("RGB", (side, side), "black")
    draw, inside = ImageDraw.Draw(picture), set(own.tolist())
    for one, other in edges.T.tolist():
        if one in inside and other in inside:
            draw.line([tuple(spots[one][::-1]), tuple(spots[other][::-1])], fill=(90, 90, 90))
    for node in own:
        y, x = spots[node]
        light = int(60 + 195 * (unsure[node] - unsure[own].min()) / max(float(np.ptp(unsure[own])), 1e-9))
        draw.ellipse([x - 4, y - 4, x + 4, y + 4], fill=(light, light, 90))
    return picture


def main() -> None:
    case = next(cases())
    panels = {
        "FLAIR": grey(case.flair[case.slice]),
        "mean of 20 passes": grey(case.probability[case.slice]),
        "entropy": grey(entropy(case.probability[case.slice])),
        "lesions: true and false": outlined(case),
        "one of them as a graph": graph(case),
    }
    size = next(iter(panels.values())).size
    picture = Image.new("RGB", ((size[0] + GAP) * len(panels) - GAP, size[1] + HEAD), "white")
    draw = ImageDraw.Draw(picture)
    for place, (title, panel) in enumerate(panels.items()):
        picture.paste(panel, (place * (size[0] + GAP), HEAD))
        draw.text((place * (size[0] + GAP) + 4, 4), title, fill="black", font_size=14)
    picture.save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
