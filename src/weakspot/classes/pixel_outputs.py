"""What the Finding about the pixels of confused classes holds. Torch-free."""

from weakspot.core.figures import Bars, Matrix
from weakspot.core.outputs import ArraySpec, Headline, Outputs, count, share, text

PIXEL_CONFUSION = Outputs(
    summary={
        "mean_iou": share("mean IoU over the classes, mean over the inputs", better="higher"),
        "pixel_accuracy": share("share of the positions predicted correctly, mean over the inputs", better="higher"),
        "worst_class": text("the class with the lowest IoU over all positions"),
        "worst_iou": share("its IoU", better="higher"),
        "most_confused": text("the class that most of another class's positions are predicted as"),
        "most_confused_share": share("how many of them, of that class", better="lower"),
        "inputs": count("samples examined"),
    },
    columns={
        "class": text("the class of the target"),
        "predicted": text("another class, as which positions of it are predicted"),
        "share": share("share of the positions of the class that are predicted so", better="lower"),
        "positions": count("how many these are", better="lower"),
        "inputs": count("inputs in which that happens", better="lower"),
    },
    arrays={
        "class_name": ArraySpec("the classes", ("classes",)),
        "confusion": ArraySpec("positions of each class, by the class predicted", ("classes", "classes")),
        "confusion_share": ArraySpec("the same as shares of the class's positions", ("classes", "classes")),
        "class_iou": ArraySpec("IoU of each class over all positions", ("classes",)),
        "class_recall": ArraySpec("share of each class's positions that are predicted as it", ("classes",)),
        "class_precision": ArraySpec("share of the positions predicted as each class that are of it", ("classes",)),
        "class_inputs": ArraySpec("inputs in whose target each class is", ("classes",)),
    },
    figures=[
        Matrix(
            values="confusion_share",
            rows="class_name",
            columns="class_name",
            format="hundredths",
            caption="Share in percent of the positions of each class (row) that are predicted as each class (column).",
        ),
        Bars(
            values="class_iou", labels=("class_name",), x_label="IoU", format="percent",
            caption="Intersection over union of each class, over all positions.",
        ),
    ],
    headlines=[
        Headline(
            "The class with the least overlap is {worst_class}, with an IoU of {worst_iou} over all positions; the "
            "mean over classes and inputs is {mean_iou}. {most_confused_share} of the positions of {most_confused}."
        )
    ],
)  # fmt: skip
