"""Canvases with several real digits and garments on each, some of which come in pairs: labels with planted company.

Twenty classes: the digits of MNIST and the garments of Fashion-MNIST. A canvas of 64 × 64 pixels has four places; one
to three classes are drawn, each brings its partner along with the pair's probability, and every class is shown once, by
a random image of it, at a random contrast, under noise. All is drawn from the seed. The pairs, their probabilities,
contrast and noise were fixed before the first net was trained.
"""

from pathlib import Path

import numpy as np

from weakspot.classes import pair_classes
from weakspot.data.sources import ArraySource

DIGITS = tuple(f"digit {number}" for number in range(10))
GARMENTS = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
CLASSES = DIGITS + GARMENTS
COMPANY = {
    (0, 11): 0.9,
    (1, 15): 0.9,
    (2, 13): 0.8,
    (3, 18): 0.8,
    (4, 19): 0.6,
    (5, 10): 0.6,
    (6, 17): 0.4,
    (7, 12): 0.4,
}
"""Pairs of classes that come together, and how often one brings the other; four classes have no partner."""
SIDE, CELL, OBJECT, CONTRAST, NOISE = 64, 32, 28, (0.15, 1.0), 0.2
FROM_EACH = {"train": 10_000, "test": 4_000}
"""How many images of each data set may appear on canvases, the first ones."""


def objects(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Images of digits and garments, and their classes from 0 to 19."""
    images, labels = [], []
    for first, name in ((0, "mnist"), (10, "fashion-mnist")):
        with np.load(folder / f"{name}.npz") as stored:
            images.append(stored[f"x_{split}"][: FROM_EACH[split]])
            labels.append(stored[f"y_{split}"][: FROM_EACH[split]].astype(np.int64) + first)
    return np.concatenate(images), np.concatenate(labels)


def label_sets(count: int, rng: np.random.Generator, *, company: bool) -> list[list[int]]:
    """The classes on each canvas, at most four."""
    partners = {a: (b, chance) for (one, other), chance in COMPANY.items() for a, b in ((one, other), (other, one))}
    sets = []
    for _ in range(count):
        drawn: list[int] = rng.choice(len(CLASSES), rng.integers(1, 4), replace=False).tolist()
        if company:
            brought = [partners[c][0] for c in drawn if c in partners and rng.random() < partners[c][1]]
            drawn = list(dict.fromkeys([*drawn, *brought]))
        sets.append(drawn[:4])
    return sets


def canvases(folder: Path, split: str, count: int, *, seed: int, company: bool) -> ArraySource:
    """So many canvases, with one label per class."""
    rng = np.random.default_rng([seed, split == "test", company])
    images, labels = objects(folder, split)
    drawn = label_sets(count, rng, company=company)
    rows = np.repeat(np.arange(count), [len(classes) for classes in drawn])
    numbers = np.array([number for classes in drawn for number in classes])
    slots = np.concatenate([np.arange(len(classes)) for classes in drawn])
    corners = np.stack(np.divmod(rng.permuted(np.tile(np.arange(4), (count, 1)), axis=1)[rows, slots], 2), axis=1)
    corners = corners * CELL + rng.integers(0, CELL - OBJECT + 1, corners.shape)
    shown = _random_members(labels, numbers, rng)
    contrast = rng.uniform(*CONTRAST, len(rows)).astype(np.float32)
    pictures = np.zeros((count, SIDE, SIDE), dtype=np.float32)
    for row, (top, left), member, strength in zip(rows, corners, shown, contrast, strict=True):
        pictures[row, top : top + OBJECT, left : left + OBJECT] = images[member] * (strength / 255)
    targets = np.zeros((count, len(CLASSES)), dtype=np.int64)
    targets[rows, numbers] = 1
    pictures += rng.normal(0, NOISE, pictures.shape).astype(np.float32)
    kept = (np.clip(pictures, 0, 1) * 255).round().astype(np.uint8)
    return ArraySource(kept, targets, channels="none")


def _random_members(labels: np.ndarray, wanted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each wanted class the place of a random image of it."""
    order, counts = np.argsort(labels, kind="stable"), np.bincount(labels)
    first = np.cumsum(counts) - counts
    return order[first[wanted] + (rng.random(len(wanted)) * counts[wanted]).astype(np.int64)]


def planted_pairs() -> np.ndarray:
    """Which of the 190 pairs of classes were planted."""
    count = len(CLASSES)
    places = pair_classes(np.arange(count * (count - 1) // 2), count)
    return np.array([tuple(pair) in COMPANY for pair in places.tolist()])
