"""Summary, table, arrays and pictures of the Finding of root causes, from what the analysis gave."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weakspot.causes.analysis import LEFT_OUT, ErrorImages, RootCauseStudy
from weakspot.causes.blank_layers import listed
from weakspot.causes.cluster_pictures import SHOWN, cluster_picture
from weakspot.causes.clusters import ALONE
from weakspot.causes.common_traits import common_traits
from weakspot.causes.error_probes import kinds_text
from weakspot.causes.traits import LEAST, SharedTraits, border_text, shared_traits, traits_text
from weakspot.core.finding import Estimate, Picture
from weakspot.estimates import share_of
from weakspot.statistics import wilson_interval


def finding_parts(
    images: ErrorImages, study: RootCauseStudy, *, stable: float, pictures: int, seed: int = 0
) -> dict[str, Any]:
    """Summary, columns of the table, arrays and pictures."""
    traits = traits_of(images, study, seed=seed)
    shared = shared_words(images, study, traits)
    inspected = {} if traits is None else traits.arrays()
    return {
        "summary": {**summary(images, study, stable=stable), **({} if traits is None else trait_summary(traits))},
        "table": {**cluster_columns(images, study, stable=stable), "shared": np.array(shared, dtype=np.str_)},
        "arrays": {**image_arrays(images), **study_arrays(study), **inspected},
        "media": cluster_pictures(images, study, shared[:pictures]),
    }


def traits_of(images: ErrorImages, study: RootCauseStudy, *, seed: int = 0) -> SharedTraits | None:
    """What the images of each cluster share; None where nothing is known of the images besides."""
    if images.places is None or not len(images.parameters):
        return None
    return shared_traits(images.parameters, [images.places[each.members] for each in study.clusters], seed=seed)


def shared_words(images: ErrorImages, study: RootCauseStudy, traits: SharedTraits | None) -> list[str]:
    """What the images of each cluster share, or most of them have, and the two classes they lie between, in words."""
    lines = []
    known = [] if images.places is None else [images.places[each.members] for each in study.clusters]
    common = common_traits(images.parameters, known)
    for number, cluster in enumerate(study.clusters):
        border = border_text(images.kinds[cluster.members].tolist())
        parameters = ""
        if traits is not None:
            parameters = traits_text(traits, number, known[number], common[number])
        lines.append("; ".join(filter(None, [parameters, border])))
    return lines


def trait_summary(traits: SharedTraits) -> dict[str, Estimate]:
    """For how many clusters a parameter is found that their images share."""
    abouts = {
        "explained_clusters": (
            traits.explained,
            f"share of the clusters with a parameter whose variance falls by ≥ {LEAST:.0%}, beyond chance",
        ),
        "reduced_clusters": (traits.reduced, "the same, without the test against chance"),
    }
    return {name: share_of(which, about) for name, (which, about) in abouts.items()}


def summary(images: ErrorImages, study: RootCauseStudy, *, stable: float) -> dict[str, Estimate]:
    """The numbers of the Finding."""
    sizes = [len(cluster) for cluster in study.clusters]
    stabilities = [cluster.stability for cluster in study.clusters]
    measured = [value for value in stabilities if not np.isnan(value)]
    to_inspect = sum(min(size, SHOWN) for size in sizes)
    sample = {}
    if images.sampled:
        sample["clustered"] = Estimate(
            len(images.landmarks), about="images that were clustered; the others joined the nearest cluster"
        )
    return {
        "clusters": Estimate(
            len(sizes), about="root-cause clusters: two or more error-inducing images with similar heat maps"
        ),
        "stable_clusters": Estimate(
            sum(value >= stable for value in measured) if measured else None,
            about=f"clusters that come back when the images are resampled (stability ≥ {stable:g})",
        ),
        "alone": Estimate(int((study.numbers == ALONE).sum()), about="images whose heat map is similar to no other"),
        "layer": Estimate(images.layers[study.best], about="layer whose heat maps give the clusters"),
        "layer_score": Estimate(
            None if np.isnan(score := study.layers[study.best].score) else score,
            about="mean distance within clusters, divided by that between any two images and by the number of clusters",
        ),
        **_sketch_error(images, study.best),
        **layers_left_out(images),
        "images_to_inspect": Estimate(
            to_inspect, about=f"images that a person should look at, {SHOWN} of each cluster"
        ),
        "share_to_inspect": Estimate(
            to_inspect / len(images), about="these images as a share of all error-inducing images"
        ),
        "errors": Estimate(len(images), about="error-inducing images"),
        **sample,
    }


def _sketch_error(images: ErrorImages, layer: int) -> dict[str, Estimate]:
    """How far distances of sketches may be trusted; nothing where the layer's heat maps are whole."""
    if not images.sketch_errors or np.isnan(error := images.sketch_errors[layer]):
        return {}
    about = (
        f"relative error of the lengths of the layer's heat maps, which are kept as sketches of {images.sketch} values "
        "(root mean square); distances err about as much"
    )
    return {"sketch_error": Estimate(error, about=about)}


