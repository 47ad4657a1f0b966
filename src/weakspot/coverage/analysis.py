"""What the important neurons show, over all inputs or class by class: their clusters, combinations and holes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.errors import DataError
from weakspot.core.finding import Finding
from weakspot.coverage.metrics_clusters import Clusters
from weakspot.coverage.metrics_combinations import (
    CombinationCoverage,
    Holes,
    enough_neurons,
    missing_combinations,
    nearest_inputs,
    reached_combinations,
)
from weakspot.coverage.trace_probes import By, Traces


@dataclass(frozen=True)
class Choice:
    """How to choose neurons and clusters; the options of `ImportanceDrivenCoverage` of the same names."""

    neurons: int | None
    """None: as many as `share` and `inputs_each` ask for."""
    share: float
    inputs_each: int
    clusters: Callable[[np.ndarray], Clusters]
    per_class: bool
    clusters_per_class: bool
    classes_by: By
    holes: int
    nearest: int


@dataclass(frozen=True)
class Hole:
    """A combination that no test input of the group reaches, and the training inputs that show it best."""

    combination: np.ndarray
    training: int
    """How many training inputs lie in it."""
    nearest: np.ndarray
    """Places of training inputs in the order of their ids, the nearest first."""
    distance: np.ndarray
    """Their distances to the combination, 0 inside."""


@dataclass(frozen=True)
class Group:
    """All inputs, or those of one class: the important neurons and what was reached."""

    number: int
    """Of the class."""
    neurons: np.ndarray
    """The important ones, the most important first."""
    reason: str
    """Why so many."""
    reached: CombinationCoverage
    shown: CombinationCoverage
    """What the training inputs reach."""
    test: np.ndarray
    """Places of its test inputs in the order of the ids."""
    holes: tuple[Hole, ...]


@dataclass(frozen=True)
class ImportanceStudy:
    """The groups, and what is known of all neurons."""

    groups: tuple[Group, ...]
    inputs: int
    training_inputs: int
    relevance: np.ndarray
    """Mean relevance of every neuron over all training inputs."""
    training: Traces

    @cached_property
    def targets(self) -> int:
        """Combinations of all groups."""
        return sum(group.reached.targets for group in self.groups)

    @cached_property
    def counts(self) -> np.ndarray:
        """Inputs of every combination that is reached, group by group."""
        return np.concatenate([group.reached.counts for group in self.groups])


def study_importance(training: Traces, test: Traces, importance: Finding, choice: Choice) -> ImportanceStudy:
    """Neurons, clusters, combinations and holes of every group that has training inputs."""
    if importance.summary["inputs"].value and not np.any(importance.arrays["relevance"]):
        raise DataError(
            "no relevance reaches any neuron of the layer, so none is important: queries and keys of attention only "
            "weigh; choose another layer, or method: gradient"
        )
    groups = []
    clusters = _Clusters(training, choice.clusters)
    for number, relevance in _relevances(importance, choice.per_class):
        members, tested = (_members(traces, number, choice) for traces in (training, test))
        if len(members):
            groups.append(_group(number, relevance, members, tested, test, clusters, choice))
    if not groups:
        raise DataError("no class has training inputs: importance-driven coverage has nothing to go by")
    mean = np.asarray(importance.arrays["relevance"]) / max(int(importance.summary["inputs"].value or 0), 1)
    return ImportanceStudy(tuple(groups), test.count, training.count, mean, training)


def _relevances(importance: Finding, per_class: bool) -> list[tuple[int, np.ndarray]]:
    if not per_class:
        return [(0, np.asarray(importance.arrays["relevance"]))]
    return list(enumerate(np.asarray(importance.arrays["class_relevance"])))


def _members(traces: Traces, number: int, choice: Choice) -> np.ndarray:
    everything = np.arange(traces.count)
    return everything[traces.of_class(choice.classes_by) == number] if choice.per_class else everything


class _Clusters:
    """The clusters of neurons over all training inputs, each made once for all groups that want it."""

    def __init__(self, training: Traces, make: Callable[[np.ndarray], Clusters]):
        self.training = training
        self._make = make
        self._over_all: dict[int, Clusters] = {}

    def of(self, neurons: np.ndarray, members: np.ndarray | None) -> list[Clusters]:
        """Clusters of each neuron, over all training inputs or over some."""
        if members is not None:
            return [self._make(column) for column in self.training.columns(neurons)[members].T]
        missing = np.array([neuron for neuron in neurons.tolist() if neuron not in self._over_all], dtype=np.int64)
        if len(missing):
            columns = self.training.columns(missing).T
            self._over_all |= {n: self._make(column) for n, column in zip(missing.tolist(), columns, strict=True)}
        return [self._over_all[neuron] for neuron in neurons.tolist()]


def _group(
    number: int,
    relevance: np.ndarray,
    members: np.ndarray,
    tested: np.ndarray,
    test: Traces,
    clusters: _Clusters,
    choice: Choice,
) -> Group:
    order = np.argsort(-relevance, kind="stable")
    over = members if choice.clusters_per_class else None
    neurons, reason = _chosen(order, relevance, len(members), lambda some: clusters.of(some, over), choice)
    cut = clusters.of(neurons, over)
    values = clusters.training.columns(neurons)[members]
    reached, shown = reached_combinations(test.columns(neurons)[tested], cut), reached_combinations(values, cut)
    holes = _holes(missing_combinations(reached, shown, choice.holes), cut, values, members, choice.nearest)
    return Group(number, neurons, reason, reached, shown, tested, holes)


def _chosen(
    order: np.ndarray,
    relevance: np.ndarray,
    inputs: int,
    clusters: Callable[[np.ndarray], Sequence[Clusters]],
    choice: Choice,
) -> tuple[np.ndarray, str]:
    if choice.neurons is not None:
        if choice.neurons > len(order):
            raise DataError(
                f"importance-driven coverage combines {choice.neurons} neurons, and the layer has {len(order)}: set "
                f"idc: {{neurons: {len(order)}}} or fewer, or 'auto', or another layer"
            )
        return order[: choice.neurons], "as asked for"
    counts = (clusters(order[first : first + 1])[0].count for first in range(len(order)))
    enough = enough_neurons(relevance[order], counts, inputs, share=choice.share, inputs_each=choice.inputs_each)
    return order[: enough.count], enough.reason


def _holes(
    missing: Holes, clusters: Sequence[Clusters], values: np.ndarray, places: np.ndarray, nearest: int
) -> tuple[Hole, ...]:
    holes = []
    for combination, training in zip(missing.combinations, missing.training.tolist(), strict=True):
        rows, distance = nearest_inputs(combination, clusters, values, count=nearest)
        holes.append(Hole(combination, training, places[rows], distance))
    return tuple(holes)
