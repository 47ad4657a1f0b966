"""A study of root causes as the parts of a Finding."""

from typing import Any

import numpy as np

from weakspot.causes.clusters import ALONE
from weakspot.causes.errors import kinds_told
from weakspot.causes.study import ErrorImages, RootCauseStudy
from weakspot.core.finding import Estimate, Picture
from weakspot.data.images import enlarged, png, strip
from weakspot.statistics import wilson_interval

SHOWN = 5
"""Images of a cluster that a person looks at."""


def finding_parts(images: ErrorImages, study: RootCauseStudy, *, stable: float, pictures: int) -> dict[str, Any]:
    """Summary, columns of the table, arrays and pictures."""
    return {
        "summary": summary(images, study, stable=stable),
        "table": cluster_columns(images, study, stable=stable),
        "arrays": {**image_arrays(images), **study_arrays(study)},
        "media": cluster_pictures(images, study, pictures),
    }


def summary(images: ErrorImages, study: RootCauseStudy, *, stable: float) -> dict[str, Estimate]:
    """What a reader wants to know first."""
    sizes = [len(cluster) for cluster in study.clusters]
    stabilities = [cluster.stability for cluster in study.clusters]
    known = [value for value in stabilities if not np.isnan(value)]
    to_inspect = sum(min(size, SHOWN) for size in sizes)
    sample = {}
    if images.sampled:
        sample["clustered"] = Estimate(
            len(images.landmarks), about="images clustered exactly; the others joined the nearest cluster"
        )
    return {
        "clusters": Estimate(len(sizes), about="root-cause clusters of two images and more"),
        "stable_clusters": Estimate(
            sum(value >= stable for value in known) if known else None,
            about=f"clusters that come back when the images are drawn anew (stability ≥ {stable:g})",
        ),
        "alone": Estimate(int((study.numbers == ALONE).sum()), about="images whose heat map is like no other's"),
        "layer": Estimate(images.layers[study.best], about="layer whose heat maps give the clusters"),
        "layer_score": Estimate(
            study.layers[study.best].score,
            about="distance within clusters over that of any two images, over the number of clusters; lower is better",
        ),
        "images_to_inspect": Estimate(to_inspect, about=f"images a person looks at, {SHOWN} of each cluster"),
        "errors": Estimate(len(images), about="error-inducing images"),
        **sample,
    }


def no_errors(layers: int) -> dict[str, Estimate]:
    """The summary where nothing is wrong."""
    return {
        "clusters": Estimate(0, about="root-cause clusters: there is no error-inducing image"),
        "errors": Estimate(0, about="error-inducing images"),
        "layers": Estimate(layers, about="layers that would have been compared"),
    }


def cluster_columns(images: ErrorImages, study: RootCauseStudy, *, stable: float) -> dict[str, Any]:
    """One row per cluster, the largest first."""
    clusters = study.clusters
    sizes = np.array([len(cluster) for cluster in clusters], dtype=np.int64)
    low, high = wilson_interval(sizes, np.full_like(sizes, len(images)))
    stability = np.array([cluster.stability for cluster in clusters], dtype=np.float64)
    return {
        "cluster": np.arange(1, len(clusters) + 1),
        "images": sizes,
        "share": sizes / len(images),
        "low": low,
        "high": high,
        "errors": np.array([kinds_told(images.kinds[each.members].tolist()) for each in clusters], dtype=np.str_),
        "medoid": np.array([images.ids[each.medoid] for each in clusters], dtype=np.str_),
        "spread": np.array([cluster.spread for cluster in clusters], dtype=np.float64),
        "stability": stability,
        "stable": stability >= stable,
        "nearest": np.array([", ".join(images.ids[each.members[1:SHOWN]]) for each in clusters], dtype=np.str_),
    }


def image_arrays(images: ErrorImages) -> dict[str, np.ndarray]:
    """What is known of the images, whatever the clusters."""
    arrays = {
        "image_id": images.ids,
        "image_kind": images.kinds,
        "landmarks": images.landmarks,
        "layers": np.array(images.layers, dtype=np.str_),
    }
    arrays |= {f"distances-{number:02d}": distances for number, distances in enumerate(images.distances)}
    for number, rows in images.heat_maps.items():
        arrays |= {f"heat_maps-{number:02d}": rows.blocks[0], f"heat_map_scale-{number:02d}": rows.scale}
    return arrays if images.thumbnails is None else {**arrays, "thumbnails": images.thumbnails}


def study_arrays(study: RootCauseStudy) -> dict[str, np.ndarray]:
    """Each image's cluster, and how the layers and the numbers of clusters compare."""
    return {
        "image_cluster": study.numbers,
        "image_distance": study.medoid_distances,
        "best_layer": np.array(study.best),
        "layer_score": np.array([layer.score for layer in study.layers]),
        "layer_clusters": np.array([layer.clusters for layer in study.layers]),
        "score_clusters": study.layers[study.best].counts,
        "score": np.stack([layer.scores for layer in study.layers]),
    }


def cluster_pictures(images: ErrorImages, study: RootCauseStudy, most: int) -> dict[str, Picture]:
    """The medoid and its nearest members, of the largest clusters; none where no small pictures were kept."""
    if images.thumbnails is None:
        return {}
    shown = {}
    for number, cluster in enumerate(study.clusters[:most], start=1):
        members = cluster.members[:SHOWN]
        sheet = strip([enlarged(images.thumbnails[member], 64) for member in members])
        told = kinds_told(images.kinds[cluster.members].tolist())
        caption = f"Cluster {number}: the medoid and the members nearest to it, of {len(cluster)} images. {told}."
        shown[f"cluster {number}"] = Picture(png(sheet), caption)
    return shown
