"""Importance-driven coverage: do test inputs reach the combinations of what matters? (Gerasimou et al. 2020)

Three questions in two passes: which neurons of a layer matter for the training inputs, what values they take there, and
which combinations of typical values the test inputs reach.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from weakspot.core.class_names import class_names
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs, Where
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe
from weakspot.core.state import Sum
from weakspot.core.step import Step
from weakspot.core.taps import Layers, Tap
from weakspot.coverage import finding_outputs as declared
from weakspot.coverage.analysis import Choice, study_importance
from weakspot.coverage.finding_parts import (
    combination_arrays,
    figure_arrays,
    hole_arrays,
    input_columns,
    pictures,
    summary,
)
from weakspot.coverage.metrics_clusters import Clustering, Index, check_clustering
from weakspot.coverage.metrics_combinations import clusters_of
from weakspot.coverage.trace_probes import By, LayerTraces, Traces
from weakspot.data.pictures import Pictures
from weakspot.relevance import GradientTimesInput, IntegratedGradients, Method, deep_importance, epsilon_plus
from weakspot.relevance.need import LayerRelevance
from weakspot.relevance.soundness import problem_in, problem_of, unsound_samples

Priority = Literal["cumulative", "normalised"]
METHODS: dict[str, Callable[[], Method]] = {
    "lrp": deep_importance,
    "lrp_biases_absorb": lambda: deep_importance(bias="absorbed"),
    "epsilon_plus_redistributed": lambda: epsilon_plus(bias="redistributed"),
    "gradient": GradientTimesInput,
    "integrated_gradients": IntegratedGradients,
}


class NeuronImportance(Probe):
    """Summed relevance of each neuron over the training data: which neurons of a layer the decisions rest on.

    The relevance of the winning output, summed over a channel's positions and over the inputs (Gerasimou et al. 2020);
    for a classifier also class by class.

    layers: the layer, by default the penultimate.
    method: "lrp", layer-wise relevance propagation as the paper defines it; "lrp_biases_absorb", as its code does it;
        "epsilon_plus_redistributed", which stays bounded in deep networks;
        "gradient", activation × gradient; "integrated_gradients".
    where: over "all" inputs, as the paper has it, or only over those predicted "correct", as its code does, or
        "incorrect".
    priority: "cumulative" sums relevance as it is; "normalised" first divides each input's relevance by the sum of its
        magnitudes in the layers, so that confident predictions count no more than others.
    classes_by: whose sum an input's relevance joins: that of the predicted class ("prediction") or of the label
        ("target").
    """

    outputs = declared.NEURON_IMPORTANCE

    tasks = ("classification", "regression")
    split = "train"

    layers: Layers = "penultimate"
    method: str = "lrp"
    where: Where = "all"
    priority: Priority = "cumulative"
    classes_by: By = "prediction"

    relevance = Sum()
    inputs = Sum()
    unsound = Sum()
    """Inputs explained, and of these the ones whose relevance is absorbed, and whose diverges."""

    def __post_init__(self) -> None:
        _known("method", self.method, tuple(METHODS))
        _known("where", self.where, get_args(Where))
        _known("priority", self.priority, get_args(Priority))
        _known("classes_by", self.classes_by, get_args(By))

    @cached_property
    def attribution(self) -> LayerRelevance:
        """How relevance is found."""
        return LayerRelevance(Tap(self.layers), self.where, METHODS[self.method]())

    @property
    def needs(self) -> Needs:
        """Relevance of the layer at look 0."""
        return Needs(attribution=self.attribution)

    def observe(self, seen: Observation) -> None:
        """Add up the relevance of each channel, class by class."""
        maps = seen.relevance(self.attribution)
        points = self.setting.layout(self.attribution.tap).points
        if seen.relevance_start is not None:
            self.unsound = self.unsound + unsound_samples(maps.values(), seen.relevance_start)
        relevance = torch.cat([_per_channel(maps[point.label], point.channel_dim) for point in points], 1)
        if self.priority == "normalised":
            relevance = normalised(relevance)
        classes, count = self._classes(seen)
        wanted = torch.ones_like(classes) if self.where == "all" else (seen.correct == (self.where == "correct")).long()
        self.relevance = self.relevance + _by_class(relevance, classes, count)
        self.inputs = self.inputs + _by_class(wanted[:, None], classes, count)[:, 0]

    def _classes(self, seen: Observation) -> tuple[Tensor, int]:
        """Each input's class and how many there are; one for all where the prediction is no class."""
        if self.setting.task != "classification":
            return torch.zeros(len(seen.ids), dtype=torch.int64, device=seen.outputs.device), 1
        return (seen.predicted if self.classes_by == "prediction" else seen.targets.long()), seen.outputs.shape[1]

    def finish(self) -> Finding:
        """Neurons from the most to the least important."""
        layout = self.setting.layout(self.attribution.tap)
        by_class = self.relevance.numpy()
        relevance, inputs = by_class.sum(0), int(self.inputs.sum())
        order = np.argsort(-relevance, kind="stable")
        labels = np.array(layout.labels)
        table = {
            "layer": labels[layout.layer_of[order]],
            "channel": layout.channel_of[order],
            "relevance": relevance[order] / max(inputs, 1),
        }
        arrays = {"relevance": relevance, "order": order}
        if self.setting.task == "classification":
            arrays |= {"class_relevance": by_class, "class_inputs": self.inputs.numpy()}
        return self.finding(summary=self._summary(relevance, inputs), table=table, arrays=arrays)

    def _summary(self, relevance: np.ndarray, inputs: int) -> dict[str, Estimate]:
        amount = np.sort(np.abs(relevance))[::-1]
        top = -(-len(amount) // 10)
        share = float(amount[:top].sum() / amount.sum()) if amount.any() else None
        return {
            "held_by_a_tenth": Estimate(
                share, about="share of all relevance that the most relevant tenth of the neurons holds"
            ),
            "neurons": Estimate(len(relevance), about="neurons of the layer"),
            "inputs": Estimate(inputs, about="inputs whose relevance was summed"),
            **problem_of(self.unsound),
        }


def _known(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{option} {value!r} is not known: choose one of {', '.join(choices)}")


def _per_channel(relevance: Tensor, channel_dim: int) -> Tensor:
    """Summed over positions: shape (samples, channels)."""
    others = [dim for dim in range(1, relevance.ndim) if dim != channel_dim]
    return relevance.sum(others, dtype=torch.float64) if others else relevance.double()


def normalised(relevance: Tensor) -> Tensor:
    """Each sample's relevance over the sum of its magnitudes, R_j / Σ_i |R_i|; zeros stay. Shape (samples, neurons).

    >>> normalised(torch.tensor([[3.0, -1.0], [0.0, 0.0]])).tolist()
    [[0.75, -0.25], [0.0, 0.0]]
    """
    total = relevance.abs().sum(1, keepdim=True)
    shares = torch.where(total > 0, relevance / total, 0.0)
    return shares.float().to(relevance.dtype)  # to 24 bits: then sums in 64 do not depend on the batches


def _by_class(values: Tensor, classes: Tensor, count: int) -> Tensor:
    """Summed over the samples of each class: shape (classes, columns)."""
    return values.new_zeros(count, values.shape[1]).index_add_(0, classes, values)


class ImportanceDrivenCoverage(LayerTraces):
    """Share of the combinations of the important neurons' typical values that test inputs cover (IDC).

    After DeepImportance (Gerasimou et al. 2020). The most important neurons of a layer are chosen on the training data;
    each one's training values are cut into clusters, as many as the silhouette finds best; every combination of
    clusters, one per neuron, is a target. The Finding names combinations that no test input reaches, with training
    inputs that lie in them or nearest to them.

    neurons: how many of the most important neurons to combine, or "auto": the fewest that carry `share` of the positive
        relevance, as far as that leaves `inputs_each` training inputs per combination.
    clusters: numbers of clusters to choose from for each neuron; or one number.
    clustering: "kmeans", the optimum, or "quantiles", clusters of equally many training values.
    index: which number of clusters is best: by "silhouette", "calinski_harabasz" or "davies_bouldin".
    drop_zeros: whether to leave exact zeros out before clustering, as the released code does for dense layers.
    per_class: whether each class has important neurons and test inputs of its own; coverage is then their mean.
    clusters_per_class: whether each class clusters its own training inputs only; otherwise all of them.
    classes_by: which class an input belongs to, the predicted one ("prediction") or the label ("target").
    share: of the positive relevance that "auto" neurons carry.
    inputs_each: training inputs per combination that "auto" leaves at least.
    layers: the layer, by default the penultimate.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    method: how importance is found, see `NeuronImportance`.
    where: over which training inputs it is summed, see `NeuronImportance`.
    priority: how it is summed, see `NeuronImportance`.
    holes: how many of the combinations that no test input reaches to list.
    nearest: how many training inputs to name for each of them.
    thumbnail: size in pixels of the pictures of these training inputs; 0 for none.
    seed: of the choice of random neurons that the important ones are shown beside.
    importance: the Finding of `NeuronImportance` over the training data.
    training: the Finding of `LayerTraces` over the training data.
    examples: the Finding of `Pictures` over the training data.
    """

    outputs = declared.IMPORTANCE_DRIVEN_COVERAGE

    tasks = ("classification", "regression")
    split = "test"

    neurons: int | Literal["auto"] = 6
    clusters: int | tuple[int, ...] = (2, 3, 4)
    clustering: Clustering = "kmeans"
    index: Index = "silhouette"
    drop_zeros: bool = False
    per_class: bool = False
    clusters_per_class: bool = False
    classes_by: By = "prediction"
    share: float = 0.5
    inputs_each: int = 10
    method: str = "lrp"
    where: Where = "all"
    priority: Priority = "cumulative"
    holes: int = 20
    nearest: int = 3
    thumbnail: int = 32
    seed: int = 0
    importance: Finding
    training: Finding
    examples: Finding

    def __post_init__(self) -> None:
        check_clustering(self.candidates, self.clustering, self.index)
        _known("classes_by", self.classes_by, get_args(By))
        if self.neurons != "auto" and (not isinstance(self.neurons, int) or self.neurons < 1):
            raise ConfigError(f"neurons is {self.neurons!r}: expected 1 or more, or 'auto'")
        if not 0 < self.share <= 1 or self.inputs_each < 1:
            raise ConfigError(f"expected 0 < share ≤ 1 and inputs_each ≥ 1, got {self.share} and {self.inputs_each}")
        if self.clusters_per_class and not self.per_class:
            raise ConfigError("clusters_per_class needs per_class: without it there is one set of important neurons")

    @property
    def candidates(self) -> tuple[int, ...]:
        """The numbers of clusters to choose from."""
        return (self.clusters,) if isinstance(self.clusters, int) else tuple(self.clusters)

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """Importance, traces and thumbnails of the training data: one pass serves all."""
        how = {name: options[name] for name in ("layers", "method", "where", "priority", "classes_by")}
        return {
            "importance": Step.of(NeuronImportance, **how),
            "training": Step.of(LayerTraces, layers=options["layers"], side=options["side"]),
            "examples": Step.of(Pictures, split="train", size=options["thumbnail"]),
        }

    def finish(self) -> Finding:
        """Coverage of the combinations, the combination of each test input, and the combinations that are missing."""
        if self.per_class and self.setting.task != "classification":
            raise ConfigError(f"per_class needs classes, the subject's task is {self.setting.task}: leave it out")
        test, training = Traces.of_rows(self.traces.read()), Traces.of_finding(self.training)
        study = study_importance(training, test, self.importance, self._choice())
        names = class_names(self.setting.classes, 1 + study.groups[-1].number) if self.per_class else None
        return self.finding(
            summary={**summary(study, names), **problem_in(self.importance)},
            table=input_columns(study, test, names),
            arrays={**combination_arrays(study), **hole_arrays(study), **figure_arrays(study, seed=self.seed)},
            media=pictures(study, self.examples, names),
        )

    def _choice(self) -> Choice:
        make = partial(
            clusters_of,
            candidates=self.candidates,
            clustering=self.clustering,
            index=self.index,
            drop_zeros=self.drop_zeros,
        )
        return Choice(
            neurons=None if self.neurons == "auto" else self.neurons,
            share=self.share,
            inputs_each=self.inputs_each,
            clusters=make,
            per_class=self.per_class,
            clusters_per_class=self.clusters_per_class,
            classes_by=self.classes_by,
            holes=self.holes,
            nearest=self.nearest,
        )
