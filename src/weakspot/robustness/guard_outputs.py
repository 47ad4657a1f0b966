"""What the guard's Findings hold. Torch-free."""

from weakspot.core.figures import Bars, Curves, ReliabilityCurve
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    ValueSpec,
    count,
    flag,
    interval,
    number,
    optional,
    prediction,
    share,
    text,
)

SCORES = {
    "guard": "the guard: all scores below, weighed",
    "max_softmax": "the highest probability",
    "margin": "the highest less the second highest logit",
    "entropy": "the entropy of the probabilities",
    "energy": "the energy, −log Σ exp of the logits",
    "max_logit": "the highest logit",
    "mahalanobis": "the distance of the features from the nearest class",
    "knn": "the distance of the features to the k-th nearest reference input",
    "pixels": "how unusual brightness, contrast and roughness of the input are",
    "unusual": "the largest of the standardised distances",
}
"""Every score in words."""
_MEASURES = {
    "auroc": ("chance that an incorrect prediction scores higher than a correct one", "higher"),
    "average_precision": ("average precision for incorrect predictions", "higher"),
    "recall": ("share of the incorrect predictions that are flagged", "higher"),
    "precision": ("share of the flagged predictions that are incorrect", "higher"),
    "false_alarms": ("share of the correct predictions that are flagged", "lower"),
    "risk": ("share of the predictions not flagged that are incorrect", "lower"),
}
MEASURES = tuple(_MEASURES)
"""What is measured of every score."""
_NONE = {"guard": text("why there is no guard", optional=True)}


def _measured(where: str) -> dict[str, ValueSpec]:
    made = {name: share(f"{about}, {where}", better=better) for name, (about, better) in _MEASURES.items()}
    return optional(made)


def _rows() -> dict[str, ValueSpec]:
    columns: dict[str, ValueSpec] = {"method": text("the score"), "about": text("the same in words")}
    for name, (about, better) in _MEASURES.items():
        columns |= {name: share(about, better=better), **interval(about, name, unit="share")}
    return optional({**columns, "threshold": number("the score from which on a prediction is flagged")})


