"""Random subsets of the inputs, what they cover, and how measures of them go together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weakspot.coverage.reached_targets import Reach
from weakspot.statistics import spearman

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """What random subsets of equal size and single inputs show, one column per measure."""

    subsets: dict[str, Floats]
    """Coverage, mean uncertainty, errors or distinct confusions of each subset."""
    inputs: dict[str, Floats]
    """What each input contributes to the coverage of all, or how unsure the model is of it."""
    wrong: NDArray[np.bool_] | None
    """Which inputs are predicted incorrectly; None without labels."""

    @cached_property
    def between_subsets(self) -> Floats:
        """Spearman's correlation of every two measures over the subsets; NaN where one is constant."""
        return spearman_matrix(self.subsets)

    @cached_property
    def between_inputs(self) -> Floats:
        """The same over the inputs."""
        return spearman_matrix(self.inputs)


def spearman_matrix(columns: dict[str, Floats]) -> Floats:
    """Spearman's rank correlation of every two columns; NaN where one is constant.

    >>> spearman_matrix({"a": np.array([1.0, 2, 3]), "b": np.array([3.0, 2, 1])}).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    values = list(columns.values())
    matrix = np.empty((len(values), len(values)))
    for first, column in enumerate(values):
        for second in range(first, len(values)):
            matrix[first, second] = matrix[second, first] = spearman(column, values[second])
    return matrix


def random_subsets(inputs: int, size: int, subsets: int, seed: int) -> list[NDArray[np.int64]]:
    """Random subsets of equal size, each drawn without replacement."""
    generator = np.random.default_rng(seed)
    return [generator.permutation(inputs)[:size] for _ in range(subsets)]


def drawn_inputs(ids: Sequence[str], most: int, seed: int) -> list[str]:
    """At most so many of the inputs, drawn without replacement and without regard to their order.

    >>> drawn_inputs(["b", "c", "a"], 2, seed=1) == drawn_inputs(["a", "b", "c"], 2, seed=1)
    True
    """
    names = np.sort(np.asarray(ids, dtype=np.str_))
    return [str(name) for name in names[np.random.default_rng(seed).permutation(len(names))[:most]]]


def subset_coverage(reach: Reach, subsets: list[NDArray[np.int64]]) -> Floats:
    """Share of the targets that each subset reaches."""
    return np.array([reach.covered_by(places) / reach.targets for places in subsets])
