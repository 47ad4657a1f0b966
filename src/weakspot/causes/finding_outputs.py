"""What each Finding of this room holds: torch-free declarations."""

from weakspot.core.figures import Bars, Curves
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    correct,
    count,
    flag,
    interval,
    number,
    optional,
    prediction,
    sample_id,
    share,
    target,
    text,
)

_IMAGES = ("images",)
_CHOSEN_IMAGES = {
    "image_id": ArraySpec("the images, in the order of their ids", _IMAGES),
    "image_cluster": ArraySpec("the cluster of each image from 1 on; 0 for none", _IMAGES),
}

ERRORS = Outputs(
    summary={
        "errors": count(
            "error-inducing images: those that the model predicts incorrectly", better="lower", counts="not correct"
        ),
        "error_share": share(
            "share of the images that the model predicts incorrectly", better="lower", mean_of="not correct"
        ),
        "threshold": number("error above which a prediction counts as incorrect", optional=True),
        "set_share": share(
            "share of the images that counts as incorrect by the rule: set, not measured", optional=True
        ),
        "inputs": count("samples examined"),
    },
    columns={
        "id": sample_id(),
        "correct": correct(),
        "kind": text(
            "what was predicted in place of what, in the most positions of a segmentation, or the worst number or "
            "keypoint; empty where correct"
        ),
        "target": target("the label, by name", optional=True),
        "prediction": prediction("the model's prediction, by name", optional=True),
        "error": number(
            "error of the worst number or keypoint, or 1 − the mean IoU of a segmentation",
            better="lower",
            optional=True,
        ),
        "metadata.*": text("what came with the data", role="metadata", optional=True),
    },
    arrays={
        "prediction": ArraySpec("the predicted numbers", ("samples", "outputs"), optional=True),
        "target": ArraySpec("the true numbers", ("samples", "outputs"), optional=True),
    },
    headlines=(
        Headline(
            "The {errors} images of the largest errors, above {threshold}, are looked at: {set_share} of {inputs}, "
            "which is set and not measured.",
            rank=1,
        ),
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
        "sketch_error": number(
            "relative error of the lengths of the layer's heat maps that are kept as sketches",
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
        "relevance_problem": text("what is wrong with the relevance, and what to use instead", optional=True),
        "agreement_near_chance": number(
            "Cohen's kappa of labels and predictions, where it is too low for causes to be sought", optional=True
        ),
    },
    columns=optional(
        {
            "cluster": number("the cluster's number; the largest cluster is 1", role="code"),
            "images": count("error-inducing images in the cluster"),
            "share": share("their share of all error-inducing images"),
            **interval("the share's 95 % interval", unit="share"),
            "errors": text("the kinds of error with their counts"),
            "medoid": text("the image in the middle of the cluster"),
            "spread": number("mean distance between two images of the cluster"),
            "stability": number("how well the cluster comes back when the images are resampled, 0 to 1"),
            "stable": flag("whether the stability reaches the option `stable`"),
            "nearest": text("the images nearest to the medoid"),
            "shared": text("what the images of the cluster share"),
        }
    ),
    arrays=optional(
        {
            **_CHOSEN_IMAGES,
            "image_distance": ArraySpec("distance from the medoid of its cluster", _IMAGES),
            "image_kind": ArraySpec("the kind of error of each image", _IMAGES),
            "image_place": ArraySpec("the row of each image in `parameters`", _IMAGES),
            "thumbnails": ArraySpec("a small picture of each", ("images", "height", "width", "channels")),
            "heat_pictures": ArraySpec("relevance of each pixel", ("images", "height", "width")),
            "landmarks": ArraySpec("the images between which distances are known", ("landmarks",)),
            "layers": ArraySpec("the layers that were compared", ("layers",)),
            "left_out": ArraySpec("the layers that were not compared", ("layers left out",)),
            "left_out_why": ArraySpec("why each of them was not compared", ("layers left out",)),
            "method": ArraySpec("how relevance was computed"),
            "positions": ArraySpec("positions that a side of a heat map has at most; 0 for no limit"),
            "unit_length": ArraySpec("whether heat maps were scaled to length 1"),
            "sketch": ArraySpec("values of a sketch of a large heat map; 0 for whole heat maps"),
            "sketch_errors": ArraySpec("relative error of the lengths of each layer's sketches", ("layers",)),
            "distances-*": ArraySpec("distances between the heat maps of a layer, condensed", ("pairs",)),
            "heat_maps-*": ArraySpec("heat maps of a layer; the first axis counts images"),
            "heat_map_scale-*": ArraySpec("factor of each heat map of a layer", _IMAGES),
            "best_layer": ArraySpec("number of the layer whose clusters these are"),
            "layer_score": ArraySpec("score of each layer; lower is better", ("layers",)),
            "layer_labels": ArraySpec("cluster of each landmark, from 0 on", ("layers", "landmarks")),
            "layer_clusters": ArraySpec("number of clusters of each layer", ("layers",)),
            "score_clusters": ArraySpec("the numbers of clusters that were tried", ("trials",)),
            "score": ArraySpec("score of each number of clusters, by layer", ("layers", "trials")),
            "parameter_names": ArraySpec("names of the parameters", ("parameters",)),
            "parameter_kinds": ArraySpec('"number", "angle" or "category"', ("parameters",)),
            "parameters": ArraySpec("parameters of every test image", ("test images", "parameters")),
            "categories-*": ArraySpec("names of the categories of a parameter", ("categories",)),
            "trait_reduction": ArraySpec(
                "1 − variance in the cluster ÷ variance in the test set", ("clusters", "parameters")
            ),
            "trait_typical": ArraySpec("mean, or most frequent category", ("clusters", "parameters")),
            "trait_chance": ArraySpec("p-value of the reduction", ("clusters", "parameters")),
            "trait_shared": ArraySpec("whether the images share it", ("clusters", "parameters")),
        }
    ),
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
            verbatim=True,
            x_label="number of clusters (logarithmic)",
            y_label="score (lower is better)",
            log_x=True,
            caption="Score over the number of clusters, by layer. The number is chosen where the curve bends.",
        ),
    ),
    headlines=(
        Headline("Do not rely on these heat maps: {relevance_problem}.", further=True),
        Headline(
            "The model agrees with the labels hardly better than chance (kappa {agreement_near_chance}). The "
            "{clusters} clusters of similar heat maps say nothing of causes.",
            rank=-1,
        ),
        Headline(
            "{errors} errors fall into {clusters} clusters of similar heat maps. A cluster may have several causes, "
            "and a cause several clusters. {stable_clusters} of them come back when the images are resampled, which "
            "does not mean one cause. Look at {images_to_inspect} images to see what they share."
        ),
        Headline(
            "{errors} errors fall into {clusters} clusters of similar heat maps. A cluster may have several causes, "
            "and a cause several clusters. Look at {images_to_inspect} images to see what they share.",
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
        "held": count("unlabelled images that the rule of a confirmed cause holds for", optional=True),
        "rules_not_asked": count(
            "confirmed rules that cannot be asked of these data: about the true class, or metadata that are not there",
            optional=True,
        ),
        "one_class_clusters": count("clusters whose chosen images all have one class", better="lower", optional=True),
        "relevance_problem": text("what is wrong with the relevance, and what to use instead", optional=True),
    },
    columns=optional(
        {
            "id": sample_id(),
            "cluster": number("root-cause cluster of the nearest error; or the cause whose rule holds", role="code"),
            "distance": number("distance from the heat map of the nearest error; or the model's confidence, by rules"),
            "prediction": prediction("the model's prediction, in the form of a label"),
        }
    ),
    arrays=optional(
        {
            **_CHOSEN_IMAGES,
            "image_distance": ArraySpec("distance from the nearest error; or the model's confidence", _IMAGES),
            "chosen_by": ArraySpec('what chose them, where not heat maps: "rules", "least confident", "random"'),
            "thumbnails": ArraySpec("their small pictures", ("chosen", "height", "width", "channels")),
            "task": ArraySpec("the model's task: it says what a label may be"),
            "outputs": ArraySpec("how many numbers the model predicts"),
            "classes": ArraySpec("names of the classes", ("classes",)),
        }
    ),
    headlines=(Headline("The images to label may be the wrong ones: {relevance_problem}.", further=True),),
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
        "unusable": count(
            "images that were looked at and cannot be labelled; nothing is trained on them", optional=True
        ),
        "earlier": count("labelled images that are no longer in the unsafe set; they are kept", optional=True),
    },
    columns={
        "id": sample_id(),
        "cluster": number("root-cause cluster; 0 for images no longer in the unsafe set", role="code"),
        "label": target('the label, "unusable" where none can be given; empty where there is none yet'),
    },
)
