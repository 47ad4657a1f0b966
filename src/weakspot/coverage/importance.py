"""Importance-driven coverage: do test inputs reach the combinations of what matters? (Gerasimou et al. 2020)

Three questions in two passes: which neurons of a layer matter for the training inputs, what values they take there, and
which combinations of typical values the test inputs reach.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, get_args

import kmeans1d
import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs, Where
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.state import Sum
from weakspot.core.step import Step
from weakspot.core.taps import Layers, Tap
from weakspot.coverage.counting import coverage_arrays, coverage_summary
from weakspot.relevance import GradientTimesInput, IntegratedGradients, Method, deep_importance
from weakspot.relevance.need import LayerRelevance

_MOST_COMBINATIONS = 10**8


METHODS: dict[str, Callable[[], Method]] = {
    "lrp": deep_importance,
    "lrp_biases_absorb": lambda: deep_importance(bias="absorbed"),
    "gradient": GradientTimesInput,
    "integrated_gradients": IntegratedGradients,
}


class NeuronImportance(Probe):
    """Summed relevance of each neuron over the training data: which neurons of a layer the decisions rest on.

    The relevance of the winning output, summed over a channel's positions and over the inputs (Gerasimou et al. 2020).

    layers: the layer, by default the penultimate.
    method: "lrp", layer-wise relevance propagation as the paper defines it; "lrp_biases_absorb", as its code does it;
        "gradient", activation × gradient; "integrated_gradients".
    where: over "all" inputs, as the paper has it, or only over those answered rightly ("correct"), as its code does.
    """

    tasks = ("classification", "regression")
    split = "train"

    layers: Layers = "penultimate"
    method: str = "lrp"
    where: Where = "all"

    relevance = Sum()
    inputs = Sum()

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"method {self.method!r} is not known: choose one of {', '.join(METHODS)}")
        if self.where not in get_args(Where):
            raise ConfigError(f"where {self.where!r} is not known: choose one of {', '.join(get_args(Where))}")

    @cached_property
    def attribution(self) -> LayerRelevance:
        """How relevance is found."""
        return LayerRelevance(Tap(self.layers), self.where, METHODS[self.method]())

    @property
    def needs(self) -> Needs:
        """Relevance of the layer at look 0."""
        return Needs(attribution=self.attribution)

    def observe(self, seen: Observation) -> None:
        """Add up the relevance of each channel."""
        maps = seen.relevance(self.attribution)
        points = self.setting.layout(self.attribution.tap).points
        per_layer = [_channel_sums(maps[point.label], point.channel_dim) for point in points]
        self.relevance = self.relevance + torch.cat(per_layer)
        self.inputs = self.inputs + self._counted(seen)

    def _counted(self, seen: Observation) -> Tensor | int:
        if self.where == "all":
            return len(seen.ids)
        return (seen.right == (self.where == "correct")).sum()

    def finish(self) -> Finding:
        """Neurons from the most to the least important."""
        layout = self.setting.layout(self.attribution.tap)
        relevance = self.relevance.numpy()
        order = np.argsort(-relevance, kind="stable")
        labels = np.array(layout.labels)
        table = {
            "layer": labels[layout.layer_of[order]],
            "channel": layout.channel_of[order],
            "relevance": relevance[order] / max(int(self.inputs), 1),
        }
        return self.finding(
            summary=self._summary(relevance), table=table, arrays={"relevance": relevance, "order": order}
        )

    def _summary(self, relevance: np.ndarray) -> dict[str, Estimate]:
        amount = np.sort(np.abs(relevance))[::-1]
        top = -(-len(amount) // 10)
        share = float(amount[:top].sum() / amount.sum()) if amount.any() else None
        return {
            "held_by_a_tenth": Estimate(
                share, about="share of all relevance that the most relevant tenth of the neurons holds"
            ),
            "neurons": Estimate(len(relevance), about="neurons of the layer"),
            "inputs": Estimate(int(self.inputs), about="inputs whose relevance was summed"),
        }


def _channel_sums(relevance: Tensor, channel_dim: int) -> Tensor:
    others = [dim for dim in range(relevance.ndim) if dim != channel_dim]
    return relevance.sum(others, dtype=torch.float64)


class LayerTraces(Probe):
    """The value of every neuron of a layer for every input: a trace per input.

    layers: the layer, by default the penultimate.
    """

    split = "train"

    layers: Layers = "penultimate"

    traces = Rows()

    @property
    def tap(self) -> Tap:
        """Where the neurons are."""
        return Tap(self.layers)

    def observe(self, seen: Observation) -> None:
        """Keep the traces."""
        self.traces.append(seen.ids, trace=seen.channels(self.tap).mean)

    def finish(self) -> Finding:
        """The traces as one array, in the order of the data."""
        rows = self.traces.read()
        summary = {
            "neurons": Estimate(rows["trace"].shape[1], about="values kept per input"),
            "inputs": Estimate(rows.count, about="samples examined"),
        }
        return self.finding(summary=summary, table={"id": rows.ids}, arrays={"trace": rows["trace"]})


class ImportanceDrivenCoverage(LayerTraces):
    """Share of the combinations of the important neurons' typical values that test inputs reach (IDC).

    The most important neurons of a layer are chosen on the training data; each one's training values are cut into
    clusters by optimal one-dimensional k-means; every combination of clusters, one per neuron, is a target.

    neurons: how many of the most important neurons to combine.
    clusters: into how many typical values each of them is cut.
    layers: the layer, by default the penultimate.
    method: how importance is found, see `NeuronImportance`.
    where: over which training inputs it is summed, see `NeuronImportance`.
    importance: the Finding of `NeuronImportance` over the training data.
    training: the Finding of `LayerTraces` over the training data.
    """

    tasks = ("classification", "regression")
    split = "test"

    neurons: int = 6
    clusters: int = 3
    method: str = "lrp"
    where: Where = "all"
    importance: Finding
    training: Finding

    def __post_init__(self) -> None:
        if self.neurons < 1 or self.clusters < 2:
            raise ConfigError(f"expected neurons ≥ 1 and clusters ≥ 2, got {self.neurons} and {self.clusters}")
        if self.clusters**self.neurons > _MOST_COMBINATIONS:
            raise ConfigError(
                f"{self.neurons} neurons with {self.clusters} clusters each have more than {_MOST_COMBINATIONS:,} "
                "combinations, of which no test set reaches a part worth naming: ask for fewer"
            )

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """Importance and traces of the same layer over the training data: one pass serves both."""
        layers = options["layers"]
        importance = Step.of(NeuronImportance, layers=layers, method=options["method"], where=options["where"])
        return {"importance": importance, "training": Step.of(LayerTraces, layers=layers)}

    def finish(self) -> Finding:
        """Coverage of the combinations, and the combination of each test input."""
        rows = self.traces.read()
        chosen = np.asarray(self.importance.arrays["order"][: self.neurons])
        train = np.asarray(self.training.arrays["trace"][:, chosen], dtype=np.float64)
        centres = [cluster_centres(column, self.clusters) for column in train.T]
        combination = combinations(np.asarray(rows["trace"][:, chosen], dtype=np.float64), centres)
        counts = np.bincount(combination, minlength=int(np.prod([len(c) for c in centres])))
        return self.finding(
            summary=coverage_summary(counts, rows.count),
            table={"id": rows.ids, "combination": combination, "inputs_alike": counts[combination]},
            arrays={**coverage_arrays(counts, rows.count), "important": chosen, "centres": _padded(centres)},
        )


def cluster_centres(values: np.ndarray, clusters: int) -> np.ndarray:
    """Centres of the optimal one-dimensional k-means (Wang and Song 2011), increasing; fewer for fewer values.

    >>> cluster_centres(np.array([0.0, 0.1, 5.0, 5.1]), 2).round(2).tolist()
    [0.05, 5.05]
    """
    different = np.unique(values)
    if len(different) <= clusters:
        return different
    _, centres = kmeans1d.cluster(values, clusters)
    return np.sort(np.asarray(centres))


def combinations(values: np.ndarray, centres: list[np.ndarray]) -> np.ndarray:
    """The number of each row's combination of nearest centres, counted in mixed radix; shape (samples,)."""
    number = np.zeros(len(values), dtype=np.int64)
    for column, own in zip(values.T, centres, strict=True):
        borders = (own[1:] + own[:-1]) / 2
        number = number * len(own) + np.searchsorted(borders, column, side="right")
    return number


def _padded(centres: list[np.ndarray]) -> np.ndarray:
    padded = np.full((len(centres), max(len(own) for own in centres)), np.nan)
    for row, own in zip(padded, centres, strict=True):
        row[: len(own)] = own
    return padded
