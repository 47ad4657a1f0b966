"""What the Findings of retraining hold: torch-free declarations."""

from collections.abc import Mapping
from dataclasses import replace

from weakspot.core.figures import Bars
from weakspot.core.outputs import (
    ArraySpec,
    Headline,
    Outputs,
    correct,
    count,
    interval,
    number,
    prediction,
    sample_id,
    share,
    target,
    text,
)

PREDICTIONS = Outputs(
    summary={
        "accuracy": share("share of the inputs predicted correctly", better="higher", mean_of="correct", optional=True),
        "error": number(
            "mean error of each sample's worst number or keypoint", better="lower", mean_of="error", optional=True
        ),
        "inputs": count("samples examined"),
    },
    columns={
        "id": sample_id(),
        "correct": correct(optional=True),
        "target": target("the label, by number", optional=True),
        "prediction": prediction("the predicted class, by number", optional=True),
        "error": number("error of the worst number or keypoint", better="lower", optional=True),
    },
)

COMPARED = Outputs(
    summary={
        "verdict": text('"better", "worse" or "no difference shown", by the interval of the difference'),
        "difference": number("accuracy after − accuracy before, paired", better="higher"),
        "accuracy_before": share("share of the inputs predicted correctly before", better="higher"),
        "accuracy_after": share("share of the inputs predicted correctly after", better="higher"),
        "fixed": count("inputs predicted incorrectly before and correctly after", better="higher"),
        "broken": count("inputs predicted correctly before and incorrectly after", better="lower"),
        "p_value": number("exact McNemar test of fixed against broken"),
        "inputs": count("samples examined"),
    },
    columns={
        "id": sample_id(),
        "change": text('"fixed", "broken" or "incorrect as before"'),
        "target": target("the label, by number"),
        "before": prediction("the class predicted before, by number"),
        "after": prediction("the class predicted after, by number"),
    },
)

_REPEATS = ("repeats", "samples")
_CHANGES = {
    "values": "table.difference",
    "low": "table.low",
    "high": "table.high",
    "marked": "interval",
    "x_label": "after − before",
}

RETRAINING = Outputs(
    summary={
        "verdict": text("the model retrained on the unsafe set, against the one before"),
        "difference": number("accuracy after − accuracy before, mean of the repeats", better="higher"),
        "before": share("accuracy before", better="higher"),
        "after": share("accuracy after, mean of the repeats", better="higher"),
        "after_*": share("accuracy after training on other images", better="higher", optional=True),
        "over_*": number("accuracy with the unsafe set − accuracy with other images", better="higher", optional=True),
        "verdict_*": text("the unsafe set, against other images", optional=True),
        "added": text("samples that each method trains on besides the training set"),
        "repeats": count("trainings of each method"),
        "inputs": count("test samples by which the models are compared"),
        "baselines": text("whether there is a baseline", optional=True),
    },
    columns={
        "method": text("what was labelled and added"),
        "repeat": text('the number of the repeat; "all" for the mean of all repeats'),
        "part": text("the part of the test set"),
        "images": count("test samples of this part"),
        "before": share("accuracy before", better="higher"),
        "after": share("accuracy after", better="higher"),
        "difference": number("after − before", better="higher"),
        **interval("the interval of the difference"),
        "verdict": text("what the interval allows to say; nothing of parts that were chosen by the answers before"),
        "fixed": number("samples predicted incorrectly before and correctly after", better="higher", optional=True),
        "broken": number("samples predicted correctly before and incorrectly after", better="lower", optional=True),
        "p_value": number("exact McNemar test of one repeat", optional=True),
    },
    arrays={
        "id": ArraySpec("the test samples", ("samples",)),
        "before": ArraySpec("whether each sample was predicted correctly before, or its error", ("samples",)),
        "after-*": ArraySpec("the same after each training of a method", _REPEATS),
    },
    figures=(
        Bars(
            labels=("table.method",),
            where={"table.repeat": "all", "table.part": "all"},
            caption="What retraining changes, by the images labelled, with intervals. Marked: beyond chance.",
            **_CHANGES,  # type: ignore[arg-type]
        ),
        Bars(
            labels=("table.part",),
            where={"table.repeat": "all", "table.method": None},
            caption="What retraining changes for each root cause, with intervals. Marked: beyond chance.",
            **_CHANGES,  # type: ignore[arg-type]
        ),
    ),
    headlines=(
        Headline("Retraining on the chosen images: {verdict}, {before} before and {after} after.", further=True),
    ),
)
"""Of models that predict classes or labels."""

_ERRORS = {
    "difference": number("mean error after − mean error before, mean of the repeats", better="lower"),
    "before": number("mean error before", better="lower"),
    "after": number("mean error after, mean of the repeats", better="lower"),
    "after_*": number("mean error after training on other images", better="lower", optional=True),
    "over_*": number("mean error with the unsafe set − mean error with other images", better="lower", optional=True),
}
RETRAINING_OF_NUMBERS = replace(
    RETRAINING,
    summary={**RETRAINING.summary, **_ERRORS},
    columns={**RETRAINING.columns, **{name: _ERRORS[name] for name in ("before", "after", "difference")}},
)
"""Of models that predict numbers or keypoints: errors take the place of accuracies."""

FINDINGS: Mapping[str, Outputs] = {"repair.predictions": PREDICTIONS, "repair.compared": COMPARED}
