"""What detectors learn from and judge by, gathered look by look: features, answers to the queries, right answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weakspot.core.look import Look, Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.taps import Layers, Tap
from weakspot.core.tasks import Task
from weakspot.looks import Neighbour
from weakspot.robustness.measures import simpson_diversity, squared_errors
from weakspot.robustness.queries import query_features


@dataclass(frozen=True)
class Manner:
    """How a detector looks at an input: which neighbours, how many of them are queries, which layer it reads.

    look: the neighbours. looks: how many are taken. queries: the first so many are what the detector may see at run
    time; the others only tell the truth. layers: whose values are the features; none for a black box.
    """

    look: Neighbour
    looks: int
    queries: int
    layers: Layers | None

    @property
    def tap(self) -> Tap | None:
        """Where the features are."""
        return None if self.layers is None else Tap(self.layers)

    @property
    def needs(self) -> Needs:
        """The original with its features, and the neighbours."""
        looks: dict[Look, int] = {Original(): 1}
        if self.looks:
            looks[self.look] = self.looks
        return Needs(looks=looks, taps=() if self.tap is None else (self.tap,))


class Gathering:
    """One batch: some of its samples are looked at as often as the manner says."""

    def __init__(self, manner: Manner, chosen: Sequence[str], *, truth: bool):
        self.ids = tuple(chosen)
        self._row = {name: row for row, name in enumerate(chosen)}
        self._manner = manner
        self._truth = truth
        self._outputs: list[np.ndarray] = []
        self._outcomes: list[np.ndarray] = []
        self._columns: dict[str, np.ndarray] = {}

    def add(self, seen: Observation) -> list[str]:
        """Take in one look; gives the samples that are not looked at again."""
        mine = np.array([name in self._row for name in seen.ids])
        order = np.array([self._row[name] for name in np.array(seen.ids)[mine]], dtype=np.int64)
        task = seen.seen.setting.task
        if self._truth:
            self._outcomes.append(_placed(outcomes(seen, task)[mine], order))
        if seen.number <= self._manner.queries and task == "classification":
            self._outputs.append(_placed(seen.probabilities.double().cpu().numpy()[mine], order))
        if seen.number == 0 and self._manner.tap is not None:
            features = features_of(seen, self._manner.tap)
            self._columns["features"] = _placed(features[mine], order)
        return [name for name, kept in zip(seen.ids, mine, strict=True) if not kept]

    def columns(self) -> dict[str, np.ndarray]:
        """What to keep of each sample."""
        told = dict(self._columns)
        if self._outputs:
            probabilities = np.stack(self._outputs, 1)
            told |= query_columns(probabilities)
        if self._truth:
            told["outcomes"] = np.stack(self._outcomes, 1)
        return told


def query_columns(probabilities: np.ndarray) -> dict[str, np.ndarray]:
    """What a monitor sees of an input from the probabilities of the original, first, and of the queries.

    λ counts the original, as in the paper; the features of the queries leave it out.
    probabilities (inputs, queries + 1, classes).
    """
    answers = probabilities.argmax(2)
    told = {
        "predicted": answers[:, 0],
        "confidence": probabilities[:, 0].max(1),
        "diversity": simpson_diversity(answers),
    }
    return told if answers.shape[1] == 1 else {**told, "queries": query_features(probabilities[:, 1:])}


def features_of(seen: Observation, tap: Tap) -> NDArray[np.float32]:
    """The values of the tapped layer: of length 1 for classifiers, as they are for numbers; (inputs, neurons)."""
    values = seen.channels(tap).mean.double().cpu()
    return normalised(values, seen.seen.setting.task).numpy().astype(np.float32)


def normalised(values: torch.Tensor, task: Task) -> torch.Tensor:
    """The features of a classifier divided by their Euclidean length; those of a regression as they are."""
    return torch.nn.functional.normalize(values, dim=1) if task == "classification" else values


def outcomes(seen: Observation, task: Task) -> np.ndarray:
    """Whether the class is right, as bytes; the squared error of a number."""
    if task == "classification":
        return seen.right.to(torch.uint8).cpu().numpy()
    return squared_errors(seen.outputs.cpu(), seen.targets.cpu())


def right_answers(outcomes: np.ndarray, task: Task, *, mean_squared_error: float, tolerance: float) -> np.ndarray:
    """Which looks were answered rightly: the class, or within tolerance · MSE of the training data."""
    return outcomes > 0 if task == "classification" else outcomes <= tolerance * mean_squared_error


def fresh_looks(queries: int, looks: int) -> list[int]:
    """The looks that tell the truth about an input without having been queries: the original and what comes after.

    >>> fresh_looks(2, 5)
    [0, 3, 4, 5]
    """
    return [0, *range(queries + 1, looks + 1)]


@dataclass(frozen=True)
class InOrder:
    """A column on disk in another order; only what is asked for comes into memory."""

    column: np.ndarray
    order: NDArray[np.intp]

    @property
    def shape(self) -> tuple[int, ...]:
        """As the column's."""
        return self.column.shape

    def __getitem__(self, key: Any, /) -> np.ndarray:
        """Rows by their place in the order, and what is named beside them of each row."""
        rows, *rest = key if isinstance(key, tuple) else (key,)
        return np.asarray(self.column[(self.order[rows], *rest)])


def in_order(rows: Mapping[str, np.ndarray], ids: Sequence[str]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The ids and columns of some rows by the ids' order, so that sums do not depend on the order of the data."""
    order = np.argsort(np.array(ids))
    columns = {name: np.asarray(rows[name])[order] for name in rows if name != "sample"}
    return np.array(ids)[order], columns


def _placed(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    placed = np.empty_like(values)
    placed[order] = values
    return placed
