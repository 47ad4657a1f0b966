"""The unsafe set: unlabelled images that likely lead to errors, as their heat maps are near those of errors.

Steps 3 and 4 of HUDD (Fahmy et al. 2021, `fahmy2021`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from weakspot.causes import finding_outputs
from weakspot.causes.analysis import ErrorImages
from weakspot.causes.chosen_images import at, image_columns, label_format, prediction_texts
from weakspot.causes.clusters import ALONE
from weakspot.causes.distances import Distances, HeatMapRows, square
from weakspot.causes.error_probes import NUMERIC
from weakspot.causes.heat_maps import METHODS, columns_of, heat_map_rows
from weakspot.causes.labelling import UNSAFE
from weakspot.causes.probes import RootCauses
from weakspot.causes.tree import Labels
from weakspot.causes.unsafe_selection import (
    cluster_limits,
    distance_limit,
    limit_of,
    nearest_members,
    one_class_clusters,
    unsafe_set,
)
from weakspot.core.errors import ConfigError, ProbeError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable, id_order
from weakspot.core.state import Max, Sum
from weakspot.core.step import Step
from weakspot.core.taps import Tap
from weakspot.estimates import share_estimate
from weakspot.relevance.need import LayerRelevance
from weakspot.relevance.soundness import problem_in, problem_of, unsound_samples
from weakspot.relevance.starts import Start


@dataclass(frozen=True)
class OneOutput:
    """One number, or both coordinates of one keypoint, the same for every sample: what is explained without targets."""

    columns: tuple[int, ...]

    def weights(self, outputs: Tensor) -> Tensor:
        """1 for these outputs, else 0, in the shape of the outputs."""
        chosen = outputs.new_zeros(outputs.reshape(len(outputs), -1).shape)
        chosen[:, list(self.columns)] = 1
        return chosen.view_as(outputs)


class UnsafeSet(Probe):
    """The unsafe set: images to label next, whose heat maps are near those of errors. HUDD (Fahmy et al. 2021).

    Each image of the pool, which needs no labels, gets the heat map of its prediction at the layer whose
    clusters are the root causes, and belongs to the cluster of the nearest error-inducing image that is in one. Those
    nearest are chosen, in proportion to the sizes of the clusters; those further than the limit are not. Which number
    or keypoint of an unlabelled image is worst cannot be known: there, heat maps start at the one that most often is
    the worst in the clusters, and are compared with the errors of that one alone. The summary warns of clusters whose
    images all have one class: by their labels where the pool has any, which choose nothing, else as predicted.

    causes: the Finding of `RootCauses`, with the heat maps of its layer (`keep`).
    clustering: options of `RootCauses`, for where its Finding is not given.
    budget: how many images to choose; by default as many as there are error-inducing images in clusters.
    limit: the distance limit, as a quantile of the distances of error-inducing images to the nearest of their cluster.
    limit_by: whether "all" clusters share that limit, or each "cluster" has one of its own distances: a loose cluster
        then reaches further than a tight one.
    output: for numbers and keypoints, the number of the one to start from; by default the one that most often is worst.
    thumbnail: size of the small pictures of the chosen images in pixels; 0 for none.
    """

    tasks = ("classification", "multilabel", "regression", "keypoints")
    outputs = finding_outputs.UNSAFE
    split = "pool"
    name_says_split = False

    causes: Finding
    clustering: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None
    limit: float = 0.9
    limit_by: Literal["all", "cluster"] = "all"
    output: int | None = None
    thumbnail: int = 64

    images = Rows()
    output_count = Max()
    unsound = Sum()
    """Images explained, and of these the ones whose relevance is absorbed, and whose diverges."""

    def __post_init__(self) -> None:
        if not 0 < self.limit <= 1 or (self.budget is not None and self.budget < 1):
            raise ConfigError(
                f"expected a limit between 0 and 1 and a budget of 1 or more, got {self.limit} and {self.budget}"
            )

    @classmethod
    def name(cls) -> str:
        """The Finding's name."""
        return UNSAFE

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The root causes in the test data."""
        return {"causes": Step.of(RootCauses, **options["clustering"])}

    @cached_property
    def _errors(self) -> ErrorImages:
        return ErrorImages.of_finding(self.causes)

    @cached_property
    def _layer(self) -> int:
        layer = int(self.causes.arrays["best_layer"])
        if layer not in self._errors.heat_maps:
            raise ProbeError(
                f"{self.causes.name} holds no heat maps of layer {self._errors.layers[layer]!r}, whose clusters these "
                "are: examine causes with keep: all, or keep: best and that layer"
            )
        return layer

    @cached_property
    def _worst(self) -> str | None:
        """The kind of error that heat maps of numbers and keypoints are compared with."""
        kinds = self._errors.kinds[np.asarray(self.causes.arrays["image_cluster"]) != ALONE].tolist()
        if not kinds or " → " in kinds[0]:
            return None
        if self.output is None:
            commonest: str = min(Counter(kinds).items(), key=lambda entry: (-entry[1], entry[0]))[0]
            return commonest
        word = kinds[0].split()[0]
        if f"{word} {self.output}" not in kinds:
            raise ConfigError(f"output is {self.output}, and no error in a cluster is one of {word} {self.output}")
        return f"{word} {self.output}"

    @cached_property
    def attribution(self) -> LayerRelevance:
        """The heat map of the prediction, at the layer of the clusters."""
        tap = Tap(self._errors.layers[self._layer], side="input")
        return LayerRelevance(tap, method=METHODS[self._errors.method](), start=self._start)

    @property
    def _start(self) -> Start | None:
        if self._worst is None:
            return None
        word, number = self._worst.split()
        output = int(number)
        return OneOutput((2 * output, 2 * output + 1) if word == "keypoint" else (output,))

    @property
    def needs(self) -> Needs:
        """Relevance at look 0; nothing where there are no clusters to compare with."""
        return Needs(attribution=self.attribution) if self._has_clusters else Needs()

    @property
    def _has_clusters(self) -> bool:
        return bool(np.any(np.asarray(self.causes.arrays.get("image_cluster", ALONE)) != ALONE))

    def wants(self, ids: Sequence[str]) -> Sequence[str] | None:
        """All images; none where there are no clusters."""
        return None if self._has_clusters else ()

    def observe(self, seen: Observation) -> None:
        """Keep the heat map, the prediction and a small picture."""
        relevance, made = seen.relevance(self.attribution), self._errors
        if seen.relevance_start is not None:
            self.unsound = self.unsound + unsound_samples(relevance.values(), seen.relevance_start)
        columns: dict[str, Any] = dict(
            columns_of(relevance, "auto", made.positions, unit_length=made.unit_length, sketch=made.sketch)
        )
        columns |= image_columns(seen, self.setting, self.thumbnail)
        self.images.append(seen.ids, **columns)
        self.output_count = torch.maximum(self.output_count, torch.tensor(float(seen.outputs[0].numel())))

    def finish(self) -> Finding:
        """The images to label, those of each cluster by distance; and how near every other image is."""
        if not self._has_clusters:
            return self.finding(
                summary={"unsafe": Estimate(0, about="images to label: there is no root-cause cluster to compare with")}
            )
        rows = self.images.read()
        names = np.asarray(rows.ids, dtype=np.str_)
        order = id_order(rows.ids)
        clusters, far = self._assigned(heat_map_rows(rows, 0, order))
        sizes = np.bincount(np.asarray(self.causes.arrays["image_cluster"]))[1:]
        budget = int(sizes.sum()) if self.budget is None else self.budget
        chosen = unsafe_set(far, clusters, sizes, budget=budget, limit=self._limit)
        chosen = chosen[np.lexsort((chosen, far[chosen], clusters[chosen]))]
        outputs = int(self.output_count)
        table = {
            "id": names[order][chosen],
            "cluster": clusters[chosen],
            "distance": far[chosen],
            "prediction": prediction_texts(at(rows, "prediction", order[chosen]), outputs, self.setting),
        }
        shown = {"thumbnails": at(rows, "thumbnail", order[chosen])} if "thumbnail" in rows else {}
        near = {"image_id": names[order], "image_cluster": clusters, "image_distance": far}
        return self.finding(
            summary={
                **self._summary(far, clusters, clusters[chosen], budget),
                **self._one_class(rows, clusters[chosen], order[chosen]),
                **self._relevance_problem(),
            },
            table=table,
            arrays={**near, **label_format(outputs, self.setting), **shown},
        )

    def _assigned(self, maps: HeatMapRows) -> tuple[Labels, Distances]:
        """The cluster of the nearest error-inducing image, and how far away that is."""
        numbers = np.asarray(self.causes.arrays["image_cluster"])
        counts = numbers != ALONE
        if self._worst is not None:
            counts &= self._errors.kinds == self._worst
        members = np.flatnonzero(counts)
        nearest, far = nearest_members(maps, self._errors.heat_maps[self._layer].select(members))
        return numbers[members[nearest]], far

    @cached_property
    def _limit(self) -> float | np.ndarray:
        """Beyond which distance an image is not chosen; of each cluster where they differ."""
        landmarks = self._errors.landmarks
        numbers = np.asarray(self.causes.arrays["image_cluster"])[landmarks]
        between = square(self._errors.distances[self._layer])
        if self.limit_by == "cluster":
            clusters = int(np.asarray(self.causes.arrays["image_cluster"]).max())
            return cluster_limits(between, numbers, self.limit, clusters)
        return distance_limit(between, numbers, self.limit)

    def _one_class(self, rows: RowTable, clusters: np.ndarray, places: np.ndarray) -> dict[str, Estimate]:
        """How many clusters teach one class alone; numbers and keypoints have none."""
        if self.setting.task in NUMERIC:
            return {}
        labelled = "target" in rows and bool((at(rows, "target", places) >= 0).all())  # −1: no label
        column, kind = ("target", "true") if labelled else ("prediction", "predicted")
        one_class = one_class_clusters(clusters, list(map(str, at(rows, column, places).tolist())))
        named = f": {', '.join(map(str, one_class))}; add images of the other classes to them" if one_class else ""
        about = f"clusters whose chosen images, two or more, all have one {kind} class{named}"
        return {"one_class_clusters": Estimate(len(one_class), about=about)}

    def _relevance_problem(self) -> dict[str, Estimate]:
        """What is wrong with the relevance of these images, or else with that of the errors they are compared with."""
        return {**problem_in(self.causes), **problem_of(self.unsound)}

    def _summary(self, far: np.ndarray, clusters: np.ndarray, chosen: np.ndarray, budget: int) -> dict[str, Estimate]:
        near = int((far <= limit_of(clusters, self._limit)).sum())
        whose = "errors" if self.limit_by == "all" else "errors of each cluster, the largest of them"
        return {
            "unsafe": Estimate(len(chosen), about="images to label"),
            "budget": Estimate(budget, about="images that could be chosen"),
            "clusters": Estimate(len(np.unique(chosen)), about="root-cause clusters that they belong to"),
            "near_share": share_estimate(near, len(far), "share of the unlabelled images within the distance limit"),
            "limit": Estimate(
                float(np.max(self._limit)),
                about=f"distance limit: the {self.limit:g} quantile of the distances between {whose}",
            ),
            "inputs": Estimate(len(far), about="unlabelled images examined"),
        }