def no_errors(layers: int) -> dict[str, Estimate]:
    """The summary where nothing is predicted incorrectly."""
    return {
        "clusters": Estimate(0, about="root-cause clusters: there is no error-inducing image"),
        "errors": Estimate(0, about="error-inducing images"),
        "layers": Estimate(layers, about="layers that would have been compared"),
    }


def layers_left_out(images: ErrorImages) -> dict[str, Estimate]:
    """The layers that were not compared, and why; nothing where all were."""
    if not images.left_out:
        return {}
    about = f"layers that were not compared: {listed(images.left_out)}"
    return {"layers_left_out": Estimate(len(images.left_out), about=about)}


def nothing_to_compare(images: ErrorImages) -> dict[str, Estimate]:
    """The summary where no layer has heat maps that differ between images."""
    about = (
        "root-cause clusters: no layer has heat maps that differ between images; choose other layers or another method"
    )
    return {
        "clusters": Estimate(0, about=about),
        "errors": Estimate(len(images), about="error-inducing images"),
        **layers_left_out(images),
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
        "errors": np.array([kinds_text(images.kinds[each.members].tolist()) for each in clusters], dtype=np.str_),
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
    arrays |= {"method": np.array(images.method), "positions": np.array(images.positions or 0)}
    arrays |= {"unit_length": np.array(images.unit_length), "sketch": np.array(images.sketch or 0)}
    if images.sketch_errors:
        arrays["sketch_errors"] = np.array(images.sketch_errors)
    left_out = (list(images.left_out), list(images.left_out.values()))
    arrays |= {name: np.array(words, dtype=np.str_) for name, words in zip(LEFT_OUT, left_out, strict=True) if words}
    arrays |= images.parameters.arrays()
    shown = {"thumbnails": images.thumbnails, "heat_pictures": images.heat_pictures, "image_place": images.places}
    arrays |= {name: array for name, array in shown.items() if array is not None}
    arrays |= {f"distances-{number:02d}": distances for number, distances in enumerate(images.distances)}
    for number, rows in images.heat_maps.items():
        arrays |= {f"heat_maps-{number:02d}": rows.blocks[0], f"heat_map_scale-{number:02d}": rows.scale}
    return arrays


def study_arrays(study: RootCauseStudy) -> dict[str, np.ndarray]:
    """Each image's cluster, and how the layers and the numbers of clusters compare."""
    return {
        "image_cluster": study.numbers,
        "image_distance": study.medoid_distances,
        "best_layer": np.array(study.best),
        "layer_score": np.array([layer.score for layer in study.layers]),
        "layer_labels": np.stack([layer.labels for layer in study.layers]),
        "layer_clusters": np.array([layer.clusters for layer in study.layers]),
        "score_clusters": study.layers[study.best].counts,
        "score": np.stack([layer.scores for layer in study.layers]),
    }


def cluster_pictures(images: ErrorImages, study: RootCauseStudy, shared: Sequence[str]) -> dict[str, Picture]:
    """The medoid, its nearest members and the mean heat map of the largest clusters, each with a caption."""
    shown = {}
    for number, (cluster, words) in enumerate(zip(study.clusters, shared, strict=False), start=1):
        picture = cluster_picture(images, cluster)
        if picture is not None:
            kinds = kinds_text(images.kinds[cluster.members].tolist())
            heat = "" if images.heat_pictures is None else ", and the mean heat map over the mean image"
            about = f"the medoid and the members nearest to it, of {len(cluster)} images{heat}"
            caption = f"Cluster {number}: {about}. {kinds}." + (f" Shared: {words}." if words else "")
            shown[f"cluster {number}"] = Picture(picture, caption)
    return shown
