"""What the Finding about common corruptions holds. Torch-free."""

from weakspot.core.figures import Curves, Matrix
from weakspot.core.outputs import (
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

_FAMILIES = {"noise": "noise", "blur": "blur", "weather": "weather", "digital": "digital processing"}
"""The families of corruptions, in words."""
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
        **{
            f"{family}_*": ArraySpec(f"share of incorrect predictions under one of {words}", ("severities",), True)
            for family, words in _FAMILIES.items()
        },
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
        *(
            Curves(
                x="severity",
                lines=f"{family}_*",
                prefix=f"{family}_",
                x_label="severity",
                y_label="share of incorrect predictions",
                y_format="percent",
                caption=f"Error by severity under {words}.",
            )
            for family, words in _FAMILIES.items()
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
            "Under common corruptions {corruption_error} of the predictions are incorrect, without them {clean_error}. "
            "The mean corruption error (mCE) is {mean_corruption_error}, where 1 is the baseline's; the share is "
            "largest under {worst_corruption}: {worst_corruption_error}.",
            rank=1,
            further=True,
        ),
        Headline(
            "Under common corruptions {corruption_error} of the predictions are incorrect, without them {clean_error}; "
            "the share is largest under {worst_corruption}: {worst_corruption_error}.",
            rank=2,
            further=True,
        ),
    ],
)
