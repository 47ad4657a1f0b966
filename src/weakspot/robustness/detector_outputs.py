"""What the Findings about detectors of weak inputs hold: numbers, columns, figures and sentences. Torch-free."""

from weakspot.core.figures import Bars, ReliabilityCurve
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Better,
    Headline,
    Outputs,
    ValueSpec,
    count,
    flag,
    interval,
    number,
    optional,
    share,
    text,
)
from weakspot.robustness.finding_outputs import INPUTS, WEAK_SENTENCE, WEAK_SHARE

DETECTORS = {
    "white_box": "DeepRobust-W, a network on the features of the input",
    "black_box": "DeepRobust-B, Simpson's diversity of the predictions for the queries",
    "queries": "a network on the predictions for the queries",
    "together": "a network on the features and on the predictions for the queries",
}
"""The detectors of weak inputs, in words."""
METHODS = {
    **DETECTORS,
    "top1": "flagging inputs whose highest probability is below the threshold",
    "max_softmax": "flagging by the highest probability, with a score threshold from training data",
    "random": "flagging as many inputs as the detector does, at random",
    "flag_all": "flagging every input",
}
"""The detectors and the baselines that they are compared with, in words."""
_METRICS = {
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "false_alarms": "false alarms, the share of the strong inputs that are flagged",
    "average_precision": "average precision",
    "auroc": "AUROC",
}


def _detection_summary(inputs: str, weak_share: str) -> dict[str, ValueSpec]:
    """The numbers of a Finding that says how well detectors find weak inputs."""
    f1 = {
        f"{name}_f1": number(f"F1 of {words}", better="higher" if name in DETECTORS else None, optional=True)
        for name, words in METHODS.items()
    }
    ranking = {
        f"{name}_average_precision": number(f"average precision of {words}", better="higher", optional=True)
        for name, words in DETECTORS.items()
    }
    return {
        "weak_share": share(weak_share, better="lower"),
        **f1,
        **ranking,
        "detector": text("why there is no detector", optional=True),
        "inputs": count(inputs),
    }


def _detection_columns() -> dict[str, ValueSpec]:
    """A row per detector and baseline; no table where nothing could be learnt."""
    columns: dict[str, ValueSpec] = {
        "method": text("the detector or baseline"),
        "about": text("the same in words"),
        "weak_share": share(WEAK_SHARE),
        "flagged_share": share("share of the inputs that it flags as weak"),
    }
    for name, words in _METRICS.items():
        better: Better = "lower" if name == "false_alarms" else "higher"
        columns |= {name: number(words, better=better), **interval(f"the interval of {words}", name)}
    columns |= {
        "brier": number("Brier score of its probabilities", better="lower"),
        "calibration_error": number("expected calibration error of its probabilities", better="lower"),
    }
    return optional(columns)


_RELIABILITY = {
    "*_reliability": ArraySpec(
        "predicted probability, observed frequency and number of inputs of each bin, by detector",
        ("curve", "bins"),
        optional=True,
    )
}
_DETECTION_FIGURES = (
    Bars(
        labels=("table.method",),
        values="table.f1",
        low="table.f1_low",
        high="table.f1_high",
        x_label="F1",
        readable=True,
        caption="F1 of every detector and baseline, with 95 % intervals. F1 depends on the share of weak inputs: "
        "compare with flagging every input.",
    ),
    ReliabilityCurve(
        curves="*_reliability",
        caption="Reliability: the predicted probability of being weak, and the share of such inputs that are weak.",
    ),
)
WEAK_DETECTOR = Outputs(
    summary=_detection_summary("training inputs used", "share of the training inputs that are weak"),
    columns=_detection_columns(),
    arrays={
        "*_centre": ArraySpec("mean of each feature", ("features",), optional=True),
        "*_scale": ArraySpec("standard deviation of each feature", ("features",), optional=True),
        "*_weights_*": ArraySpec("weights of a layer of the networks", ("folds", "units in", "units out"), True),
        "*_biases_*": ArraySpec("biases of a layer of the networks", ("folds", "one", "units out"), optional=True),
        "*_calibration": ArraySpec("slope and offset of Platt scaling, and the threshold", ("values",), optional=True),
        "*_threshold": ArraySpec("score threshold", optional=True),
        "concentration_odds": ArraySpec("slope and offset from −λ to the log-odds of being weak", ("values",), True),
        "mean_squared_error": ArraySpec("mean squared error of the training inputs", optional=True),
        "input_shape": ArraySpec("shape of one input", ("axes",), optional=True),
        **_RELIABILITY,
    },
    figures=_DETECTION_FIGURES,
)
DETECTOR_EVALUATION = Outputs(
    summary=_detection_summary("samples examined", WEAK_SHARE),
    columns=_detection_columns(),
    arrays=_RELIABILITY,
    figures=_DETECTION_FIGURES,
    headlines=[Headline(WEAK_SENTENCE, rank=2)],
)
WEAK_INPUTS = Outputs(
    summary={
        "flagged_share": share("share of the inputs flagged as weak", optional=True),
        "selected": count("inputs listed, those most likely weak first", optional=True),
        "detector": text("why there is no detector", optional=True),
        "inputs": INPUTS,
    },
    columns={
        "id": ValueSpec("the sample", "text", role="id", optional=True),
        "probability": share("probability that the input is weak, from the best detector", optional=True),
        "flagged": flag("whether the best detector flags the input as weak", optional=True),
        **{
            name: share(f"probability that the input is weak, from {words}", optional=True)
            for name, words in DETECTORS.items()
            if name != "black_box"
        },
        "concentration": number("Simpson's λ of the predictions for the queries; 1 where all agree", optional=True),
        "confidence": share("highest probability that the model gives to a class", optional=True),
    },
    headlines=[Headline("A detector, without labels, flags {flagged_share} of the inputs as weak.", rank=3)],
    advice=[
        Advice(
            "Label the {selected} inputs that are most likely weak. Train on them only if they are no test inputs.",
            rank=4,
        )
    ],
)
