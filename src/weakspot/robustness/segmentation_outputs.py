"""What the Finding about segmentations of varied inputs holds. Torch-free."""

from weakspot.core.figures import Bars, Histogram
from weakspot.core.outputs import (
    ArraySpec,
    Headline,
    Outputs,
    count,
    flag,
    sample_id,
    share,
)

NEIGHBOUR_SEGMENTATION = Outputs(
    summary={
        "weak_share": share("share of the inputs that are weak", better="lower", mean_of="weak"),
        "fragile": count("weak inputs whose original is segmented well enough", better="lower"),
        "neighbour_iou": share("mean IoU of the neighbours", better="higher", mean_of="neighbour_iou"),
        "iou": share("mean IoU of the originals", better="higher", mean_of="iou"),
        "agreement": share(
            "share of the positions of neighbours that are predicted as in the original, mean over the inputs",
            better="higher",
            mean_of="agreement",
        ),
        "pixel_accuracy": share(
            "share of the positions of the originals predicted correctly, mean over the inputs",
            better="higher",
            mean_of="pixel_accuracy",
        ),
        "inputs": count("samples examined"),
    },
    columns={
        "id": sample_id(),
        "weak": flag("whether the mean IoU of the neighbours is below the least", better="lower"),
        "neighbour_iou": share("mean over the neighbours of the mean IoU over classes", better="higher"),
        "worst_iou": share("lowest mean IoU of a neighbour", better="higher"),
        "iou": share("mean IoU over the classes, of the original", better="higher"),
        "agreement": share("share of the positions of neighbours predicted as in the original", better="higher"),
        "pixel_accuracy": share("share of the positions predicted correctly, of the original", better="higher"),
    },
    arrays={
        "class_name": ArraySpec("the classes", ("classes",)),
        "class_iou": ArraySpec("IoU of each class over all positions of the originals", ("classes",)),
        "class_neighbour_iou": ArraySpec("IoU of each class over all positions of the neighbours", ("classes",)),
    },
    figures=[
        Histogram(
            values="table.neighbour_iou",
            marked="table.weak",
            names=("weak", "strong"),
            x_label="mean IoU of the neighbours",
            caption="Mean IoU of the neighbours of each input; those below the least are weak.",
        ),
        Bars(
            values="class_neighbour_iou",
            labels=("class_name",),
            x_label="IoU",
            format="percent",
            caption="IoU of each class over the neighbours of all inputs.",
        ),
    ],
    headlines=[
        Headline(
            "{weak_share} of the inputs are weak: their small variations are segmented with too little overlap. "
            "{agreement} of the positions keep the class that they have in the original."
        )
    ],
)
