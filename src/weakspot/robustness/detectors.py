"""Detectors of weak inputs: trained on training data, asked of inputs without labels (Zhong et al. 2021, DeepRobust).

DeepRobust-W reads the features of an input, DeepRobust-B the diversity of the answers to a few neighbours, its queries.
Together they see more than either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from weakspot.core.draws import draw_keys
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.step import Step
from weakspot.core.taps import Layers
from weakspot.core.tasks import Task
from weakspot.looks import Neighbour, Rotate, Shift, Variation
from weakspot.robustness.evaluation import ABOUT, comparison, headline
from weakspot.robustness.gathering import Gathering, Manner, fresh_looks, in_order, right_answers
from weakspot.robustness.learning import Detector, evaluated_calls, learn, reliability_arrays, small_columns
from weakspot.robustness.neighbours import share
from weakspot.robustness.network import Learning, NothingToLearnError
from weakspot.robustness.thresholds import RULES


class WeakDetector(Probe):
    """Detectors of weak inputs, trained on a sample of the training data: white box, black box and both together.

    A network on the features of a layer (DeepRobust-W), a threshold of Simpson's λ over the answers to the queries
    (DeepRobust-B), and networks on the answers to the queries alone and on both (Zhong et al. 2021, and beyond it).
    The truth for the detectors that see the queries comes from the other looks. Networks are trained fold by fold, so
    that probabilities are calibrated (Platt) and thresholds set (best F1) on inputs that they were not trained on.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours tell the truth about an input.
    queries: the first so many neighbours are what a detector sees at run time; 0 for the white box alone.
    cutoff: an input is weak if its neighbour accuracy is at most this.
    layers: whose values the features are; none for a black box.
    sample: how many training inputs to learn from, drawn by their ids; none for all.
    rule: the threshold of λ: "quantile", the share of weak training inputs; "f1", the best F1 on them; "paper", the
        highest λ of a weak one, which mostly calls everything weak and then warns.
    weak_emphasis: m of the selection probability (1 + (1 − n)^m·100^m)/(1 + 100^m): 0 draws all training inputs alike.
    tolerance: for numbers, how many times the mean squared error still counts as right.
    hidden: units of the hidden layers.
    epochs: times over the sample.
    folds: into how many parts the sample is cut.
    seed: of neighbours, sample and training.
    device: where the networks are trained: "cpu", so that detectors are equal whatever machine ends a Run, or "cuda",
        whose memory then holds the features of the sample.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "regression")
    split = "train"

    variation: Variation = Rotate(30) & Shift(3)
    looks: int = 50
    queries: int = 15
    cutoff: float = 0.75
    layers: Layers | None = "penultimate"
    sample: int | None = 10_000
    rule: Literal["quantile", "f1", "paper"] = "quantile"
    weak_emphasis: int = 0
    tolerance: float = 3.0
    hidden: tuple[int, ...] = (256, 128)
    epochs: int = 40
    folds: int = 5
    seed: int = 0
    device: str = "cpu"

    neighbours = Rows()

    def __post_init__(self) -> None:
        if not 0 <= self.queries < self.looks or not 0 <= self.cutoff < 1:
            raise ConfigError(
                "expected 0 ≤ queries < looks, so that some looks tell the truth, and 0 ≤ cutoff < 1; got "
                f"{self.queries}, {self.looks} and {self.cutoff}"
            )
        if self.layers is None and not self.queries:
            raise ConfigError("a detector must see something: give it layers, queries or both")
        if self.rule not in RULES:
            raise ConfigError(f"rule {self.rule!r} is not known: choose one of {', '.join(RULES)}")
        if self.sample is not None and self.sample < 2 * self.folds:
            raise ConfigError(f"a sample of {self.sample} cannot be cut into {self.folds} folds: give more")
        self._learning  # noqa: B018 - refuses what it cannot do

    @cached_property
    def _learning(self) -> Learning:
        how = {"hidden": tuple(self.hidden), "epochs": self.epochs, "folds": self.folds, "device": self.device}
        return Learning(**how, weak_emphasis=self.weak_emphasis, seed=self.seed)  # type: ignore[arg-type]

    @property
    def manner(self) -> Manner:
        """How an input is looked at."""
        return Manner(Neighbour(self.variation, self.seed), self.looks, self.queries, self.layers)

    @property
    def needs(self) -> Needs:
        """The original with its features, and m neighbours."""
        return self.manner.needs

    @cached_property
    def _chosen(self) -> frozenset[str]:
        """The ids of the sample: those whose hashes are smallest, whatever their order."""
        ids = self.setting.ids
        if self.sample is None or self.sample >= len(ids):
            return frozenset(ids)
        keys = draw_keys(ids, self.seed)
        return frozenset(ids[place] for place in np.argpartition(keys, self.sample)[: self.sample])

    def observe(self, seen: Observation) -> list[str]:
        """Gather what the sample shows; everything else is let go at once."""
        if seen.number == 0:
            mine = [name for name in seen.ids if name in self._chosen]
            self._gathering = Gathering(self.manner, mine, truth=True)
        return self._gathering.add(seen)

    def close(self, ids: Sequence[str]) -> None:
        """Keep what was gathered."""
        if self._gathering.ids:
            self.neighbours.append(self._gathering.ids, **self._gathering.columns())

    def finish(self) -> Finding:
        """The trained detectors, and what they are worth on held-out training inputs; or why there is none."""
        rows = self.neighbours.read()
        ids, columns = in_order(rows, rows.ids)
        error = float(columns["outcomes"][:, 0].mean())
        right = right_answers(
            columns["outcomes"], self.setting.task, mean_squared_error=error, tolerance=self.tolerance
        )
        weak = right[:, fresh_looks(self.queries, self.looks)].mean(1) <= self.cutoff
        weak_share = share(weak, "share of the training inputs that are weak")
        inputs = Estimate(len(ids), about="training inputs looked at")
        trained = {"mean_squared_error": np.array(error)} if self.setting.task == "regression" else {}
        try:
            learnt = learn(columns, right, self.cutoff, self.queries, self._learning, rule=self.rule)
        except NothingToLearnError as nothing:
            summary = {"weak_share": weak_share, **no_detector(str(nothing)), "inputs": inputs}
            return self.finding(summary=summary, arrays=trained)
        calls = learnt.held_out(columns)
        return self.finding(
            summary={"weak_share": weak_share, **headline(calls, weak), "inputs": inputs},
            table=comparison(calls, weak),
            arrays={**learnt.arrays(), **trained, **reliability_arrays(calls, weak)},
        )


