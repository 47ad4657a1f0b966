"""What detectors of weak inputs are trained on and see at run time: features, query features, correct looks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weakspot.core.look import Look, Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.rows import id_order
from weakspot.core.taps import Layers, Tap
from weakspot.core.tasks import Task
from weakspot.looks import Neighbour
from weakspot.robustness.metrics import simpson_diversity, squared_errors
from weakspot.robustness.metrics_queries import query_features


@dataclass(frozen=True)
class DetectorLooks:
    """Which looks a detector takes at an input, and which layer it reads.

    look: the neighbours.
    looks: how many of them are taken.
    queries: the first so many are what the detector sees at run time; the others only tell whether the input is weak.
    layers: whose values are the features; None for a black box.
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


class DetectorBatch:
    """What is kept of one batch, look by look.

    how: which looks are taken.
    chosen: the samples to keep.
    truth: whether to keep which looks are correct; needs targets.
    """

    def __init__(self, how: DetectorLooks, chosen: Sequence[str], *, truth: bool):
        self.ids = tuple(chosen)
        self._row = {name: row for row, name in enumerate(chosen)}
        self._how = how
        self._truth = truth
        self._probabilities: list[np.ndarray] = []
        self._outcomes: list[np.ndarray] = []
        self._columns: dict[str, np.ndarray] = {}

    def add(self, seen: Observation) -> list[str]:
        """Add one look; returns the samples that need no more looks."""
        chosen = np.array([name in self._row for name in seen.ids])
        rows = np.array([self._row[name] for name in np.array(seen.ids)[chosen]], dtype=np.int64)
        task = seen.seen.setting.task
        if self._truth:
            self._outcomes.append(_placed(outcomes(seen, task)[chosen], rows))
        if seen.number <= self._how.queries and task == "classification":
            self._probabilities.append(_placed(seen.probabilities.double().cpu().numpy()[chosen], rows))
        if seen.number == 0:
            self._columns["shape"] = np.tile(np.array(seen.inputs.shape[1:], dtype=np.int64), (len(rows), 1))
        if seen.number == 0 and self._how.tap is not None:
            self._columns["features"] = _placed(layer_features(seen, self._how.tap)[chosen], rows)
        return [name for name, kept in zip(seen.ids, chosen, strict=True) if not kept]

    def columns(self) -> dict[str, np.ndarray]:
        """What to keep of each sample."""
        columns = dict(self._columns)
        if self._probabilities:
            columns |= query_columns(np.stack(self._probabilities, 1))
        if self._truth:
            columns["outcomes"] = np.stack(self._outcomes, 1)
        return columns


def query_columns(probabilities: np.ndarray) -> dict[str, np.ndarray]:
    """What a detector sees of an input in the probabilities of the original, first, and of the queries.

    λ counts the original, as in the paper; the features of the queries leave it out.

    probabilities: shape (inputs, queries + 1, classes).
    """
    predictions = probabilities.argmax(2)
    columns = {
        "prediction": predictions[:, 0],
        "confidence": probabilities[:, 0].max(1),
        "concentration": simpson_diversity(predictions),
    }
    return columns if predictions.shape[1] == 1 else {**columns, "queries": query_features(probabilities[:, 1:])}


def layer_features(seen: Observation, tap: Tap) -> NDArray[np.float32]:
    """The values of the tapped layer: of length 1 for classifiers, unchanged for regression; (inputs, neurons)."""
    values = seen.channels(tap).mean.double().cpu()
    return normalised(values, seen.seen.setting.task).numpy().astype(np.float32)


def normalised(values: torch.Tensor, task: Task) -> torch.Tensor:
    """The features of a classifier divided by their Euclidean length; those of a regression unchanged."""
    return torch.nn.functional.normalize(values, dim=1) if task == "classification" else values


def outcomes(seen: Observation, task: Task) -> np.ndarray:
    """Whether the class is correct, as bytes; of a regression the squared error."""
    if task == "classification":
        return seen.correct.to(torch.uint8).cpu().numpy()
    return squared_errors(seen.outputs.cpu(), seen.targets.cpu())


def correct_outcomes(outcomes: np.ndarray, task: Task, *, mean_squared_error: float, tolerance: float) -> np.ndarray:
    """Which looks are correct: the class, or the error within tolerance · MSE of the training data."""
    return outcomes > 0 if task == "classification" else outcomes <= tolerance * mean_squared_error


def fresh_looks(queries: int, looks: int) -> list[int]:
    """The looks that tell whether an input is weak without being queries: the original and those after the queries.

    >>> fresh_looks(2, 5)
    [0, 3, 4, 5]
    """
    return [0, *range(queries + 1, looks + 1)]


@dataclass(frozen=True)
class ReorderedRows:
    """A column on disk in another order; only what is asked for comes into memory."""

    column: np.ndarray
    order: NDArray[np.intp]

    @property
    def shape(self) -> tuple[int, ...]:
        """As the column's."""
        return self.column.shape

    def __getitem__(self, key: Any, /) -> np.ndarray:
        """Rows by their number in the new order, and further axes as in the column."""
        rows, *rest = key if isinstance(key, tuple) else (key,)
        return np.asarray(self.column[(self.order[rows], *rest)])


def sorted_by_id(rows: Mapping[str, np.ndarray], ids: Sequence[str]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Ids and columns in the order of the ids, so that sums do not depend on the order of the data."""
    order = id_order(ids)
    columns = {name: np.asarray(rows[name])[order] for name in rows if name != "sample"}
    return np.array(ids)[order], columns


def _placed(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    placed = np.empty_like(values)
    placed[rows] = values
    return placed
