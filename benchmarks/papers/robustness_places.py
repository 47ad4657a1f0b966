"""Figure 5 of DeepRobust: where weak images lie, by t-SNE as published, and by principal components beside it.

    python benchmarks/papers/robustness_places.py [--data DATA] [--device cuda]

writes docs/images/papers-robustness-places.png: test images of two classes by the features of the three ResNet-32; the
darker, the lower their neighbour accuracy.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

from robustness_study import Stored

from robustness import argument_parser, images, network, tensor, unit

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "papers-robustness-places.png"
SIDE, MARGIN, DATA = 360, 15, {"cifar10": "CIFAR-10", "fashion_mnist": "Fashion-MNIST", "svhn": "SVHN"}
CLASSES, MOST = (3, 5), 800


def features(data: str, rows: np.ndarray, given: argparse.Namespace) -> np.ndarray:
    """The inputs of the last layer for these test images, of unit length."""
    model, taken = network(f"ResN-{data}", given.device), []
    model.classifier.register_forward_pre_hook(lambda module, args: taken.append(args[0].float().cpu().numpy()))
    with torch.inference_mode():
        for part in np.array_split(images(data, given.data)["x_test"][rows], 8):
            model(tensor(part, given.device))
    return unit(np.concatenate(taken))


def panel(
    draw: ImageDraw.ImageDraw, corner: tuple[int, int], spots: np.ndarray, kinds: np.ndarray, near: np.ndarray
) -> None:
    """One map; kinds: of which class an image is; near: its neighbour accuracy."""
    spread = MARGIN + (SIDE - 2 * MARGIN) * (spots - spots.min(0)) / np.ptp(spots, axis=0)
    for (x, y), kind, accuracy in zip(spread + corner, kinds, near, strict=True):
        light = int(215 * accuracy)
        colour = (light, light, 235) if kind == CLASSES[0] else (235, light, light)
        draw.ellipse([x - 3, y - 3, x + 3, y + 3], fill=colour)


def main() -> None:
    given = argument_parser(__doc__).parse_args()
    picture = Image.new("RGB", (SIDE * len(DATA), 2 * SIDE), "white")
    draw = ImageDraw.Draw(picture)
    for place, (data, title) in enumerate(DATA.items()):
        stored = Stored(f"ResN-{data}", given.data)
        rows = np.flatnonzero(np.isin(stored.labels["test"], CLASSES))[:MOST]
        values = features(data, rows, given)
        maps = {
            "t-SNE": TSNE(random_state=0, init="pca").fit_transform(values),
            "principal components": PCA(2, random_state=0).fit_transform(values),
        }
        for line, (name, spots) in enumerate(maps.items()):
            corner = (SIDE * place, SIDE * line)
            spread = MARGIN + (SIDE - 2 * MARGIN) * (spots - spots.min(0)) / np.ptp(spots, axis=0)
            panel(draw, spread + corner, stored.labels["test"][rows], stored.accuracy["test"][rows])
            draw.text((corner[0] + 6, corner[1] + 4), f"{title}, {name}", fill="black", font_size=14)
    picture.quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
