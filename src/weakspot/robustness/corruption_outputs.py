"""What the Finding about common corruptions holds. Torch-free."""

from weakspot.core.figures import Curves, Matrix
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    correct,
    count,
    number,
    prediction,
    sample_id,
    share,
    target,
    text,
)

_SUMMARY = {
    "corruption_error": share(
        "share of incorrect predictions, mean over corruptions and severities",
        better="lower",
        mean_of="corruption_error",
    ),
    "clean_error": share("share of incorrect predictions without any corruption", better="lower"),
    "error_rise": number(
        "mean over corruptions and severities of the error less that without corruption; not divided by a baseline's",
        better="lower",
    ),
    "mean_corruption_error": number(
        "mCE: the mean over corruptions of the error divided by the baseline's", better="lower", optional=True
    ),
    "relative_mean_corruption_error": number(
        "relative mCE: the same of what corruption adds to the error", better="lower", optional=True
    ),
    "worst_corruption": text("the corruption with the largest error"),
    "worst_corruption_error": share("its error", better="lower"),
    "broken_class": text("of all pairs of class and corruption, the class whose error rises most", optional=True),
    "broken_by": text("the corruption of that pair", optional=True),
    "broken_class_error": share(
        "the error of that pair; the interval allows for the choice among all pairs", better="lower", optional=True
    ),
    "error_*": share("share of incorrect predictions under this corruption, mean over severities", better="lower"),
    "kinds": count("corruptions examined"),
    "severities": count("severities examined"),
    "inputs": count("samples examined"),
}

COMMON_CORRUPTIONS = Outputs(
    summary=_SUMMARY,
    columns={
        "id": sample_id(),
        "corruption_error": share("share of the corrupted versions that are predicted incorrectly", better="lower"),
        "error_*": share("the same under this corruption, over its severities", better="lower"),
        "correct": correct("whether the original is predicted correctly"),
        "target": target(),
        "prediction": prediction(),
    },
    arrays={
        "severity": ArraySpec("the severities", ("severities",)),
        "kind": ArraySpec("names of the corruptions", ("kinds",)),
        "severity_name": ArraySpec("names of the severities", ("severities",)),
        "error": ArraySpec("share of incorrect predictions", ("kinds", "severities")),
        "error_low": ArraySpec("low end of its interval", ("kinds", "severities")),
        "error_high": ArraySpec("high end of its interval", ("kinds", "severities")),
        "class": ArraySpec("names of the classes", ("classes",), optional=True),
        "class_inputs": ArraySpec("inputs of each class", ("classes",), optional=True),
        "class_error": ArraySpec("error of each class under each corruption", ("classes", "kinds"), optional=True),
        "class_rise": ArraySpec("what the corruption adds to the error of the class", ("classes", "kinds"), True),
    },
    figures=[
        Matrix(
            values="error",
            rows="kind",
            columns="severity_name",
            format="percent",
            caption="Share of incorrect predictions under each corruption, by severity.",
        ),
        Curves(
            x="severity",
            lines="error",
            rows="kind",
            x_label="severity",
            y_label="share of incorrect predictions",
            y_format="percent",
            caption="Error by severity, a line for each corruption.",
        ),
        Matrix(
            values="class_rise",
            rows="class",
            columns="kind",
            format="percent",
            caption="Which corruption breaks which class: what the corruption adds to the error of the class.",
        ),
    ],
    headlines=[
        Headline(
            "Under common corruptions {corruption_error} of the predictions are incorrect, without them {clean_error}; "
            "most are under {worst_corruption}: {worst_corruption_error}.",
            rank=2,
            further=True,
        )
    ],
    advice=[
        Advice(
            "Train with {worst_corruption}, or with noise and blur of your own (data augmentation), and examine again; "
            "do not train on the corruptions that you report.",
            rank=4,
        )
    ],
)
