"""Class pairs: one pass without labels, then every pair of classes compared in what it activates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weakspot.classes import finding_outputs as declared
from weakspot.classes.analysis import study_outputs, study_pairs, true_confusion
from weakspot.classes.device_bootstrap import squared_on
from weakspot.classes.finding_parts import (
    figure_arrays,
    named_pairs,
    output_arrays,
    output_columns,
    pair_columns,
    report_summary,
    summary,
    truth_summary,
)
from weakspot.classes.membership import class_sizes, rankable_classes
from weakspot.classes.metrics_activation import neural_paths
from weakspot.classes.metrics_bias import Near
from weakspot.classes.pairs import Cutoff, suspicious
from weakspot.classes.prediction_store import StoredPredictions, neural_path, stored_columns
from weakspot.classes.selection import images_to_label
from weakspot.core.errors import ConfigError, ProbeError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.layers import Side
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.step import Step
from weakspot.core.taps import Layers, Tap
from weakspot.core.tasks import probabilities
from weakspot.data.thumbnails import thumbnails


class ClassPairs(Probe):
    """Pairs of classes that activate the same neurons, so that the network may mix them up or treat them unequally.

    After DeepInspect (Tian et al. 2020). A neuron is active for an image if its channel's mean, scaled to [0, 1] per
    image and layer, exceeds the threshold. Classes are the predicted ones: labels are not needed, and where there are
    any they only serve to check the report. Two classes are close if they activate each neuron about equally often.
    Beside the distance stands what the outputs alone say of each pair, as in `OutputPairs`, where the subject says what
    its scores are.

    threshold: above which a neuron counts as active.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: where to look at a layer: its "output", before normalisation and activation, its "input", or "activated".
    cutoff: pairs to report: "std" (nearer than mean − std), "2 std", "top 1%", or a distance.
    near: how near a third class must be for bias: "pairs" (mean − std of the pairs' distances), "matrix" (of the whole
        matrix with its zero diagonal, as the released code does: with few classes nothing is that near), a distance, or
        none for every class.
    normalise: whether to divide a distance by the root of the number of neurons that either class ever activates.
    least_images: predicted images below which a class is not ranked; two or more.
    least_true: images labelled as a class, without the other, below which their true confusion is not known, as in the
        paper's code; a pair then counts as not truly confused in that direction.
    most_frequent: rank only so many of the most often predicted classes.
    named: pairs of class names whose bias to report in any case, such as [[man, woman]].
    replicates: resamplings of the images behind the intervals; 0 for none.
    pictures: of how many of the nearest pairs to show images.
    thumbnail: size of these images in pixels; 0 for none.
    seed: of the resampling.
    """

    outputs = declared.CLASS_PAIRS
    by_group = ("low", "high")

    tasks = ("classification", "multilabel")

    threshold: float = 0.5
    layers: Layers = "all"
    side: Side = "output"
    cutoff: Cutoff = "std"
    near: Near = "pairs"
    normalise: bool = False
    least_images: int = 10
    least_true: int = 10
    most_frequent: int | None = None
    named: Sequence[Sequence[str]] = ()
    replicates: int = 100
    pictures: int = 6
    thumbnail: int = 32
    seed: int = 0

    images = Rows()

    def __post_init__(self) -> None:
        suspicious([0.0], self.cutoff)  # refuses a cutoff it does not know, before the pass and not after
        _check_least_true(self.least_true)
        if self.least_images < 2 or self.replicates == 1 or self.replicates < 0:
            raise ConfigError(
                f"expected least_images ≥ 2 and replicates 0 or ≥ 2, got {self.least_images} and {self.replicates}"
            )
        if any(len(pair) != 2 for pair in self.named):
            raise ConfigError(f"named takes pairs of class names, such as [[man, woman]], got {list(self.named)}")

    @property
    def tap(self) -> Tap:
        """Where the neurons are."""
        return Tap(self.layers, side=self.side, scaled=True)

    def observe(self, seen: Observation) -> None:
        """Keep each image's neural path as bits, with what was predicted and, if known, what is true."""
        bits = neural_path(seen, self.tap, self.threshold)
        self.images.append(seen.ids, bits=bits, **stored_columns(seen), **_thumbnail_column(seen, self.thumbnail))

    def finish(self) -> Finding:
        """All pairs of the classes that have enough images."""
        neurons = self.setting.layout(self.tap).neurons
        stored = StoredPredictions(self.images.read(), self.setting, neurons=neurons, least_true=self.least_true)
        sizes = class_sizes(stored.images.predicted)
        ranked = rankable_classes(sizes, minimum=self.least_images, most_frequent=self.most_frequent)
        study = study_pairs(
            stored.images,
            ranked,
            cutoff=self.cutoff,
            near=self.near,
            normalise=self.normalise,
            replicates=self.replicates,
            seed=self.seed,
            squared=squared_on(self.setting.here),
        )
        outputs = None
        if self.setting.scores is not None:
            rule = self.cutoff if isinstance(self.cutoff, str) else "std"  # a distance says nothing of the outputs
            outputs = study_outputs(stored.soft_confusion(), ranked, study.confusion, cutoff=rule)
        wanted = [(stored.number(a), stored.number(b)) for a, b in self.named]
        paths = neural_paths(stored.images.bits, stored.images.predicted)
        return self.finding(
            summary={
                **summary(study, outputs, sizes, stored.names),
                **named_pairs(study, stored.names, wanted, near=self.near),
            },
            table=pair_columns(study, outputs, sizes, stored.names, near=self.near, example=stored.example),
            arrays={**figure_arrays(study, outputs), "images_per_class": sizes, "neural_paths": paths},
            media=stored.pictures(study, self.pictures),
        )


