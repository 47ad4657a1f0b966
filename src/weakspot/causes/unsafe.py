"""The unsafe set: images of an improvement set that likely lead to errors, as their heat maps are near those of errors.

Steps 3 and 4 of HUDD (Fahmy et al. 2021, `fahmy2021`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weakspot.causes.clusters import ALONE
from weakspot.causes.distances import Distances, HeatMapRows, distances_between, square
from weakspot.causes.errors import NUMERIC
from weakspot.causes.heat_maps import METHODS, columns_of, heat_map_rows
from weakspot.causes.labelling import UNSAFE
from weakspot.causes.probes import RootCauses
from weakspot.causes.study import ErrorImages
from weakspot.causes.tree import Labels
from weakspot.core.errors import ConfigError, ProbeError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable
from weakspot.core.state import Max
from weakspot.core.step import Step
from weakspot.core.taps import Tap
from weakspot.data.thumbnails import thumbnails
from weakspot.relevance.need import LayerRelevance
from weakspot.relevance.starts import Start
from weakspot.statistics import wilson_interval


def cluster_quotas(sizes: Sequence[int] | np.ndarray, budget: int) -> Labels:
    """How many images each cluster may choose: the budget in proportion to the clusters' sizes, by largest remainders.

    >>> cluster_quotas([6, 3, 1], 5).tolist()
    [3, 2, 0]
    """
    exact = np.asarray(sizes, dtype=np.float64) * budget / max(1, int(np.sum(sizes)))
    quotas = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - quotas), kind="stable")
    quotas[order[: budget - int(quotas.sum())]] += 1
    return quotas


def unsafe_set(
    distances: np.ndarray, clusters: np.ndarray, sizes: Sequence[int] | np.ndarray, *, budget: int, limit: float
) -> Labels:
    """The places of the images to label: greedily by distance, in proportion to the sizes of the clusters [fahmy2021].

    distances, clusters: how far each image is from the nearest error-inducing image, and that one's cluster, from 1 on.
    sizes: of the clusters. limit: images that are further away are not chosen. Where a cluster finds fewer images than
    its quota, the nearest images of the others take their places.

    >>> unsafe_set(np.array([0.3, 0.1, 0.2, 9.0]), np.array([1, 1, 2, 2]), [5, 5], budget=2, limit=1.0).tolist()
    [1, 2]
    """
    near = np.flatnonzero(distances <= limit)
    near = near[np.argsort(distances[near], kind="stable")]
    quotas = cluster_quotas(sizes, min(budget, len(near)))
    rank = np.zeros(len(near), dtype=np.int64)
    for cluster in range(1, len(quotas) + 1):
        own = clusters[near] == cluster
        rank[own] = np.arange(own.sum())
    within = rank < quotas[clusters[near] - 1]
    spare = np.flatnonzero(~within)[: max(0, min(budget, len(near)) - int(within.sum()))]
    return np.asarray(near[np.sort(np.concatenate([np.flatnonzero(within), spare]))])


def nearest_members(heat_maps: HeatMapRows, members: HeatMapRows) -> tuple[Labels, Distances]:
    """For each heat map the place of the nearest of `members`, and its distance; in memory that does not grow."""
    place = np.empty(len(heat_maps), dtype=np.int64)
    far = np.empty(len(heat_maps), dtype=np.float32)
    step = max(1, (64 << 20) // max(1, 4 * len(members)))
    for start in range(0, len(heat_maps), step):
        some = np.arange(start, min(start + step, len(heat_maps)))
        between = distances_between(heat_maps.select(some), members)
        place[some] = between.argmin(1)
        far[some] = between[np.arange(len(some)), place[some]]
    return place, far


def distance_limit(distances: np.ndarray, clusters: np.ndarray, quantile: float) -> float:
    """How near is near enough: the quantile of the errors' distances to the nearest other member of their cluster.

    distances: of error-inducing images, (images, images). clusters: theirs; those that are alone do not count.

    >>> points = np.array([0.0, 1.0, 3.0, 50.0])
    >>> distance_limit(np.abs(points[:, None] - points), np.array([1, 1, 1, 0]), 1.0)
    2.0
    """
    found = []
    for cluster in np.unique(clusters[clusters != ALONE]):
        members = np.flatnonzero(clusters == cluster)
        if len(members) > 1:
            within = distances[np.ix_(members, members)] + np.diag(np.full(len(members), np.inf))
            found.append(within.min(1))
    return float(np.quantile(np.concatenate(found), quantile)) if found else 0.0


def one_class_clusters(clusters: np.ndarray, classes: Sequence[Any] | np.ndarray) -> list[int]:
    """The clusters of which two images or more were chosen, all of one class: half of a mistake, to learn from.

    clusters, classes: of the chosen images.

    >>> one_class_clusters(np.array([1, 1, 2, 2, 3]), ["cat", "cat", "cat", "dog", "dog"])
    [1]
    """
    own = {int(cluster): Counter(np.asarray(classes)[clusters == cluster].tolist()) for cluster in np.unique(clusters)}
    return [cluster for cluster, found in own.items() if len(found) == 1 and found.total() > 1]


@dataclass(frozen=True)
class OneAnswer:
    """One number, or both coordinates of one keypoint, the same for every sample: what is explained without targets."""

    columns: tuple[int, ...]

    def weights(self, outputs: Tensor) -> Tensor:
        """1 for these outputs, else 0, in the shape of the outputs."""
        chosen = outputs.new_zeros(outputs.reshape(len(outputs), -1).shape)
        chosen[:, list(self.columns)] = 1
        return chosen.view_as(outputs)


class UnsafeSet(Probe):
    """The unsafe set: images to label next, whose heat maps are near those of errors. HUDD (Fahmy et al. 2021).

    Each image of the improvement set, which needs no labels, gets the heat map of its answer at the layer whose
    clusters are the root causes, and belongs to the cluster of the nearest error-inducing image that is in one. Those
    nearest are chosen, in proportion to the sizes of the clusters; those further than the limit are not. Which number
    or keypoint of an unlabelled image is worst cannot be known: there, heat maps start at the one that most often is
    the worst in the clusters, and are compared with the errors of that one alone. The summary warns of clusters whose
    images all have one class: by their labels where the improvement set has any, which choose nothing, else as
    predicted.

    causes: the Finding of `RootCauses`, with the heat maps of its layer (`keep`).
    clustering: options of `RootCauses`, for where its Finding is not given.
    budget: how many images to choose; by default as many as there are error-inducing images in clusters.
    limit: the distance limit, as a quantile of the distances of error-inducing images to the nearest of their cluster.
    answer: for numbers and keypoints, the number of the one to start from; by default the one that most often is worst.
    thumbnail: size of the small pictures of the chosen images in pixels; 0 for none.
    """

    tasks = ("classification", "multilabel", "regression", "keypoints")
    split = "improvement"

    causes: Finding
    clustering: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None
    limit: float = 0.9
    answer: int | None = None
    thumbnail: int = 64

    images = Rows()
    outputs = Max()

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
        if self.answer is None:
            commonest: str = min(Counter(kinds).items(), key=lambda entry: (-entry[1], entry[0]))[0]
            return commonest
        word = kinds[0].split()[0]
        if f"{word} {self.answer}" not in kinds:
            raise ConfigError(f"answer is {self.answer}, and no error in a cluster is one of {word} {self.answer}")
        return f"{word} {self.answer}"

    @cached_property
    def attribution(self) -> LayerRelevance:
        """The heat map of the answer, at the layer of the clusters."""
        tap = Tap(self._errors.layers[self._layer], side="input")
        return LayerRelevance(tap, method=METHODS[self._errors.method](), start=self._start)

    @property
    def _start(self) -> Start | None:
        if self._worst is None:
            return None
        word, number = self._worst.split()
        place = int(number)
        return OneAnswer((2 * place, 2 * place + 1) if word == "keypoint" else (place,))

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
        """Keep the heat map, the answer and a small picture."""
        found, made = seen.relevance(self.attribution), self._errors
        columns = columns_of(found, "auto", made.positions, unit_length=made.unit_length)
        columns["guess"] = seen.predicted.reshape(len(seen.ids), -1).cpu().numpy()
        if seen.batch.targets is not None and self.setting.task not in NUMERIC:
            columns["target"] = seen.targets.reshape(len(seen.ids), -1).long().cpu().numpy()
        if self.thumbnail and seen.inputs.ndim == 4:
            columns["thumbnail"] = thumbnails(seen.inputs, self.thumbnail)
        self.images.append(seen.ids, **columns)
        self.outputs = torch.maximum(self.outputs, torch.tensor(float(seen.outputs[0].numel())))

    def finish(self) -> Finding:
        """The images to label, those of each cluster by distance; and how near every other image is."""
        if not self._has_clusters:
            return self.finding(
                summary={"unsafe": Estimate(0, about="images to label: there is no root-cause cluster to compare with")}
            )
        rows = self.images.read()
        names = np.asarray(rows.ids, dtype=np.str_)
        order = np.argsort(names, kind="stable")
        clusters, far = self._assigned(heat_map_rows(rows, 0, order))
        sizes = np.bincount(np.asarray(self.causes.arrays["image_cluster"]))[1:]
        budget = int(sizes.sum()) if self.budget is None else self.budget
        chosen = unsafe_set(far, clusters, sizes, budget=budget, limit=self._limit)
        chosen = chosen[np.lexsort((chosen, far[chosen], clusters[chosen]))]
        table = {
            "id": names[order][chosen],
            "cluster": clusters[chosen],
            "distance": far[chosen],
            "guess": self._guesses(rows, order[chosen]),
        }
        shown = {"thumbnails": _at(rows, "thumbnail", order[chosen])} if "thumbnail" in rows else {}
        near = {"image_id": names[order], "image_cluster": clusters, "image_distance": far}
        return self.finding(
            summary={
                **self._summary(far, clusters[chosen], budget),
                **self._one_class(rows, clusters[chosen], order[chosen]),
            },
            table=table,
            arrays={**near, **self._answers(), **shown},
        )

    def _assigned(self, maps: HeatMapRows) -> tuple[Labels, Distances]:
        """The cluster of the nearest error-inducing image, and how far away that is."""
        numbers = np.asarray(self.causes.arrays["image_cluster"])
        counts = numbers != ALONE
        if self._worst is not None:
            counts &= self._errors.kinds == self._worst
        members = np.flatnonzero(counts)
        place, far = nearest_members(maps, self._errors.heat_maps[self._layer].select(members))
        return numbers[members[place]], far

    @cached_property
    def _limit(self) -> float:
        """Beyond which distance an image is not chosen."""
        landmarks = self._errors.landmarks
        numbers = np.asarray(self.causes.arrays["image_cluster"])[landmarks]
        return distance_limit(square(self._errors.distances[self._layer]), numbers, self.limit)

    def _answers(self) -> dict[str, np.ndarray]:
        """What a label may be, for whoever reads labels without the model."""
        outputs, task = int(self.outputs), self.setting.task
        names = () if task in NUMERIC else (self.setting.classes or tuple(map(str, range(outputs))))
        return {
            "task": np.array(task),
            "outputs": np.array(outputs),
            "classes": np.array(names, dtype=np.str_),
        }

    def _guesses(self, rows: RowTable, places: np.ndarray) -> np.ndarray:
        """The answers in the form in which labels are given."""
        values, names = _at(rows, "guess", places).tolist(), self._answers()["classes"].tolist()
        if self.setting.task == "classification":
            return np.array([names[row[0]] for row in values], dtype=np.str_)
        if self.setting.task == "multilabel":
            sets = [";".join(name for name, there in zip(names, row, strict=True) if there) for row in values]
            return np.array([present or ";" for present in sets], dtype=np.str_)
        return np.array([" ".join(f"{number:.6g}" for number in row) for row in values], dtype=np.str_)

    def _one_class(self, rows: RowTable, clusters: np.ndarray, places: np.ndarray) -> dict[str, Estimate]:
        """How many clusters teach one class alone; numbers and keypoints have none."""
        if self.setting.task in NUMERIC:
            return {}
        labelled = "target" in rows and bool((_at(rows, "target", places) >= 0).all())  # −1: no label
        column, kind = ("target", "true") if labelled else ("guess", "predicted")
        found = one_class_clusters(clusters, list(map(str, _at(rows, column, places).tolist())))
        named = f": {', '.join(map(str, found))}; add images of the other classes to them" if found else ""
        about = f"clusters whose chosen images, two or more, all have one {kind} class{named}"
        return {"one_class_clusters": Estimate(len(found), about=about)}

    def _summary(self, far: np.ndarray, chosen: np.ndarray, budget: int) -> dict[str, Estimate]:
        near = int((far <= self._limit).sum())
        low, high = wilson_interval(near, len(far))
        return {
            "unsafe": Estimate(len(chosen), about="images to label"),
            "budget": Estimate(budget, about="images that could be chosen"),
            "clusters": Estimate(len(np.unique(chosen)), about="root-cause clusters that they belong to"),
            "near_share": Estimate(
                near / len(far), float(low), float(high), 0.95, "share of the improvement set within the distance limit"
            ),
            "limit": Estimate(
                self._limit, about=f"distance limit: the {self.limit:g} quantile of those between errors"
            ),
            "inputs": Estimate(len(far), about="images of the improvement set"),
        }


def _at(rows: RowTable, column: str, places: np.ndarray) -> np.ndarray:
    """Some records of a column."""
    return np.asarray(rows[column][places])
