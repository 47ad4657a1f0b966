"""What each Finding of this room holds: torch-free declarations."""

from dataclasses import replace

from weakspot.core.figures import Bars, Curves, Matrix
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    correct,
    count,
    flag,
    interval_end,
    number,
    prediction,
    sample_id,
    share,
    target,
    text,
)

_IMAGES = ("images",)
_CHOSEN_IMAGES = {
    "image_id": ArraySpec("the images, in the order of their ids", _IMAGES, optional=True),
    "image_cluster": ArraySpec("the cluster of each image from 1 on; 0 for none", _IMAGES, optional=True),
}

ERRORS = Outputs(
    summary={
        "errors": count("error-inducing images: those that the model predicts incorrectly", better="lower"),
        "error_share": share(
            "share of the images that the model predicts incorrectly", better="lower", mean_of="not correct"
        ),
        "threshold": number("error above which a prediction counts as incorrect", optional=True),
        "inputs": count("samples examined"),
    },
    columns={
        "id": sample_id(),
        "correct": correct(),
        "kind": text("what was predicted in place of what, or the worst number or keypoint; empty where correct"),
        "target": target("the label, by name", optional=True),
        "prediction": prediction("the model's prediction, by name", optional=True),
        "error": number("error of the worst number or keypoint", better="lower", optional=True),
        "metadata.*": text("what came with the data", role="metadata", optional=True),
    },
    arrays={
        "prediction": ArraySpec("the predicted numbers", ("samples", "outputs"), optional=True),
        "target": ArraySpec("the true numbers", ("samples", "outputs"), optional=True),
    },
    headlines=(
        Headline("{errors} of {inputs} images have an error above {threshold}.", rank=2),
        Headline("{error_share} of the images are predicted incorrectly, {errors} in all.", rank=3),
    ),
)

ROOT_CAUSES = Outputs(
    summary={
        "clusters": count("root-cause clusters: two or more error-inducing images with similar heat maps"),
        "stable_clusters": count("clusters that come back when the images are resampled", optional=True),
        "alone": count("images whose heat map is similar to no other", optional=True),
        "layer": text("layer whose heat maps give the clusters", optional=True),
        "layer_score": number(
            "mean distance within clusters, divided by that between any two images and by the number of clusters",
            better="lower",
            optional=True,
        ),
        "layers_left_out": count("layers that were not compared", optional=True),
        "images_to_inspect": count("images that a person should look at, a few of each cluster", optional=True),
        "share_to_inspect": share("these images as a share of all error-inducing images", optional=True),
        "errors": count("error-inducing images", better="lower"),
        "clustered": count("images that were clustered; the others joined the nearest cluster", optional=True),
        "layers": count("layers that would have been compared", optional=True),
        "explained_clusters": share("clusters whose images share a parameter, beyond chance", optional=True),
        "reduced_clusters": share("the same, without the test against chance", optional=True),
    },
    columns={
        "cluster": number("the cluster's number; the largest cluster is 1", role="code", optional=True),
        "images": count("error-inducing images in the cluster", optional=True),
        "share": share("their share of all error-inducing images", optional=True),
        "low": interval_end("low end of the share's 95 % interval", unit="share", optional=True),
        "high": interval_end("high end of the share's 95 % interval", unit="share", optional=True),
        "errors": text("the kinds of error with their counts", optional=True),
        "medoid": text("the image in the middle of the cluster", optional=True),
        "spread": number("mean distance between two images of the cluster", optional=True),
        "stability": number("how well the cluster comes back when the images are resampled, 0 to 1", optional=True),
        "stable": flag("whether the stability reaches the option `stable`", optional=True),
        "nearest": text("the images nearest to the medoid", optional=True),
        "shared": text("what the images of the cluster share", optional=True),
    },
    arrays={
        **_CHOSEN_IMAGES,
        "image_distance": ArraySpec("distance from the medoid of its cluster", _IMAGES, optional=True),
        "image_kind": ArraySpec("the kind of error of each image", _IMAGES, optional=True),
        "image_place": ArraySpec("the row of each image in `parameters`", _IMAGES, optional=True),
        "thumbnails": ArraySpec("a small picture of each", ("images", "height", "width", "channels"), optional=True),
        "heat_pictures": ArraySpec("relevance of each pixel", ("images", "height", "width"), optional=True),
        "landmarks": ArraySpec("the images between which distances are known", ("landmarks",), optional=True),
        "layers": ArraySpec("the layers that were compared", ("layers",), optional=True),
        "left_out": ArraySpec("the layers that were not compared", ("layers left out",), optional=True),
        "left_out_why": ArraySpec("why each of them was not compared", ("layers left out",), optional=True),
        "method": ArraySpec("how relevance was computed", optional=True),
        "positions": ArraySpec("positions that a side of a heat map has at most; 0 for no limit", optional=True),
        "unit_length": ArraySpec("whether heat maps were scaled to length 1", optional=True),
        "distances-*": ArraySpec("distances between the heat maps of a layer, condensed", ("pairs",), optional=True),
        "heat_maps-*": ArraySpec("heat maps of a layer; the first axis counts images", optional=True),
        "heat_map_scale-*": ArraySpec("factor of each heat map of a layer", _IMAGES, optional=True),
        "best_layer": ArraySpec("number of the layer whose clusters these are", optional=True),
        "layer_score": ArraySpec("score of each layer; lower is better", ("layers",), optional=True),
        "layer_labels": ArraySpec("cluster of each landmark, from 0 on", ("layers", "landmarks"), optional=True),
        "layer_clusters": ArraySpec("number of clusters of each layer", ("layers",), optional=True),
        "score_clusters": ArraySpec("the numbers of clusters that were tried", ("trials",), optional=True),
        "score": ArraySpec("score of each number of clusters, by layer", ("layers", "trials"), optional=True),
        "parameter_names": ArraySpec("names of the parameters", ("parameters",), optional=True),
        "parameter_kinds": ArraySpec('"number", "angle" or "category"', ("parameters",), optional=True),
        "parameters": ArraySpec("parameters of every test image", ("test images", "parameters"), optional=True),
        "categories-*": ArraySpec("names of the categories of a parameter", ("categories",), optional=True),
        "trait_reduction": ArraySpec(
            "1 − variance in the cluster ÷ variance in the test set", ("clusters", "parameters"), optional=True
        ),
        "trait_typical": ArraySpec("mean, or most frequent category", ("clusters", "parameters"), optional=True),
        "trait_chance": ArraySpec("p-value of the reduction", ("clusters", "parameters"), optional=True),
        "trait_shared": ArraySpec("whether the images share it", ("clusters", "parameters"), optional=True),
    },
    pictures="images of each cluster, the medoid first, and the mean heat map over the mean image",
    by_sample={"cluster": ("image_id", "image_cluster")},
    figures=(
        Bars(
            labels=("table.cluster",),
            label_text="cluster {}",
            values="table.images",
            x_label="error-inducing images",
            caption="How many error-inducing images each cluster holds.",
        ),
        Curves(
            x="score_clusters",
            lines="score",
            rows="layers",
            x_label="number of clusters (logarithmic)",
            y_label="score (lower is better)",
            log_x=True,
            caption="Score over the number of clusters, by layer. The number is chosen where the curve bends.",
        ),
        Matrix(
            values="trait_reduction",
            columns="parameter_names",
            row_text="cluster {}",
            clip=True,
            format="hundredths",
            caption="How much less a parameter varies inside a cluster than over all inputs, in percent. It is high "
            "where the images share it.",
        ),
    ),
    headlines=(
        Headline(
            "{errors} errors fall into {clusters} clusters of similar heat maps. Each cluster may have one cause. "
            "{stable_clusters} of them come back when the images are resampled. Look at {images_to_inspect} images to "
            "check."
        ),
        Headline(
            "{errors} errors fall into {clusters} clusters of similar heat maps. Each cluster may have one cause. Look "
            "at {images_to_inspect} images to check.",
            rank=1,
        ),
    ),
    advice=(
        Advice(
            "Look at {images_to_inspect} images, a few of each of the {clusters} clusters of errors. What they share "
            "may be the cause: collect or simulate new images of that kind for retraining. Keep these images in the "
            "test set, and do not train on them."
        ),
    ),
)