class OutputPairs(Probe):
    """Pairs of classes that give each other's probability, by the outputs alone: the network may mix them up.

    Soft confusion of a with b is the mean probability of b over the images predicted a. Pairs are ranked by the mean of
    both directions; their bias is how differently two classes are softly confused with all the others. Needs no labels
    and no activations, so a black box will do. Reported and checked against labels as DeepInspect (Tian et al. 2020)
    does with the distance of `ClassPairs`.

    cutoff: pairs to report: "std" (soft_confusion above mean + std), "2 std", "top 1%", or a soft_confusion.
    least_images: predicted images below which a class is not ranked.
    least_true: as in `ClassPairs`.
    most_frequent: rank only so many of the most often predicted classes.
    pictures: of how many of the most suspicious pairs to show images.
    thumbnail: size of these images in pixels; 0 for none.
    """

    outputs = declared.OUTPUT_PAIRS

    tasks = ("classification", "multilabel")

    cutoff: Cutoff = "std"
    least_images: int = 10
    least_true: int = 10
    most_frequent: int | None = None
    pictures: int = 6
    thumbnail: int = 32

    images = Rows()

    def __post_init__(self) -> None:
        suspicious([0.0], self.cutoff)
        _check_least_true(self.least_true)
        if self.least_images < 1:
            raise ConfigError(f"expected least_images ≥ 1, got {self.least_images}")

    def observe(self, seen: Observation) -> None:
        """Keep predictions and, where there are any, labels."""
        probabilities(seen.outputs[:0], self.setting.task, self.setting.scores)  # refuses at once, not after the pass
        self.images.append(seen.ids, **stored_columns(seen), **_thumbnail_column(seen, self.thumbnail))

    def finish(self) -> Finding:
        """All pairs of the classes that have enough images."""
        stored = StoredPredictions(self.images.read(), self.setting, least_true=self.least_true)
        sizes = class_sizes(stored.images.predicted)
        ranked = rankable_classes(sizes, minimum=self.least_images, most_frequent=self.most_frequent)
        truth = true_confusion(stored.images, ranked)
        study = study_outputs(stored.soft_confusion(), ranked, truth, cutoff=self.cutoff)
        return self.finding(
            summary={**report_summary(study, sizes, stored.names), **truth_summary(study)},
            table=output_columns(study, sizes, stored.names, example=stored.example),
            arrays={**output_arrays(study), "images_per_class": sizes},
            media=stored.pictures(study, self.pictures),
        )


def _check_least_true(least: int) -> None:
    if least < 1:
        raise ConfigError(f"expected least_true ≥ 1, got {least}")


def _thumbnail_column(seen: Observation, size: int) -> dict[str, Any]:
    """Small pictures of the inputs, where they are images and some are asked for."""
    return {"thumbnail": thumbnails(seen.inputs, size)} if size and seen.inputs.ndim == 4 else {}


class ImagesToLabel(Probe):
    """A balanced list of images from confused pairs: label them, or check their labels.

    Every confused pair has two directions: images predicted as one class that score highest for the other. All
    directions take turns, so that no pair fills the list. Ask it of data without labels to choose what to label and
    train on; never train on those of the test data. What DeepInspect (Tian et al. 2020) leaves for later.

    budget: how many images to list at most; by default all.
    pairs: the Finding of `ClassPairs` or of `OutputPairs`.
    """

    outputs = declared.IMAGES_TO_LABEL

    tasks = ("classification", "multilabel")

    budget: int | None = None
    pairs: Finding

    images = Rows()

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise ConfigError(f"budget is {self.budget}: expected 1 or more")

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The confused pairs of the test data."""
        return {"pairs": Step.of(ClassPairs)}

    def observe(self, seen: Observation) -> None:
        """Keep what was predicted."""
        self.images.append(seen.ids, **stored_columns(seen))

    def finish(self) -> Finding:
        """The list, the likeliest mistakes first."""
        stored = StoredPredictions(self.images.read(), self.setting)
        pairs = confused_pairs(self.pairs, stored)
        images = stored.images
        chosen = images_to_label(pairs, stored.outputs, images.predicted, budget=self.budget, rank=images.rank)
        return self.finding(
            summary={
                "images": Estimate(len(chosen), about="images to look at"),
                "pairs": Estimate(len(pairs), about="confused pairs they come from"),
                "searched": Estimate(len(stored.ids), about="images searched"),
            },
            table={
                "id": np.array([stored.ids[each.image] for each in chosen], dtype=np.str_),
                "prediction": np.array(stored.named([each.predicted for each in chosen]), dtype=np.str_),
                "suspected": np.array(stored.named([each.suspected for each in chosen]), dtype=np.str_),
            },
        )


def confused_pairs(finding: Finding, stored: StoredPredictions) -> np.ndarray:
    """The numbers of the classes of the reported pairs of a Finding, the most suspicious first: pairs × 2."""
    if finding.table is None:
        raise ProbeError(f"{finding.name} has no table of pairs; examine again")
    columns = (finding.table[name].to_pylist() for name in ("first", "second", "confused"))
    numbers = [(stored.number(a), stored.number(b)) for a, b, confused in zip(*columns, strict=True) if confused]
    return np.array(numbers, dtype=np.int64).reshape(-1, 2)
