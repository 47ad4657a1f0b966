"""What the Finding of this room holds: torch-free declarations."""

from weakspot.core.figures import Bars, Histogram, ReliabilityCurve, Scatter
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    correct,
    count,
    number,
    optional,
    prediction,
    sample_id,
    share,
    target,
    text,
)
from weakspot.core.room import Room, ViewerPage

_BY_CLASS, _BY_CONFUSION, _BINS = ("classes",), ("confusions",), ("bins",)

_SUMMARY = optional(
    {
        "accuracy": share("share of the inputs predicted correctly", better="higher", mean_of="correct"),
        "errors": count("inputs predicted incorrectly", better="lower", counts="not correct"),
        "most_frequent": share("share of the inputs of the most frequent class: what always answering it would get"),
        "class_mean": share("mean over the classes of the share of their inputs predicted correctly", better="higher"),
        "worst_class": text("class that is most surely predicted badly: whose interval ends lowest"),
        "worst_class_accuracy": share("share of its inputs predicted correctly", better="higher"),
        "iou": share("IoU, mean over the classes and then over the inputs", better="higher", mean_of="iou"),
        "pixel_accuracy": share(
            "share of the positions predicted correctly, mean over the inputs",
            better="higher",
            mean_of="pixel_accuracy",
        ),
        "worst_class_iou": share(
            "its IoU over all positions; the interval holds for all classes at once", better="higher"
        ),
        "top5_accuracy": share("share of the inputs whose label is among the five highest outputs", better="higher"),
        "label_accuracy": share("share of single labels predicted correctly", better="higher"),
        "macro_f1": number("mean F1 of the labels", better="higher"),
        "calibration_error": share(
            "expected calibration error: mean difference of confidence and share correct over bins of confidence",
            better="lower",
        ),
        "mean_confidence": share("mean probability of the predicted class"),
        "overconfidence": number("mean confidence less accuracy: above 0 the model is surer than it is right"),
        "confident_errors": count("inputs predicted incorrectly with a confidence of 90 % or more", better="lower"),
        "mean_absolute_error": number("mean of |prediction − label|", better="lower"),
        "root_mean_squared_error": number("root of the mean of (prediction − label)²", better="lower"),
        "r_squared": number("R²: 1 is perfect, 0 is what always answering the labels' mean gets", better="higher"),
        "mean_distance": number("mean distance of a keypoint from its place", better="lower"),
        "largest_tenth": number("error that the largest tenth of the errors exceeds", better="lower"),
    }
)