_AREAS = Bars(
    labels=("table.method",),
    values="table.auroc",
    low="table.auroc_low",
    high="table.auroc_high",
    x_label="AUROC for incorrect predictions",
    readable=True,
    caption="How well each score tells incorrect from correct predictions, with 95 % intervals. Confidence alone is "
    "max softmax.",
)
PREDICTION_GUARD = Outputs(
    summary={
        **_measured("on calibration inputs that the threshold was not chosen on"),
        "max_softmax_auroc": share("AUROC of the highest probability there", better="higher", optional=True),
        "errors": count("incorrect predictions among the inputs that thresholds are set on", optional=True),
        "inputs": count("calibration inputs"),
        **_NONE,
    },
    columns=_rows(),
    arrays={
        "guard_about": ArraySpec("settings and thresholds, as JSON", optional=True),
        "guard_*": ArraySpec("a fitted number or table of the guard", optional=True),
    },
    figures=[_AREAS],
)
GUARD_EVALUATION = Outputs(
    summary={
        **_measured("on the test data"),
        "max_softmax_auroc": share("AUROC of the highest probability, its rival", better="higher", optional=True),
        "accepted_share": share("share of the predictions that are not flagged", better="higher", optional=True),
        "promised": text("what the guard promises at its operating point", optional=True),
        "coverage": share("prediction sets that hold the true class", better="higher", optional=True),
        "promised_coverage": share("what the prediction sets promise", optional=True),
        "worst_class_coverage": share("the same for the class where it is lowest", better="higher", optional=True),
        "set_size": number("mean number of classes in a prediction set", better="lower", optional=True),
        "empty_sets": share("share of the inputs whose prediction set is empty", optional=True),
        "coverage_*": share("coverage of prediction sets of that kind", better="higher", optional=True),
        "set_size_*": number("mean size of prediction sets of that kind", better="lower", optional=True),
        "unfamiliar_share": share("share of the inputs that are called unfamiliar", better="lower", optional=True),
        "error_share": share("share of the predictions that are incorrect", better="lower"),
        "inputs": count("samples examined"),
        **_NONE,
    },
    columns=_rows(),
    arrays=optional(
        {
            "accepted": ArraySpec("share of the predictions accepted, the least suspicious first", ("points",)),
            "risk_*": ArraySpec("share of the accepted that are incorrect, by score", ("points",)),
            "guard_reliability": ArraySpec("predicted probability, observed share, inputs per bin", ("curve", "bins")),
        }
    ),
    figures=[
        _AREAS,
        Curves(
            x="accepted",
            lines="risk_*",
            prefix="risk_",
            x_label="share of the predictions accepted",
            y_label="incorrect among them",
            x_format="percent",
            y_format="percent",
            caption="What is gained by not answering: of the predictions that a score accepts, the share that is "
            "incorrect.",
        ),
        ReliabilityCurve(
            curves="*_reliability",
            caption="Reliability: the guard's probability of being wrong, and the share of such predictions that is.",
        ),
    ],
    headlines=[
        Headline(
            "The guard tells incorrect from correct predictions with an AUROC of {auroc}, confidence alone with one of "
            "{max_softmax_auroc}.",
            rank=4,
        ),
        Headline(
            "A guard that was set for {promised} flags {recall} of the incorrect and {false_alarms} of the correct "
            "predictions here; of those it lets pass, {risk} are incorrect.",
            rank=5,
            further=True,
        ),
        Headline(
            "Its prediction sets hold the true class of {coverage} of the inputs (promised: {promised_coverage}).",
            rank=6,
            further=True,
        ),
    ],
)
GUARDED_INPUTS = Outputs(
    summary={
        "trusted_share": share("share of the inputs that are neither flagged nor unfamiliar", optional=True),
        "flagged_share": share("share of the inputs whose prediction is flagged", better="lower", optional=True),
        "unfamiliar_share": share("inputs that are unlike the calibration data", better="lower", optional=True),
        "drifted": flag("whether the scores have changed since calibration", better="lower", optional=True),
        "alarm_rate": share("probability of such an alarm where nothing has changed, at most", optional=True),
        "first_alarm": text("the input at which the alarm came", optional=True),
        "doubtful": count("inputs that are flagged or unfamiliar", better="lower", optional=True),
        "inputs": count("samples examined"),
        **_NONE,
    },
    columns=optional(
        {
            "id": ValueSpec("the sample", "text", role="id"),
            "prediction": prediction(),
            "verdict": text("trusted, doubtful or unfamiliar"),
            "wrong_probability": share("probability that the prediction is incorrect", better="lower"),
            "flagged": flag("whether that reaches the operating point", better="lower"),
            "familiarity": share("share of the calibration inputs that are at least as unusual", better="higher"),
            "set_size": ValueSpec("classes in the prediction set", "count", better="lower"),
            "confidence": share("highest probability that the model gives to a class", better="higher"),
        }
    ),
    arrays=optional(
        {
            "drift_inputs": ArraySpec("number of inputs so far, in the order of time", ("points",)),
            "drift_evidence": ArraySpec("log₁₀ of the evidence that the scores have changed", ("points",)),
            "drift_alarm": ArraySpec("log₁₀ of the evidence at which there is an alarm", ("points",)),
            "drift_wrong": ArraySpec("mean probability of being wrong of the inputs up to the next point", ("points",)),
        }
    ),
    figures=[
        Curves(
            x="drift_inputs",
            lines={"evidence": "drift_evidence", "alarm": "drift_alarm"},
            x_label="inputs so far",
            y_label="log₁₀ of the evidence",
            y_format="decimal",
            caption="Drift: the evidence that the guard's scores are no longer like those of the calibration data.",
        ),
        Curves(
            x="drift_inputs",
            lines={"probability of being wrong": "drift_wrong"},
            x_label="inputs so far",
            y_label="mean",
            y_format="percent",
            caption="The mean probability of being wrong, from each point to the next.",
        ),
    ],
    headlines=[
        Headline(
            "The guard's scores have changed since it was calibrated (alarm at input {first_alarm}), so what it "
            "promises no longer holds. It trusts {trusted_share} of the inputs.",
            rank=6,
        ),
        Headline("Without labels, the guard trusts {trusted_share} of the inputs.", rank=7),
    ],
    advice=[
        Advice(
            "Calibrate the guard anew on labelled inputs like those of today: its scores have changed (alarm at input "
            "{first_alarm}).",
            rank=4,
        ),
        Advice("Look at the {doubtful} inputs that the guard does not trust, the most suspicious first.", rank=5),
    ],
)
