"""What the Finding of error slices holds: torch-free."""

from weakspot.core.figures import Bars
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    count,
    flag,
    interval,
    number,
    optional,
    share,
    text,
)

_IMAGES = ("images",)
_TRAITS = ("left out",)

ERROR_SLICES = Outputs(
    summary={
        "confirmed": count(
            "causes: rules on traits, labels or features that hold for unusually many errors in the held-out half too"
        ),
        "confusions": count("predicted classes with unusually many errors in the held-out half too"),
        "suspicions": count("rules that the held-out half did not confirm"),
        "explained_share": share("share of all errors that a confirmed rule holds for", optional=True),
        "errors": count("images that the model predicts incorrectly", better="lower"),
        "inputs": count("samples examined"),
        "set_share": share(
            "share of the inputs, those of the largest errors, that count as errors: set", optional=True
        ),
        "searched": count("traits that rules were sought in", optional=True),
        "views": text("what the model shows that was searched, and an embedding", optional=True),
        "doubtful_labels": count(
            "errors whose label may be wrong: of their ten nearest neighbours in the features nine carry the predicted "
            "label",
            optional=True,
        ),
        "left_out": count("traits that were left out, since they follow from the prediction or the label"),
        "agreement": number(
            "Cohen's kappa of labels and predictions: 0 as by chance, 1 always", better="higher", optional=True
        ),
        "agreement_near_chance": number("the same, where it is too low for causes to be sought", optional=True),
        "first": text("the confirmed cause that explains most errors", optional=True),
        "first_rule": text("its rule", optional=True),
        "first_confusion": text(
            "the confirmed confusion that explains most errors, where there is no cause", optional=True
        ),
        "first_suspicion": text("the first suspicion, where nothing is confirmed", optional=True),
    },
    columns=optional(
        {
            "slice": number("the rule's place in the list", role="code"),
            "status": text('"confirmed", or "suspicion" if the excess of errors was not confirmed'),
            "confirmed": flag("whether the rule is confirmed"),
            "kind": text(
                '"trait" for a rule on traits or labels, "features" for a region of features or of another view, '
                '"confusion" for a rule on the prediction'
            ),
            "rule": text("which images the rule holds for"),
            "summary": text("the rule with its error rates, in a sentence"),
            "images": count("images that the rule holds for"),
            "errors": count("errors among them", better="lower"),
            "explained": number("errors beyond the rate elsewhere, without images of earlier rules"),
            "error_rate": share("error rate where this and no earlier rule holds, confirming half", better="lower"),
            **interval("its 95 % interval", unit="share"),
            "elsewhere": share(
                "error rate where neither this nor an earlier rule holds, in the confirming half", better="lower"
            ),
            **interval("its 95 % interval", "elsewhere", unit="share"),
            "p_value": number("probability of so many errors by chance, corrected for the number of rules"),
            "confused": text("what was predicted in place of what, with counts"),
            "contrast": text(
                "in what the errors of the slice differ from correct images of the same classes, in words"
            ),
            "incorrect_examples": text("typical errors of the slice"),
            "correct_examples": text("images of the slice that are like them and predicted correctly"),
            "conditions": text("the rule as JSON, to be applied to other data"),
        }
    ),
    arrays=optional(
        {
            "image_id": ArraySpec("the images, in the order of their ids", _IMAGES),
            "image_slice": ArraySpec("first rule that holds for each image, from 1 on; 0: none", _IMAGES),
            "image_found_on": ArraySpec("whether rules were sought on it; the others confirm", _IMAGES),
            "measures": ArraySpec("what was measured of each image", ("images", "measures")),
            "measure_names": ArraySpec("names of the measures", ("measures",)),
            "regions": ArraySpec("names of the regions of features or other views, by their rank", ("regions",)),
            "region_offset": ArraySpec("what is taken from values · weights: the likeness of a region", ("regions",)),
            "region_weights-*": ArraySpec("weights of each region", ("values",)),
            "region_likeness": ArraySpec("likeness of each image to the errors of each region", ("images", "regions")),
            "embedding": ArraySpec("columns of the metadata that were taken for an embedding", ("names",)),
            "heat_layer": ArraySpec("layer whose heat maps were searched"),
            "doubtful_id": ArraySpec("errors whose label may be wrong, the clearest first", ("doubtful",)),
            "doubtful_kind": ArraySpec("label and prediction of each of them", ("doubtful",)),
            "left_out": ArraySpec("traits that were left out", _TRAITS),
            "left_out_why": ArraySpec("why each of them was", _TRAITS),
        }
    ),
    by_sample={"slice": ("image_id", "image_slice")},
    figures=(
        Bars(
            labels=("table.rule",),
            values="table.error_rate",
            low="table.low",
            high="table.high",
            marked="table.confirmed",
            x_label="error rate in the half that confirms",
            format="percent",
            caption="Error rate where each rule holds, with its 95 % interval. Marked rules are confirmed, the others "
            "are suspicions.",
        ),
    ),
    headlines=(
        Headline(
            "The model agrees with the labels hardly better than chance (kappa {agreement_near_chance}), so no cause "
            "of its errors is sought.",
            rank=-5,
        ),
        Headline("Rules for errors confirmed on held-out data: {confirmed}. The first: {first}.", rank=-4),
        Headline(
            "No cause of the {errors} errors is confirmed. A confusion is: {first_confusion}.",
            rank=-3,
        ),
        Headline(
            "No cause of the {errors} errors is confirmed. Suspicions: {suspicions}. The first: {first_suspicion}.",
            rank=-2,
        ),
        Headline(
            "No cause of the {errors} errors is confirmed: no rule over {searched} traits holds for unusually many of "
            "them.",
            rank=-1,
        ),
        Headline("What counts as an error is set here, not measured: the largest {set_share}.", further=True),
    ),
    advice=(
        Advice(
            "Check some of the labels of {doubtful_labels} errors: their neighbours among the model's features carry "
            "the predicted label. Their ids are in the array doubtful_id; most may well be right.",
            rank=3,
        ),
        Advice(
            "Collect or simulate new images of this kind: {first_rule}. Label them and train on them. Keep the test "
            "images in the test set, and do not train on them.",
        ),
        Advice(
            "Examine more labelled data to confirm or drop the suspicions ({suspicions}). Until then, do not treat "
            "them as causes.",
            rank=2,
        ),
    ),
)