UNSAFE = Outputs(
    summary={
        "unsafe": count("images to label"),
        "budget": count("images that could be chosen", optional=True),
        "clusters": count("root-cause clusters that they belong to", optional=True),
        "near_share": share("share of the unlabelled images within the distance limit", optional=True),
        "limit": number("distance from the nearest error beyond which no image is chosen", optional=True),
        "inputs": count("unlabelled images examined", optional=True),
        "one_class_clusters": count("clusters whose chosen images all have one class", better="lower", optional=True),
    },
    columns={
        "id": replace(sample_id(), optional=True),
        "cluster": number("root-cause cluster of the nearest error", role="code", optional=True),
        "distance": number("distance from the heat map of the nearest error", optional=True),
        "prediction": prediction("the model's prediction, in the form of a label", optional=True),
    },
    arrays={
        **_CHOSEN_IMAGES,
        "image_distance": ArraySpec("distance from the nearest error", _IMAGES, optional=True),
        "thumbnails": ArraySpec("their small pictures", ("chosen", "height", "width", "channels"), optional=True),
        "task": ArraySpec("the model's task: it says what a label may be", optional=True),
        "outputs": ArraySpec("how many numbers the model predicts", optional=True),
        "classes": ArraySpec("names of the classes", ("classes",), optional=True),
    },
    advice=(
        Advice(
            "Label the {unsafe} images that were chosen from the unlabelled data, and retrain on them.",
            command="weakspot causes label RUN --export labels.csv",
            rank=1,
        ),
    ),
)

LABELS = Outputs(
    summary={
        "labelled": count("images of the unsafe set that have a label"),
        "missing": count("images of the unsafe set that have no label yet"),
        "earlier": count("labelled images that are no longer in the unsafe set; they are kept", optional=True),
    },
    columns={
        "id": sample_id(),
        "cluster": number("root-cause cluster; 0 for images no longer in the unsafe set", role="code"),
        "label": target("the label; empty where there is none yet"),
    },
)
