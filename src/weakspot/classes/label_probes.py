"""Which few inputs to label to know the accuracy on all of them (after DeepEST, Guerriero et al. 2021)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weakspot.classes.label_outputs import KNOWN_CONFIDENCE, LABEL_PLAN
from weakspot.classes.metrics_labels import (
    allocation,
    average_thresholded_confidence,
    difference_of_confidences,
    drawn,
    strata,
)
from weakspot.core.class_names import named_classes
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.core.stateless_random import draw_keys
from weakspot.core.step import Step
from weakspot.data.thumbnails import thumbnails
from weakspot.estimates import share_of


class KnownConfidence(Probe):
    """How sure the model is of labelled inputs, and whether it is right: what estimates without labels are taught by.

    After Garg et al. 2022 and Guillory et al. 2021.
    """

    tasks = ("classification",)
    split = "test"
    outputs = KNOWN_CONFIDENCE

    samples = Rows()

    def observe(self, seen: Observation) -> None:
        """Keep the highest probability, and whether the prediction is correct."""
        confidence = seen.probabilities.double().amax(1)
        self.samples.append(seen.ids, confidence=confidence, correct=seen.correct)

    def finish(self) -> Finding:
        """A row per input."""
        rows = self.samples.read()
        order = id_order(rows.ids)
        confidence, right = (np.asarray(rows[name])[order] for name in ("confidence", "correct"))
        return self.finding(
            summary={
                "accuracy": share_of(right),
                "average_confidence": Estimate(float(confidence.mean())),
                "inputs": Estimate(len(order)),
            },
            table={"id": np.array(rows.ids)[order], "confidence": confidence, "correct": right},
        )


class LabelPlan(Probe):
    """Which few inputs to label to know the accuracy on all of them, and estimates without any label.

    Inputs are put into strata by the margin of their probabilities; of every stratum as many are drawn at random as its
    size and its predicted error rate ask for (Neyman 1934). Unsure inputs are drawn more often and count for less each,
    so the estimate is unbiased, as in DeepEST (Guerriero et al. 2021) and DeepSample (Guerriero et al. 2024). The
    interval assumes that the inputs are independent: of a film, take a frame per scene.

    labels: how many inputs to label.
    known: the Finding of `KnownConfidence` over labelled inputs; none to leave out the estimates that need one.
    thumbnail: size of the small pictures of the inputs to label in pixels, for the viewer; 0 for none.
    seed: of the draw.
    """

    tasks = ("classification",)
    split = "pool"
    outputs = LABEL_PLAN

    labels: int = 200
    known: Finding | None = None
    thumbnail: int = 64
    seed: int = 0

    samples = Rows()

    def __post_init__(self) -> None:
        if self.labels < 20:
            raise ConfigError(f"labels is {self.labels}: expected 20 or more")

    def observe(self, seen: Observation) -> None:
        """Keep the prediction, its probability and a small picture."""
        first, second = seen.probabilities.double().topk(2, dim=1).values.unbind(1)
        columns: dict[str, Any] = {"prediction": seen.predicted, "confidence": first, "margin": first - second}
        if self.thumbnail and seen.inputs.ndim == 4:
            columns["thumbnail"] = thumbnails(seen.inputs, self.thumbnail)
        self.samples.append(seen.ids, **columns)

    def finish(self) -> Finding:
        """The inputs to label, in an order of which every beginning is a fair sample."""
        rows = self.samples.read()
        order = id_order(rows.ids)
        ids, confidence = np.array(rows.ids)[order], np.asarray(rows["confidence"])[order]
        uncertainty = 1 - np.asarray(rows["margin"])[order]
        labels = min(self.labels, len(ids))
        stratum = strata(uncertainty, labels)
        taken = allocation(stratum, uncertainty, labels)
        chosen = drawn(stratum, taken, draw_keys(ids.tolist(), self.seed))
        sizes = np.bincount(stratum)
        names = self.setting.classes or [str(number) for number in range(self._classes(rows))]
        return self.finding(
            summary={
                "to_label": Estimate(len(chosen)),
                "average_confidence": Estimate(float(confidence.mean())),
                **self._without_labels(confidence),
                "inputs": Estimate(len(ids)),
            },
            table={
                "id": ids[chosen],
                "prediction": named_classes(np.asarray(rows["prediction"])[order][chosen], names),
                "confidence": confidence[chosen],
                "stratum": stratum[chosen],
                "probability": (taken / sizes)[stratum[chosen]],
            },
            arrays={
                "stratum_inputs": sizes,
                "stratum_labels": taken,
                **label_format(names),
                **({"thumbnails": np.asarray(rows["thumbnail"][order[chosen]])} if "thumbnail" in rows else {}),
            },
        )

    def _classes(self, rows: Mapping[str, Any]) -> int:
        return int(np.asarray(rows["prediction"]).max()) + 1

    def _without_labels(self, confidence: np.ndarray) -> dict[str, Estimate]:
        if self.known is None or self.known.table is None:
            return {}
        known, right = (self.known.table[name].to_numpy() for name in ("confidence", "correct"))
        return {
            "thresholded_confidence": Estimate(average_thresholded_confidence(confidence, known, right)),
            "confidence_difference": Estimate(difference_of_confidences(confidence, known, right)),
        }


def label_format(names: Sequence[str]) -> dict[str, np.ndarray]:
    """What a label may be, for whoever reads labels without the model."""
    return {
        "task": np.array("classification"),
        "outputs": np.array(len(names)),
        "classes": np.array(list(names), dtype=np.str_),
    }


def plan_steps(options: Any) -> list[Step]:
    """The steps of the room's option `estimate`: {from: SPLIT, labels: N, known: SPLIT}."""
    if not isinstance(options, Mapping):
        raise ConfigError(f"estimate is {options!r}: expected {{from: SPLIT, labels: N}}, and known: SPLIT besides")
    given = dict(options)
    split, known = given.pop("from", LabelPlan.split), given.pop("known", None)
    step = Step.of(LabelPlan, split=split, **given)
    if known is None:
        return [step]
    plain = {name: value for name, value in step.options.items() if name != "known"}
    return [Step(LabelPlan, plain, step.split, {"known": Step.of(KnownConfidence, split=known)})]
