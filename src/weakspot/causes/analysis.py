"""From distances to root causes: everything that needs no model, so that it can be done again from a saved Run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import squareform

from weakspot.causes.blank_layers import listed
from weakspot.causes.clusters import (
    ClusterRecipe,
    LayerClusters,
    RootCauseCluster,
    best_layer,
    cluster_layer,
    cluster_numbers,
    root_cause_clusters,
)
from weakspot.causes.distances import Distances, HeatMapRows, square
from weakspot.causes.landmarks import distances_from, nearest_clusters
from weakspot.causes.parameters import Parameters
from weakspot.causes.stability import again_with, cluster_stability
from weakspot.causes.tree import Labels, cut_tree, dense_clusters, distances_of_distances, merge_tree
from weakspot.core.errors import ConfigError, DataError, RunError
from weakspot.core.finding import Finding
from weakspot.core.options import nearest

LEFT_OUT = ("left_out", "left_out_why")
"""The arrays that name the layers that are not compared, and say why."""


@dataclass(frozen=True)
class ErrorImages:
    """The error-inducing images in the order of their ids, and what is known of them.

    kinds: what was taken for what.
    layers: names of the layers that have heat maps which tell images apart.
    distances: for each layer, of the landmarks' heat maps, condensed.
    landmarks: the images between which distances are known: all, unless there are very many.
    heat_maps: of all images, by the layer's number; layers that are not kept are missing.
    thumbnails: small pictures, (images, height, width, 3).
    heat_pictures: what each pixel contributed, (images, height, width), each over its largest magnitude.
    parameters: what is known of every image of the test set besides.
    places: which of them these images are.
    method, positions, unit_length, sketch: how the heat maps were made.
    sketch_errors: of each layer, how far sketches' lengths lie from those of the maps; NaN where these are whole.
    left_out: layers that are not compared, and why.
    """

    ids: NDArray[np.str_]
    kinds: NDArray[np.str_]
    layers: tuple[str, ...]
    distances: tuple[Distances, ...]
    landmarks: Labels
    heat_maps: Mapping[int, HeatMapRows] = field(default_factory=dict)
    thumbnails: np.ndarray | None = None
    heat_pictures: np.ndarray | None = None
    parameters: Parameters = field(default_factory=Parameters)
    places: Labels | None = None
    method: str = "hudd"
    positions: int | None = None
    unit_length: bool = False
    sketch: int | None = None
    sketch_errors: tuple[float, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sampled(self) -> bool:
        """Whether distances are known for some of the images only."""
        return len(self.landmarks) < len(self.ids)

    def layer(self, name: str) -> int:
        """The number of a layer, given its name."""
        if name in self.left_out:
            raise ConfigError(f"layer {name!r} cannot be clustered: {self.left_out[name]}; take one of {self.layers}")
        if name not in self.layers:
            raise ConfigError(f"no heat maps of {name!r}: {nearest(name, self.layers)}there are {self.layers}")
        return self.layers.index(name)

    @classmethod
    def of_finding(cls, finding: Finding) -> ErrorImages:
        """From the Finding of `RootCauses`."""
        arrays = finding.arrays
        if "image_id" not in arrays:
            raise RunError(
                f"{finding.name} holds no error-inducing images with heat maps: examine causes first, with layers that "
                "relevance reaches"
            )
        layers = tuple(np.asarray(arrays["layers"]).tolist())
        kept = [number for number in range(len(layers)) if f"heat_maps-{number:02d}" in arrays]
        return cls(
            ids=np.asarray(arrays["image_id"]),
            kinds=np.asarray(arrays["image_kind"]),
            layers=layers,
            distances=tuple(arrays[f"distances-{number:02d}"] for number in range(len(layers))),
            landmarks=np.asarray(arrays["landmarks"]),
            heat_maps={
                n: HeatMapRows.of(arrays[f"heat_maps-{n:02d}"], arrays[f"heat_map_scale-{n:02d}"]) for n in kept
            },
            thumbnails=arrays.get("thumbnails"),
            heat_pictures=arrays.get("heat_pictures"),
            parameters=Parameters.of_arrays(arrays),
            places=None if "image_place" not in arrays else np.asarray(arrays["image_place"]),
            method=str(arrays["method"]),
            positions=int(arrays["positions"]) or None,
            unit_length=bool(arrays.get("unit_length", False)),
            sketch=int(arrays.get("sketch", 0)) or None,
            sketch_errors=tuple(np.asarray(arrays.get("sketch_errors", ())).tolist()),
            left_out=dict(zip(*(np.asarray(arrays.get(name, ())).tolist() for name in LEFT_OUT), strict=True)),
        )


@dataclass(frozen=True)
class RootCauseStudy:
    """The root-cause clusters of the best layer, and what every layer gives.

    layers: one entry per layer.
    best: the number of the layer whose clusters these are.
    clusters: of two images and more, the largest first; members are places in the order of the ids.
    """

    layers: tuple[LayerClusters, ...]
    best: int
    clusters: tuple[RootCauseCluster, ...]
    images: int

    @property
    def numbers(self) -> Labels:
        """The cluster of each image from 1 on, 0 for those that are alone."""
        return cluster_numbers(self.clusters, self.images)

    @property
    def medoid_distances(self) -> Distances:
        """How far each image lies from the medoid of its cluster; not a number for those that are alone."""
        distances = np.full(self.images, np.nan, dtype=np.float32)
        for cluster in self.clusters:
            distances[cluster.members] = cluster.distances
        return distances


def study_root_causes(
    images: ErrorImages,
    recipe: ClusterRecipe | None = None,
    *,
    layer: str | None = None,
    replicates: int = 50,
    seed: int = 0,
) -> RootCauseStudy:
    """Cluster every layer, choose the best or take the given one, and describe its clusters [fahmy2021].

    replicates: of the resampling behind the clusters' stability; 0 for none.
    """
    recipe = recipe or ClusterRecipe()
    if not images.layers:
        raise DataError(f"no layer has heat maps that differ between images: {listed(images.left_out)}")
    layers = tuple(cluster_layer(distances, recipe) for distances in images.distances)
    best = best_layer(layers, recipe.best_by) if layer is None else images.layer(layer)
    full, labels = square(images.distances[best]), layers[best].labels
    stability = None
    if replicates and len(labels) > 1:
        again = again_with(labels, partial(_cut, recipe=recipe))
        stability = cluster_stability(full, labels, again, replicates=replicates, seed=seed)
    clusters = root_cause_clusters(full, labels, stability)
    if images.sampled:
        clusters = with_all_images(images, best, clusters, labels)
    return RootCauseStudy(layers, best, tuple(clusters), len(images))


def _cut(distances: np.ndarray, clusters: int, *, recipe: ClusterRecipe) -> Labels:
    """The clusters of some images, as the recipe has it, their number given."""
    if len(distances) < 2:
        return np.zeros(len(distances), dtype=np.int64)
    compared = recipe.compare == "distances"
    condensed = distances_of_distances(distances)[0] if compared else squareform(distances, checks=False)
    if recipe.linkage == "density":
        return dense_clusters(square(condensed))
    return cut_tree(merge_tree(condensed, linkage=recipe.linkage), clusters)


def with_all_images(
    images: ErrorImages, layer: int, clusters: list[RootCauseCluster], labels: Labels
) -> list[RootCauseCluster]:
    """The clusters of the landmarks with all other images added, each to the cluster with the nearest mean heat map.

    Spread and stability stay those of the landmarks. An image that is nearest to a landmark that was alone joins it, so
    that a cluster of two or more may come of it.
    """
    if layer not in images.heat_maps:
        raise ConfigError(
            f"the heat maps of layer {images.layers[layer]!r} were not kept, and {len(images)} images are too many for "
            "distances between all: choose the layer that was best, or examine again with keep: all"
        )
    rows = images.heat_maps[layer]
    assigned = nearest_clusters(rows, images.landmarks, labels)
    by_label = {int(labels[each.medoid]): each for each in clusters}
    grown = []
    for label in range(int(labels.max()) + 1):
        members = np.flatnonzero(assigned == label)
        landmark = by_label[label].medoid if label in by_label else np.flatnonzero(labels == label)[0]
        medoid = int(images.landmarks[landmark])
        if len(members) > 1:
            far = distances_from(rows, members, medoid).astype(np.float64)
            order = np.lexsort((members, np.where(members == medoid, -1, far)))
            cluster = by_label.get(label, RootCauseCluster(members, far, float("nan")))
            grown.append(replace(cluster, members=members[order], distances=far[order]))
    return sorted(grown, key=lambda each: (-len(each), int(each.members.min())))