PERFORMANCE = Outputs(
    summary={**_SUMMARY, "inputs": count("samples examined")},
    columns={
        "id": sample_id(),
        **optional(
            {
                "target": target("the label, by name"),
                "prediction": prediction("the model's prediction, by name"),
                "correct": correct(),
                "confidence": share("probability of the predicted class"),
                "error": number("mean of |prediction − label|, or the mean distance of the keypoints", better="lower"),
                "iou": share("mean IoU over the classes in the target or the prediction", better="higher"),
                "pixel_accuracy": share("share of the positions predicted correctly", better="higher"),
                "metadata.*": text("what came with the data", role="metadata"),
            }
        ),
    },
    arrays=optional(
        {
            "class_name": ArraySpec("classes or labels, the lowest upper end of an interval first", _BY_CLASS),
            "class_inputs": ArraySpec("inputs of each class", _BY_CLASS),
            "class_accuracy": ArraySpec("share of its inputs predicted correctly", _BY_CLASS),
            "class_low": ArraySpec("low end of its 95 % interval", _BY_CLASS),
            "class_high": ArraySpec("high end of its 95 % interval", _BY_CLASS),
            "class_iou": ArraySpec("IoU of each class over all positions of all inputs", _BY_CLASS),
            "class_precision": ArraySpec("share of what is predicted as it that is of it", _BY_CLASS),
            "label_f1": ArraySpec("F1 of each label", _BY_CLASS),
            "confusion": ArraySpec('"label → prediction", the most frequent first', _BY_CONFUSION),
            "confusion_inputs": ArraySpec("inputs confused so", _BY_CONFUSION),
            "confusion_target": ArraySpec("the label of each confusion", _BY_CONFUSION),
            "confusion_prediction": ArraySpec("the prediction of each confusion", _BY_CONFUSION),
            "confidence_mean": ArraySpec("mean confidence in each bin", _BINS),
            "confidence_correct": ArraySpec("share correct in each bin", _BINS),
            "confidence_inputs": ArraySpec("inputs in each bin", _BINS),
            "confident_error_id": ArraySpec("the errors of highest confidence, the highest first", ("errors",)),
            "said": ArraySpec("prediction of the first output", ("samples",)),
            "true": ArraySpec("label of the first output", ("samples",)),
        }
    ),
    pictures="the errors of highest confidence, and errors of the most frequent confusions",
    figures=(
        Bars(
            labels=["class_name"],
            values="class_accuracy",
            low="class_low",
            high="class_high",
            most=20,
            x_label="share of its inputs predicted correctly",
            format="percent",
            caption="Every class, the lowest upper end of an interval first; the first 20 where there are more. Each "
            "interval holds for its class alone; that of the worst class above for all classes at once.",
        ),
        Bars(
            labels=["class_name"],
            values="class_iou",
            low="class_low",
            high="class_high",
            most=20,
            x_label="IoU over all positions",
            format="percent",
            caption="IoU of every class, the lowest upper end of an interval first; the first 20 where there are more. "
            "Each interval holds for its class alone; that of the worst class above for all classes at once.",
        ),
        Bars(
            labels=["confusion"],
            values="confusion_inputs",
            most=12,
            x_label="inputs",
            caption="Confusions, label → prediction, the most frequent first; at most 12.",
        ),
        ReliabilityCurve(
            predicted="confidence_mean",
            observed="confidence_correct",
            counts="confidence_inputs",
            caption="Reliability: share correct by confidence. Marked: bins whose interval excludes the confidence.",
        ),
        Bars(
            labels=["class_name"],
            values="label_f1",
            most=20,
            x_label="F1",
            format="percent",
            caption="F1 of every label, the lowest first; the first 20 where there are more.",
        ),
        Scatter(
            x="true",
            y="said",
            x_label="label",
            y_label="prediction",
            caption="Prediction against label; a perfect model's points lie on the diagonal.",
        ),
        Histogram(values="table.error", x_label="error", caption="How large the errors are."),
        Histogram(values="table.iou", x_label="mean IoU over the classes", caption="Mean IoU of every input."),
    ),
    headlines=(
        Headline(
            "{accuracy} of the {inputs} inputs are predicted correctly, {errors} are not; always answering the most "
            "frequent class would be correct for {most_frequent}. The class predicted worst is “{worst_class}”: "
            "{worst_class_accuracy} correct; this interval holds for all classes at once."
        ),
        Headline(
            "{accuracy} of the {inputs} inputs have all labels right; of single labels {label_accuracy} are right. The "
            "mean F1 of the labels is {macro_f1}.",
            rank=1,
        ),
        Headline(
            "The mean absolute error is {mean_absolute_error}, the root mean squared error {root_mean_squared_error}. "
            "R² is {r_squared}: 1 would be perfect, 0 is what always answering the mean of the labels gets.",
            rank=2,
        ),
        Headline(
            "Keypoints lie {mean_distance} from their place on average; a tenth of the inputs is off by more than "
            "{largest_tenth}.",
            rank=3,
        ),
        Headline(
            "The mean IoU is {iou}, and {pixel_accuracy} of the positions of an input are predicted correctly on "
            "average. The class segmented worst is “{worst_class}”: IoU {worst_class_iou} over all positions; this "
            "interval holds for all classes at once.",
            rank=4,
        ),
        Headline("Without labels nobody can say. The mean confidence is {mean_confidence}.", rank=8),
        Headline("Without labels nobody can say; {inputs} inputs were predicted.", rank=9),
        Headline(
            "The mean confidence is {mean_confidence}, the expected calibration error {calibration_error}; "
            "{confident_errors} of the errors are made with a confidence of 90 % or more.",
            further=True,
        ),
    ),
    advice=(
        Advice(
            "Look at the {confident_errors} errors with a confidence of 90 % or more: some may be wrong labels.", rank=1
        ),
    ),
)

ROOM = Room(
    "performance",
    findings={"performance.performance": PERFORMANCE},
    lead=True,
    pages=(
        ViewerPage(
            "performance",
            "Performance",
            "Every class, every confusion and the surest errors, each with its samples.",
            ("performance.performance",),
        ),
    ),
)