def no_detector(why: str) -> dict[str, Estimate]:
    """What a summary says where nothing could be learnt."""
    return {"detector": Estimate(None, about=why)}


class Judging(Probe):
    """What the probes share that ask trained detectors."""

    tasks: ClassVar[tuple[Task, ...]] = ("classification", "regression")
    truth: ClassVar[bool]
    """Whether the data's targets are wanted too."""

    training: Mapping[str, Any] = field(default_factory=dict)
    detector: Finding

    seen = Rows()

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The detectors, trained on the training data."""
        return {"detector": Step.of(WeakDetector, **options["training"])}

    @cached_property
    def manner(self) -> Manner:
        """As the detector was trained, with the looks that it needs."""
        return Detector(self.detector).manner()

    @property
    def needs(self) -> Needs:
        """The original with its features, and the neighbours."""
        return self.manner.needs

    def observe(self, seen: Observation) -> list[str]:
        """Gather what the detector may see, and the truth where it is wanted."""
        if seen.number == 0:
            self._gathering = Gathering(self.manner, seen.ids, truth=self.truth)
        return self._gathering.add(seen)

    def close(self, ids: Sequence[str]) -> None:
        """Keep what was gathered."""
        self.seen.append(self._gathering.ids, **self._gathering.columns())


class WeakInputs(Judging):
    """Which inputs a detector calls weak; needs no labels (Zhong et al. 2021, DeepRobust-W and -B).

    Ask it of data as they come in: how probably each input is weak, and what each detector says of it.

    training: options of `WeakDetector`, for where none is given.
    detector: the Finding of `WeakDetector`.
    """

    truth = False

    def finish(self) -> Finding:
        """The inputs, those first that are most probably weak."""
        rows = self.seen.read()
        detector, order = Detector(self.detector), np.argsort(np.array(rows.ids))
        ids = np.array(rows.ids)[order]
        inputs = Estimate(len(ids), about="samples examined")
        if detector.why_none is not None:
            return self.finding(summary={**no_detector(detector.why_none), "inputs": inputs})
        calls = {entry.method: entry for entry in detector.calls(rows, order)}
        best = calls[detector.best]
        table: dict[str, np.ndarray] = {"id": ids, "probability": best.score, "weak": best.flagged}
        table |= {name: entry.score for name, entry in calls.items() if entry.probability and name != best.method}
        table |= small_columns(rows, order)
        ranked = np.lexsort((ids, -best.score))
        return self.finding(
            summary={
                "called_weak": share(best.flagged, f"share of the inputs called weak; {ABOUT[best.method]}"),
                "inputs": inputs,
            },
            table={name: values[ranked] for name, values in table.items()},
        )


class DetectorEvaluation(Judging):
    """How well the detectors find the weak inputs of labelled data, beside baselines (Zhong et al. 2021).

    The truth comes from looks that were no queries. F1 follows the share of weak inputs, so that share, average
    precision and AUROC stand beside it, and what flagging everything would score.

    training: options of `WeakDetector`, for where none is given.
    detector: the Finding of `WeakDetector`.
    looks: m, how many neighbours there are in all; the first of them are the detector's queries.
    """

    truth = True

    looks: int = 50

    @cached_property
    def manner(self) -> Manner:
        """As the detector was trained, with looks that tell the truth."""
        return Detector(self.detector).manner(looks=self.looks)

    def finish(self) -> Finding:
        """One row per detector and baseline."""
        rows = self.seen.read()
        detector, order = Detector(self.detector), np.argsort(np.array(rows.ids))
        ids = np.array(rows.ids)[order].tolist()
        right = right_answers(
            np.asarray(rows["outcomes"])[order],
            self.setting.task,
            mean_squared_error=detector.mean_squared_error,
            tolerance=detector.parameters["tolerance"],
        )
        fresh = fresh_looks(detector.parameters["queries"], self.looks)
        weak = right[:, fresh].mean(1) <= detector.parameters["cutoff"]
        weak_share = share(weak, "share of the inputs that are weak")
        inputs = Estimate(len(ids), about="samples examined")
        if detector.why_none is not None:
            return self.finding(summary={"weak_share": weak_share, **no_detector(detector.why_none), "inputs": inputs})
        calls = evaluated_calls(detector, ids, rows, order)
        return self.finding(
            summary={"weak_share": weak_share, **headline(calls, weak), "inputs": inputs},
            table=comparison(calls, weak),
            arrays=reliability_arrays(calls, weak),
        )
