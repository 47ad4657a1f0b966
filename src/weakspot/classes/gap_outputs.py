"""What the Finding about gaps between groups holds. Torch-free."""

from weakspot.core.figures import Bars
from weakspot.core.outputs import Headline, Outputs, count, flag, interval, optional, share, text

GROUP_GAPS = Outputs(
    summary={
        "largest_gap": share("largest gap that is beyond chance, or the largest of all", better="lower", optional=True),
        "sure_gaps": count("gaps to the group's disadvantage whose interval excludes 0", better="lower"),
        "worst_group_accuracy": share("accuracy of the group where it is lowest", better="higher", optional=True),
        "worst_group": text("that group", optional=True),
        "groups": count("groups with enough inputs, on either side"),
        "looks": count("gaps that were looked at, which the intervals know of"),
        "inputs": count("samples examined"),
    },
    columns=optional(
        {
            "group": text("what makes the group"),
            "measure": text("accuracy, true positive rate or false positive rate"),
            "class": text("the class that it is about; empty for all"),
            "rate": share("of the group"),
            "rate_of_others": share("of all other inputs"),
            "gap": share("how much worse the group fares", better="lower"),
            **interval("the gap"),
            "sure": flag("whether the interval excludes 0"),
            "images": count("inputs of the group that it is about"),
            "images_of_others": count("other inputs that it is about"),
        }
    ),
    figures=[
        Bars(
            labels=("table.group", "table.measure", "table.class"),
            label_text="{}: {} {}",
            values="table.gap",
            low="table.low",
            high="table.high",
            marked="table.sure",
            most=12,
            format="percent",
            x_label="how much worse the group fares than the others",
            caption="The surest gaps between groups and all other inputs. The intervals hold together, for all gaps "
            "that were looked at. Beyond chance: marked.",
        )
    ],
    headlines=[
        Headline(
            "The lowest accuracy of {groups} groups is {worst_group_accuracy}, of {worst_group}; {sure_gaps} gaps are "
            "beyond chance.",
            11,
        )
    ],
)
