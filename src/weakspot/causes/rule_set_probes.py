"""Images to label, by the rules of confirmed causes; or, as controls, those the model is least sure of, or any."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch

from weakspot.causes import finding_outputs
from weakspot.causes.chosen_images import at, image_columns, label_format, prediction_texts
from weakspot.causes.error_probes import NUMERIC
from weakspot.causes.labelling import UNSAFE
from weakspot.causes.slice_members import CauseRule, confirmed_rules, first_rules, trait_columns, wish_of
from weakspot.causes.slice_probes import ErrorSlices
from weakspot.causes.slice_views import SliceWish
from weakspot.causes.unsafe_selection import cluster_quotas
from weakspot.core.class_names import named_classes
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.core.state import Max
from weakspot.core.step import Step

ChosenBy = Literal["rules", "least confident", "random"]
Within = Literal["random", "least confident"]


class RuleSet(Probe):
    """Images to label that the rules of confirmed causes hold for, in proportion to the errors that each explains.

    Step 4 of HUDD (Fahmy et al. 2021), with rules in the place of clusters of heat maps.
    Each image of the pool, which needs no labels, belongs to the first confirmed rule that holds for it. Rules about
    the true class, or about metadata that the pool has not, cannot be asked; the summary counts them. Where a cause has
    fewer images than its quota, images of the other causes fill it.

    slices: the Finding of `ErrorSlices`.
    rules: options of `ErrorSlices`, for where its Finding is not given.
    by: "rules"; or, to compare with, "least confident" or "random" images of the whole pool.
    within: which images of a cause are chosen: "random" ones, or the "least confident".
    budget: how many images to choose; by default as many as the test data had errors.
    thumbnail: size of the small pictures of the chosen images in pixels; 0 for none.
    seed: of the choice at random.
    """

    tasks = ("classification", "multilabel", "regression", "keypoints")
    outputs = finding_outputs.UNSAFE
    split = "pool"
    name_says_split = False

    slices: Finding
    rules: Mapping[str, Any] = field(default_factory=dict)
    by: ChosenBy = "rules"
    within: Within = "random"
    budget: int | None = None
    thumbnail: int = 64
    seed: int = 0

    images = Rows()
    output_count = Max()

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise ConfigError(f"expected a budget of 1 or more, got {self.budget}")

    @classmethod
    def name(cls) -> str:
        """The Finding's name: labels and retraining ask for it, whatever chose the images."""
        return UNSAFE

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The causes in the test data."""
        return {"slices": Step.of(ErrorSlices, **options["rules"])}

    @cached_property
    def _rules(self) -> list[CauseRule]:
        return confirmed_rules(self.slices) if self.by == "rules" else []

    @cached_property
    def _wish(self) -> SliceWish:
        return wish_of(self.slices, self._rules)

    @property
    def _by_confidence(self) -> bool:
        return self.by == "least confident" or (self.by == "rules" and self.within == "least confident")

    @property
    def needs(self) -> Needs:
        """What the rules ask of an image."""
        return self._wish.needs(self.setting)

    def wants(self, ids: Sequence[str]) -> Sequence[str] | None:
        """All images; none where there is no rule to ask."""
        return None if self._rules or self.by != "rules" else ()

    def observe(self, seen: Observation) -> None:
        """Keep what the rules ask, the prediction, the confidence and a small picture."""
        columns = {**self._wish.columns(seen, self.setting), **image_columns(seen, self.setting, self.thumbnail)}
        if self._by_confidence:
            columns["confidence"] = self._confidence(seen)
        self.images.append(seen.ids, **columns)
        self.output_count = torch.maximum(self.output_count, torch.tensor(float(seen.outputs[0].numel())))

    def _confidence(self, seen: Observation) -> torch.Tensor:
        if self.setting.task in NUMERIC or self.setting.scores is None:
            raise ConfigError(
                "least confident images need probabilities: they are there for classes and labels of a subject with "
                "scores='logits' or scores='probabilities'"
            )
        sure = seen.probabilities.double().flatten(1)
        if self.setting.task == "multilabel":
            return torch.maximum(sure, 1 - sure).amin(1)
        return sure.amax(1)

    def finish(self) -> Finding:
        """The images to label, those of each cause together."""
        if not self._rules and self.by == "rules":
            about = "images to label: no cause is confirmed whose rule could choose them"
            return self.finding(summary={"unsafe": Estimate(0, about=about)})
        rows = self.images.read()
        order = id_order(rows.ids)
        ids, outputs = np.asarray(rows.ids, dtype=np.str_)[order], int(self.output_count)
        predicted = None
        if self.setting.task not in NUMERIC:
            values = rows["prediction"][:, 0] if self.setting.task == "classification" else rows["prediction"]
            predicted = named_classes(values, self.setting.classes, empty="nothing").astype(np.str_)[order]
        cause, left_out = self._caused(trait_columns(self.slices, rows, order, predicted), len(ids))
        confidence = np.asarray(rows["confidence"])[order] if self._by_confidence else np.full(len(ids), np.nan)
        budget = self.budget or int(self.slices.summary["errors"].value or 1)
        chosen = self._chosen(cause, confidence if self._by_confidence else self._chance(ids), budget)
        table = {
            "id": ids[chosen],
            "cluster": cause[chosen],
            "distance": confidence[chosen],
            "prediction": prediction_texts(at(rows, "prediction", order[chosen]), outputs, self.setting),
        }
        shown = {"thumbnails": at(rows, "thumbnail", order[chosen])} if "thumbnail" in rows else {}
        arrays = {"image_id": ids, "image_cluster": cause, "image_distance": confidence, "chosen_by": np.array(self.by)}
        return self.finding(
            summary=self._summary(cause, chosen, budget, left_out),
            table=table,
            arrays={**arrays, **label_format(outputs, self.setting), **shown},
        )

    def _caused(self, columns: dict[str, Any], count: int) -> tuple[np.ndarray, list[CauseRule]]:
        """The cause of each image; all are of one where no rules are asked."""
        return first_rules(self._rules, columns, count) if self.by == "rules" else (np.ones(count, dtype=np.int64), [])

    def _chance(self, ids: np.ndarray) -> np.ndarray:
        """The images in an order at random."""
        return np.random.default_rng(self.seed).permutation(len(ids)).astype(np.float64)

    def _chosen(self, cause: np.ndarray, rank: np.ndarray, budget: int) -> np.ndarray:
        """Places of the chosen images by cause, the lowest ranks first; what a cause lacks the others fill."""
        possible = np.flatnonzero(cause > 0)
        possible = possible[np.lexsort((possible, rank[possible]))]
        weights = np.zeros(int(cause.max(initial=0)) + 1)
        for one in self._rules:
            if one.place < len(weights):
                weights[one.place] = max(one.explained, 1.0)
        if self.by != "rules":
            weights[-1] = 1.0
        quotas = cluster_quotas(weights, min(budget, len(possible)))
        within = np.zeros(len(possible), dtype=bool)
        for number, quota in enumerate(quotas.tolist()):
            within[np.flatnonzero(cause[possible] == number)[:quota]] = True
        spare = np.flatnonzero(~within)[: max(0, min(budget, len(possible)) - int(within.sum()))]
        chosen = np.concatenate([possible[within], possible[spare]])
        return np.asarray(chosen[np.lexsort((rank[chosen], cause[chosen]))])

    def _summary(
        self, cause: np.ndarray, chosen: np.ndarray, budget: int, left_out: Sequence[CauseRule]
    ) -> dict[str, Estimate]:
        numbers: dict[str, Any] = {
            "unsafe": len(chosen),
            "budget": budget,
            "clusters": len(np.unique(cause[chosen])),
            "inputs": len(cause),
        }
        if self.by == "rules":
            numbers |= {"held": int((cause > 0).sum()), "rules_not_asked": len(left_out)}
        return {name: Estimate(value) for name, value in numbers.items()}
