from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from weakspot.classes import Members, class_members


class Oracle(NamedTuple):
    """What the authors of DeepInspect published of one model: their matrices, and the labels behind them."""

    distance: np.ndarray
    confusion: np.ndarray
    """Type 2 for COCO, type 1 for CIFAR-100: the one the paper evaluates with."""
    type1: np.ndarray
    labels: Members
    predicted: Members


@pytest.fixture(scope="session")
def oracle(shared: Path) -> Callable[[str], Oracle]:
    def load(name: str) -> Oracle:
        with np.load(shared / "oracles" / "deepinspect" / f"{name}.npz") as file:
            stored = dict(file)
        number = {name: position for position, name in enumerate(stored["classes"])}
        labels, predicted = (members(stored[which], number) for which in ("labels", "predicted"))
        return Oracle(stored["distance"], stored.get("type2", stored["type1"]), stored["type1"], labels, predicted)

    return load


def members(names: np.ndarray, number: dict[str, int]) -> Members:
    table = np.zeros((len(names), len(number)), dtype=bool)
    for row, joined in zip(table, names, strict=True):
        row[[number[name] for name in joined.split(";") if name]] = True
    return class_members(table, len(number))


class Case(NamedTuple):
    """A small random classifier's behaviour, as arrays for the room and as plain lists for the references."""

    bits: np.ndarray
    neurons: int
    classes: int
    activated: list[list[bool]]
    labels: Members
    predicted: Members
    label_sets: list[set[int]]
    predicted_sets: list[set[int]]


@pytest.fixture(params=["single-label", "multi-label"])
def case(request: pytest.FixtureRequest) -> Case:
    generator, images, neurons, classes = np.random.default_rng(7), 90, 21, 6
    activated = generator.random((images, neurons)) < generator.random(neurons)
    if request.param == "single-label":
        labels, predicted = generator.integers(0, classes - 1, (2, images))  # the last class has no images
        label_sets, predicted_sets = ([{int(c)} for c in numbers] for numbers in (labels, predicted))
    else:
        labels, predicted = generator.random((2, images, classes)) < [0.5, 0.4, 0.3, 0.2, 0.9, 0]
        label_sets, predicted_sets = ([set(np.flatnonzero(row)) for row in table] for table in (labels, predicted))
    return Case(
        np.packbits(activated, axis=1),
        neurons,
        classes,
        activated.tolist(),
        class_members(labels, classes),
        class_members(predicted, classes),
        label_sets,
        predicted_sets,
    )
