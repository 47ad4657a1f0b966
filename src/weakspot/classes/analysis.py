"""Everything there is to know about the pairs of classes of one network, from its images' neural paths and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weakspot.classes.membership import Members, class_sizes
from weakspot.classes.metrics_activation import Bits, activation_counts
from weakspot.classes.metrics_bias import Near, average_bias, average_confusion_disparity, bias_errors
from weakspot.classes.metrics_bootstrap import DistanceEstimate, Squared, bootstrap_distance
from weakspot.classes.metrics_confusion import label_coincidence, pair_confusion, type1_confusion, type2_confusion
from weakspot.classes.metrics_distance import activation_distance
from weakspot.classes.pairs import Cutoff, pair_values, suspicious
from weakspot.statistics import CostEffectiveness, Detection, cost_effectiveness, detection, spearman

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TOP = "top 1%"
"""The share of the pairs whose precision is told besides."""


@dataclass(frozen=True)
class Ranking:
    """How a score ranks the pairs, against what labels say of them."""

    score: Floats
    """One entry per pair; the higher, the more suspicious."""
    truth: Floats
    """What the labels say, one entry per pair."""
    at_cutoff: Detection
    """What the report finds at the cutoff."""
    at_top: Detection
    """What the top 1 % finds."""

    @property
    def correlation(self) -> float:
        """Spearman's, between score and truth."""
        return spearman(self.score, self.truth)

    @cached_property
    def curve(self) -> CostEffectiveness | None:
        """Cost-effectiveness of the ranking; none where nothing is true."""
        true = suspicious(self.truth)
        return cost_effectiveness(self.score, true) if true.any() else None


@dataclass(frozen=True, kw_only=True)
class Study(ABC):
    """Pairs of classes in some order of suspicion, and what labels say of them; matrices are classes × classes."""

    classes: NDArray[np.int64]
    """Numbers of the classes studied, those that have enough images."""
    cutoff: Cutoff
    confusion: Floats | None
    """Directional, type 1 or type 2; None without labels."""
    average_bias: Floats | None
    """How unequally two classes are treated beside all the others; None for fewer than three classes."""

    @property
    @abstractmethod
    def score(self) -> Floats:
        """One entry per pair; the higher, the more suspicious."""

    @property
    def score_cutoff(self) -> Cutoff:
        """The cutoff as one of the score."""
        return self.cutoff

    @cached_property
    def confused(self) -> Bools:
        """Pairs reported as confused."""
        return suspicious(self.score, self.score_cutoff)

    @cached_property
    def biased(self) -> Bools | None:
        """Pairs reported as biased; a cutoff that is a number says nothing about bias, which is then cut at "std"."""
        if self.average_bias is None:
            return None
        return suspicious(pair_values(self.average_bias), self._bias_cutoff, rounding="up")

    @property
    def _bias_cutoff(self) -> Cutoff:
        return self.cutoff if isinstance(self.cutoff, str) else "std"

    @cached_property
    def disparity(self) -> Floats | None:
        """Average confusion disparity, the truth about bias; None without labels or for fewer than three classes."""
        if self.confusion is None or self.average_bias is None:
            return None
        return average_confusion_disparity(self.confusion)

    @cached_property
    def confusion_ranking(self) -> Ranking | None:
        """The score against true confusion."""
        if self.confusion is None or not self.confused.size:
            return None
        truth = pair_values(pair_confusion(self.confusion))
        at_cutoff, at_top = (
            detection(suspicious(self.score, each), suspicious(truth)) for each in (self.score_cutoff, TOP)
        )
        return Ranking(self.score, truth, at_cutoff, at_top)

    @cached_property
    def bias_ranking(self) -> Ranking | None:
        """The average bias against true disparity."""
        if self.average_bias is None or self.disparity is None:
            return None
        at_cutoff, at_top = (
            bias_errors(self.average_bias, self.disparity, cutoff=each) for each in (self._bias_cutoff, TOP)
        )
        return Ranking(pair_values(self.average_bias), pair_values(self.disparity), at_cutoff, at_top)


