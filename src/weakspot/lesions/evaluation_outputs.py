"""What the Finding of an evaluation holds: all methods compared on the scored lesions of labelled cases. Torch-free."""

from weakspot.core.figures import Bars, Curves
from weakspot.core.outputs import ArraySpec, Headline, Outputs, count, interval, number, optional, share, text

AREAS = {
    "area": number("area under the accuracy–confidence curve; ½ is chance", better="higher", optional=True),
    "best_baseline": text("the baseline with the largest area, chosen on the same cases", optional=True),
    "area_of_best_baseline": number("its area", optional=True),
    "difference": number("area of the method less that of the best baseline", better="higher", optional=True),
}
_RETENTION = {
    "precision_retention": number(
        "area under the error-retention curve of the lesions", better="higher", optional=True
    ),
    "precision_retention_random": number("the same in any order", optional=True),
    "precision_retention_best": number("the same in the best order", optional=True),
    "dice_retention": number(
        "area under the error-retention curve of the patients' Dice", better="higher", optional=True
    ),
    "dice_retention_random": number("the same in any order", optional=True),
    "dice_retention_best": number("the same in the best order", optional=True),
}
SENSITIVITIES = {
    f"sensitivity_{number_of}": share(f"true lesions found with {number_of} false positives a scan", optional=True)
    for number_of in (1, 2, 4)
}
EVALUATION = Outputs(
    summary={
        "true_positives": count("lesions that agree with the ground truth, over all folds"),
        "false_positives": count("lesions that do not, over all folds", better="lower"),
        "patients": count("patients evaluated"),
        "dice": number("mean Dice over the patients", better="higher"),
        **AREAS,
        **_RETENTION,
        **SENSITIVITIES,
    },
    columns={
        "method": text("the method; pcs_mean and pcs_logsum are of 1 − p, p the predicted confidence score"),
        "area": number("area under the accuracy–confidence curve; ½ is chance", better="higher"),
        **interval("the area"),
        "difference": number("area of the chosen method less this one's"),
        **interval("the difference", "difference"),
        "precision_retention": number(
            "mean precision of the patients' lesions, over all shares of most uncertain ones looked at",
            better="higher", optional=True,
        ),
        "spearman_with_size": number("Spearman's correlation with the size of the lesions"),
        **SENSITIVITIES,
        "area_*": number("area in one fold"),
    },
    arrays={
        "fold_true_positives": ArraySpec("true positives of each fold", ("fold",)),
        "fold_false_positives": ArraySpec("false positives of each fold", ("fold",)),
        "fold_dice": ArraySpec("Dice of each fold with its interval", ("fold", "end")),
        "curve_false_positives": ArraySpec("share of the false positives kept", ("point",)),
        "curve_true_positives": ArraySpec("share of the true positives kept", ("method", "point")),
        **optional(
            {
                "retained": ArraySpec("share of the lesions, or patients, left as they are", ("point",)),
                "precision_retained": ArraySpec("mean precision of the patients' lesions", ("method", "point")),
                "dice_retained": ArraySpec(
                    "mean Dice, patients in the order of structural uncertainty, in any and in the best order",
                    ("order", "point"),
                ),
            }
        ),
    },
    figures=(
        Bars(
            labels=("table.method",), values="table.area", low="table.low", high="table.high", readable=True,
            x_label="area",
            caption="How well each method separates false from true positives: area with interval; ½ is chance.",
        ),
        Curves(
            x="curve_false_positives", lines="curve_true_positives", rows="table.method",
            x_label="share of the false positives kept", y_label="share of the true ones kept",
            x_format="percent", y_format="percent",
            caption="The share of true and of false lesions that remains as more uncertain ones are removed.",
        ),
        Curves(
            x="retained", lines="precision_retained", rows="table.method",
            x_label="share of the lesions left as they are", y_label="mean precision",
            x_format="percent", y_format="percent",
            caption="Error retention: mean precision of the patients' lesions as the most uncertain are looked at and "
            "false ones dropped.",
        ),
    ),
    headlines=(
        Headline(
            "False positives are separated from true lesions with an area of {area}, where 0.5 is chance. The best "
            "baseline, {best_baseline}, chosen on the same cases, reaches {area_of_best_baseline}.",
            5,
        ),
    ),
)  # fmt: skip
