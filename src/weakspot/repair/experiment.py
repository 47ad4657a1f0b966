"""The retraining experiment: does retraining help, and more than with as many other images? Repeated several times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from torch import nn

from weakspot.core.driver import examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Finding
from weakspot.core.progress import Progress, Silent
from weakspot.core.source import Source, Subset, check_ids, groups_of
from weakspot.core.subject import Subject
from weakspot.repair.balancing import Repeated, balanced, repeated_places
from weakspot.repair.labelled import held_out
from weakspot.repair.probes import Predictions
from weakspot.repair.retraining_finding import MethodScores, retraining_finding
from weakspot.repair.training import Loss, Recipe, TrainFunction, check_apart, retrained

Method = Literal[
    "unsafe set",
    "random images",
    "failing images",
    "random images repeated",
    "training set alone",
    "least confident images",
    "least confident images repeated",
]
METHODS: tuple[Method, ...] = get_args(Method)
ALONE: Method = "training set alone"


@dataclass(frozen=True)
class RetrainingData:
    """What is trained on, and what models are judged by.

    unsafe: labelled samples to add, such as `Labelled` of an unsafe set.
    clusters: the root-cause cluster of each of them, by its id.
    test: the data by which the models are compared.
    train: what the model was trained on; without it, the new samples alone are trained on.
    pool: samples with targets, from which the baselines draw as many as `unsafe` has; without it there are no
        baselines.
    causes: the root-cause cluster of test samples that were predicted incorrectly, 0 for those in none.
    threshold: error above which a number or keypoint is incorrect, for the baseline of failing images.
    """

    unsafe: Source
    clusters: Mapping[str, int]
    test: Source
    train: Source | None = None
    pool: Source | None = None
    causes: Mapping[str, int] = field(default_factory=dict)
    threshold: float | None = None


@dataclass(frozen=True)
class Experiment:
    """What came of the retraining, and the model retrained on the unsafe set in the first repeat, not the best."""

    finding: Finding
    subject: Subject

    @property
    def model(self) -> nn.Module:
        """The retrained model."""
        assert isinstance(self.subject.model, nn.Module)  # nothing else can be trained
        return self.subject.model


@dataclass(frozen=True)
class ExperimentDesign:
    """What is compared, and how often.

    repeats: trainings of each method; repeat r has the recipe's seed plus r.
    methods: which to compare with the unsafe set; by default random and failing images where there is a pool.
    validation: a source, or the share of each method's own labelled samples, by which to judge when to stop; 0 trains
        all epochs.
    confidence: of all intervals.
    balance: draw images of rare causes of the unsafe set again until all causes are as frequent, as HUDD does. It was
        not seen to help, so it is off.
    """

    repeats: int = 10
    methods: Sequence[Method] | None = None
    validation: float | Source = 0.2
    confidence: float = 0.95
    balance: bool = False

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ConfigError(f"expected one repeat or more, got {self.repeats}")


class _Labelled:
    """Progress of one of several trainings, by its name."""

    def __init__(self, progress: Progress, label: str):
        self._progress, self._label = progress, label

    def begin(self, what: str, *, total: int, done: int = 0) -> None:
        """With the name of the training."""
        self._progress.begin(self._label, total=total, done=done)

    def advance(self, samples: int) -> None:
        """As it is."""
        self._progress.advance(samples)

    def tell(self, message: str) -> None:
        """As it is."""
        self._progress.tell(message)

    def end(self) -> None:
        """As it is."""
        self._progress.end()


def run_experiment(
    subject: Subject,
    data: RetrainingData,
    design: ExperimentDesign | None = None,
    *,
    recipe: Recipe | None = None,
    loss: Loss | None = None,
    train: TrainFunction | None = None,
    checkpoints: Path | None = None,
    progress: Progress | None = None,
) -> Experiment:
    """Retrain `repeats` times on the unsafe set, and on each baseline, and compare all by the test set.

    HUDD's experiment (Fahmy et al. 2021, RQ2). With B labelled samples in the unsafe set, the baselines are B random
    samples of the pool, and those of the same B that the model fails on. Controls: "random images repeated" draws the
    same B again and again until they are as many as the unsafe set where that is balanced, so that both weigh the same
    beside the training set; "least confident images" are the B of the pool that the model is least sure of, and "least
    confident images repeated" the same again and again; "training set alone" adds none.

    recipe: how to train.
    loss, train, checkpoints: as for `retrained`.
    """
    asked, how = design or ExperimentDesign(), recipe or Recipe()
    chosen = _chosen_methods(asked.methods, data)
    check_apart([source for source in (data.train, data.unsafe, data.pool) if source is not None], data.test)
    before, kept = _scores(subject, data.test), subject
    outcomes: dict[str, MethodScores] = {method: MethodScores() for method in chosen}
    further = partial(retrained, subject, loss=loss, train=train, checkpoints=checkpoints)
    for repeat in range(asked.repeats):  # all methods of a repeat together: the first repeat gives a first result
        recipe_of_repeat = replace(how, seed=how.seed + repeat)
        for method in chosen:
            new, judged = _new_samples(
                subject, data, method, asked.validation, recipe_of_repeat.seed, balance=asked.balance
            )
            sources = [source for source in (data.train, new) if source is not None]
            shown = _Labelled(progress or Silent(), f"{method}, {repeat + 1} of {asked.repeats}")
            better = (
                further(sources, recipe=recipe_of_repeat, validation=judged, progress=shown) if sources else subject
            )
            outcomes[method].add(_scores(better, data.test), 0 if new is None else len(new.ids))
            kept = better if method == METHODS[0] and not repeat else kept
    finding = retraining_finding(
        data.test.ids, before, outcomes, data.causes, groups=groups_of(data.test), confidence=asked.confidence
    )
    return Experiment(finding.with_provenance(**_provenance(subject, data, how, asked, train)), kept)


def _provenance(
    subject: Subject,
    data: RetrainingData,
    recipe: Recipe,
    design: ExperimentDesign,
    train: TrainFunction | None,
) -> dict[str, object]:
    validation = design.validation
    sources = {"unsafe": data.unsafe, "train": data.train, "pool": data.pool}
    judged = validation if isinstance(validation, int | float) else validation.fingerprint()
    return {
        "subject": subject.fingerprint(),
        "data": data.test.fingerprint(),
        "samples": len(data.test.ids),
        "trained_on": {name: source.fingerprint() for name, source in sources.items() if source is not None},
        "parameters": {
            "recipe": recipe,
            "repeats": design.repeats,
            "validation": judged,
            "balance": design.balance,
            "train": train,
        },
    }


def _chosen_methods(methods: Sequence[Method] | None, data: RetrainingData) -> list[Method]:
    """The unsafe set first; what cannot be compared is refused."""
    check_ids(data.unsafe)
    chosen = METHODS[1:3] if methods is None and data.pool is not None else methods or ()
    odd = [method for method in chosen if method not in METHODS]
    if odd:
        raise ConfigError(f"there is no method {odd[0]!r}: choose from {', '.join(METHODS)}")
    baselines = [method for method in chosen if method not in (METHODS[0], ALONE)]
    if baselines and (data.pool is None or len(data.pool.ids) < len(data.unsafe.ids)):
        raise DataError(
            f"{baselines[0]} are drawn from a pool of samples with targets, at least as many as the unsafe set has "
            f"({len(data.unsafe.ids)}): give a larger one, or compare without baselines"
        )
    return list(dict.fromkeys([METHODS[0], *chosen]))


def _new_samples(
    subject: Subject,
    data: RetrainingData,
    method: Method,
    validation: float | Source,
    seed: int,
    *,
    balance: bool,
) -> tuple[Source | None, Source | None]:
    """What a method adds to the training set, and what it is judged by."""
    if method == ALONE:
        return None, None if isinstance(validation, int | float) else validation
    rest, judged = _parted(_labelled(subject, data, method, seed), validation, seed)
    if method == "unsafe set":
        return (balanced(rest, data.clusters, seed=seed) if balance else rest), judged
    if method.endswith(" repeated") and balance:
        size = len(balanced(_parted(data.unsafe, validation, seed)[0], data.clusters).ids)
        return Repeated(rest, repeated_places(len(rest.ids), size, seed=seed)), judged
    if method == "failing images":
        failing = np.flatnonzero(_wrong(subject, rest, data.threshold))
        return (Subset(rest, failing) if len(failing) else None), judged
    return rest, judged


def _parted(labelled: Source, validation: float | Source, seed: int) -> tuple[Source, Source | None]:
    """What is trained on, and what a training is judged by."""
    if not isinstance(validation, int | float):
        return labelled, validation
    return held_out(labelled, validation, seed=seed) if validation else (labelled, None)


def _labelled(subject: Subject, data: RetrainingData, method: Method, seed: int) -> Source:
    """The labelled samples of a method; all methods have as many."""
    if method == METHODS[0]:
        return data.unsafe
    return _least_confident(subject, data) if method.startswith("least confident") else _drawn(data, seed)


def _least_confident(subject: Subject, data: RetrainingData) -> Source:
    """As many samples of the pool as the unsafe set has: those that the model is least sure of."""
    assert data.pool is not None
    table = examine(subject, data.pool, [Predictions()])[0].table
    if table is None or "confidence" not in table.column_names:
        raise ConfigError(
            "least confident images need probabilities: they are there for classes and labels of a subject with "
            "scores='logits' or scores='probabilities'; leave this method out"
        )
    sure = dict(zip(table["id"].to_pylist(), table["confidence"].to_pylist(), strict=True))
    order = np.argsort(np.array([sure[name] for name in data.pool.ids]), kind="stable")
    return Subset(data.pool, np.sort(order[: len(data.unsafe.ids)]))


def _drawn(data: RetrainingData, seed: int) -> Source:
    """As many random samples of the pool as the unsafe set has; the same for every method with this seed."""
    assert data.pool is not None
    chosen = np.random.default_rng([seed, 1]).permutation(len(data.pool.ids))[: len(data.unsafe.ids)]
    return Subset(data.pool, np.sort(chosen))


def _wrong(subject: Subject, source: Source, threshold: float | None) -> np.ndarray:
    scores = _scores(subject, source)
    if scores.dtype == bool:
        return ~scores
    if threshold is None:
        raise ConfigError(
            "failing images need a threshold above which the error of a number is too large: give a threshold"
        )
    return np.asarray(scores > threshold)


def _scores(subject: Subject, source: Source) -> np.ndarray:
    """Which samples are predicted correctly (boolean), or the error of each, in the order of the source."""
    table = examine(subject, source, [Predictions()])[0].table
    assert table is not None
    values = table["correct" if "correct" in table.column_names else "error"].to_numpy(zero_copy_only=False)
    by_id = dict(zip(table["id"].to_pylist(), values, strict=True))
    return np.array([by_id[name] for name in source.ids])