@dataclass(frozen=True, kw_only=True)
class PairStudy(Study):
    """Pairs by the distance of what they activate: the nearest are the most suspicious."""

    distance: Floats
    estimate: DistanceEstimate | None
    """None where no resampling was asked for."""
    coincidence: Floats | None = None
    """How often two labels appear together; None without labels or with one label per image."""

    @cached_property
    def score(self) -> Floats:
        """The nearer, the more suspicious."""
        return -pair_values(self.distance)

    @property
    def score_cutoff(self) -> Cutoff:
        """A cutoff that is a number is a distance."""
        return self.cutoff if isinstance(self.cutoff, str) else -self.cutoff

    @property
    def coincidence_correlation(self) -> float | None:
        """Spearman's, between distance and coincidence of labels: what always appears together cannot be told apart."""
        if self.coincidence is None or not self.confused.size:
            return None
        return spearman(pair_values(self.distance), pair_values(self.coincidence))


@dataclass(frozen=True, kw_only=True)
class OutputStudy(Study):
    """Pairs by what the outputs alone say: those that are given each other's probability are the most suspicious."""

    soft_confusion: Floats
    """Directional, as `output_soft_confusion` gives it."""

    @cached_property
    def score(self) -> Floats:
        """Mean soft_confusion of both directions."""
        return pair_values(pair_confusion(self.soft_confusion))


@dataclass(frozen=True)
class Images:
    """The images of one examination."""

    bits: Bits
    """Packed neural paths, images × bytes."""
    neurons: int
    predicted: Members
    labels: Members | None
    multilabel: bool
    rank: NDArray[np.int64]
    """Place of each image in the order of the ids."""
    belongs: NDArray[np.str_] | None = None
    """What each image belongs to, such as a film; None where each stands for itself."""
    least_true: int = 10
    """Images of a class, without the other, below which how often they are truly confused is not known."""


def study_pairs(
    images: Images,
    classes: NDArray[np.int64],
    *,
    cutoff: Cutoff = "std",
    near: Near = "pairs",
    normalise: bool = False,
    replicates: int = 100,
    seed: int = 0,
    squared: Squared | None = None,
) -> PairStudy:
    """Distances, bias and, where there are labels, true confusion of the given classes (`deepinspect`).

    images: what the network made of each image.
    classes: the classes to study, each with at least two predicted images.
    cutoff: which pairs to report, as in `suspicious`; a number is a distance.
    near: as in `average_bias`.
    normalise: as in `activation_distance`.
    replicates: of the resampling behind the intervals; 0 for none.
    seed: of the resampling.
    squared: as in `bootstrap_distance`.
    """
    members = images.predicted[:, classes]
    counts = activation_counts(images.bits, members, neurons=images.neurons)
    sizes = class_sizes(members)
    distance = activation_distance(counts, normalise=normalise, images=sizes) if len(classes) else np.zeros((0, 0))
    del counts  # a gigabyte, for thousands of classes
    estimate = None
    if replicates and len(classes) > 1:
        estimate = bootstrap_distance(
            images.bits,
            members,
            neurons=images.neurons,
            seed=seed,
            replicates=replicates,
            normalise=normalise,
            rank=images.rank,
            belongs=images.belongs,
            squared=squared,
        )
    together = label_coincidence(images.labels[:, classes]) if images.multilabel and images.labels is not None else None
    return PairStudy(
        classes=classes,
        cutoff=cutoff,
        confusion=true_confusion(images, classes),
        average_bias=average_bias(distance, near=near) if len(classes) > 2 else None,
        distance=distance,
        estimate=estimate,
        coincidence=together,
    )


def study_outputs(
    soft_confusion: Floats, classes: NDArray[np.int64], confusion: Floats | None, *, cutoff: Cutoff = "std"
) -> OutputStudy:
    """The given classes by what the outputs alone say of them.

    The bias of two classes is the disparity of their soft confusion; the true one is that of their confusion.

    soft_confusion: `output_soft_confusion` of all classes.
    classes: the classes to study, each with at least one predicted image.
    confusion: their true confusion, directional; None without labels.
    cutoff: which pairs to report, as in `suspicious`; a number is a soft_confusion.
    """
    matrix = soft_confusion[np.ix_(classes, classes)]
    bias = average_confusion_disparity(matrix) if len(classes) > 2 else None
    return OutputStudy(classes=classes, cutoff=cutoff, confusion=confusion, average_bias=bias, soft_confusion=matrix)


def true_confusion(images: Images, classes: NDArray[np.int64]) -> Floats | None:
    """Type 1 confusion of the given classes, type 2 for several labels per image; None without labels."""
    if images.labels is None:
        return None
    kind = type2_confusion if images.multilabel else type1_confusion
    return kind(images.labels[:, classes], images.predicted[:, classes], minimum=images.least_true)
