"""What the Findings about accuracy from few labels hold. Torch-free."""

from weakspot.core.figures import Bars, Histogram
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    correct,
    count,
    interval,
    prediction,
    sample_id,
    share,
    text,
)

CONFIDENCE = "highest probability that the model gives to a class"
KNOWN_CONFIDENCE = Outputs(
    summary={
        "accuracy": share("share of the inputs predicted correctly", better="higher", mean_of="correct"),
        "average_confidence": share("mean of the highest probability", mean_of="confidence"),
        "inputs": count("labelled samples"),
    },
    columns={"id": sample_id(), "confidence": share(CONFIDENCE), "correct": correct()},
)
_NO_INTERVAL = "; no interval, as nobody has looked"
LABEL_PLAN = Outputs(
    summary={
        "to_label": count("inputs to label"),
        "average_confidence": share(f"accuracy by the mean confidence{_NO_INTERVAL}"),
        "thresholded_confidence": share(f"accuracy by average thresholded confidence{_NO_INTERVAL}", optional=True),
        "confidence_difference": share(f"accuracy by the difference of mean confidences{_NO_INTERVAL}", optional=True),
        "inputs": count("inputs whose accuracy is to be known"),
    },
    columns={
        "id": sample_id(),
        "prediction": prediction(),
        "confidence": share(CONFIDENCE),
        "stratum": count("group of inputs of like margin that it was drawn from"),
        "probability": share("probability with which it was drawn"),
    },
    arrays={
        "stratum_inputs": ArraySpec("inputs of each stratum", ("strata",)),
        "stratum_labels": ArraySpec("inputs to label of each stratum", ("strata",)),
        "classes": ArraySpec("names of the classes", ("classes",)),
        "task": ArraySpec("what a label is", ()),
        "outputs": ArraySpec("how many classes there are", ()),
        "thumbnails": ArraySpec(
            "small pictures of the inputs to label", ("inputs", "height", "width", "channels"), optional=True
        ),
    },
    figures=[
        Histogram(
            values="table.confidence",
            x_label=CONFIDENCE,
            caption="The confidence of the inputs to label: unsure ones are drawn more often, and count for less each.",
        )
    ],
    advice=[
        Advice(
            "Label the {to_label} inputs, in this order, in a file or on the viewer's page Label, to know the accuracy "
            "on all of them.",
            command="weakspot classes label RUN --export labels.csv",
            rank=3,
        )
    ],
)
ESTIMATED_ACCURACY = Outputs(
    summary={
        "accuracy": share("share of all inputs predicted correctly, estimated from the labels", better="higher"),
        "labels": count("labels that it rests on"),
        "missing": count("inputs of the plan without a label"),
        "random_labels": count("labels of inputs drawn at random that would give as narrow an interval, about"),
        "average_confidence": share("what the mean confidence says, for comparison"),
        "inputs": count("inputs whose accuracy is estimated"),
        "assumes": text("what the interval rests on"),
    },
    columns={
        "stratum": count("group of inputs of like margin"),
        "inputs": count("its inputs"),
        "labels": count("its labels"),
        "accuracy": share("share of these labels that the model predicted", better="higher"),
        **interval("the accuracy of the stratum", unit="share"),
    },
    figures=[
        Bars(
            labels=("table.stratum",),
            label_text="stratum {}",
            values="table.accuracy",
            low="table.low",
            high="table.high",
            x_label="predicted correctly",
            format="percent",
            caption="Accuracy by stratum, the surest inputs first, with 95 % intervals of each alone.",
        )
    ],
    headlines=[
        Headline(
            "By {labels} labels, {accuracy} of the {inputs} inputs are predicted correctly.", rank=20, further=True
        )
    ],
)
