"""The table of whole commands in the documentation, from the CSV: `python benchmarks/peers/real_size_table.py`."""

import csv
from pathlib import Path

NAMES = {
    "mobilenet_v3": "MobileNetV3-Large", "efficientnet": "EfficientNet-Lite0", "resnet50": "ResNet-50",
    "vit_b16": "ViT-B/16", "convnext_t": "ConvNeXt-T", "resnet32": "ResNet-32",
}  # fmt: skip
COLUMNS = ("room", "network", "images", "command, s", "passes, s", "ratio", "ratio of CPU s", "peak GB", "scratch GB")


def rows() -> list[dict[str, str]]:
    """The rows of the CSV."""
    with (Path(__file__).resolve().parent / "real_size.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def line(row: dict[str, str]) -> str:
    """One row of the table."""
    images = f"{int(row['train']):,} + {int(row['test']):,} of {row['size']}²"
    images += " as JPEG" if row["data"] == "jpeg" else ""
    images += f", {float(row['changed']):.0%} wrong labels" if float(row["changed"]) != 0.1 else ""
    ratio = f"**{row['ratio']}**" if row["ratio"] else ""
    measured = (row["wall_s"], row["bare_s"], ratio, row["ratio_cpu"], row["peak_gb"], row["scratch_gb"])
    cells = (row["room"], NAMES[row["net"]], images, *(cell or "–" for cell in measured))
    return f"| {' | '.join(cells)} |"


def tables() -> dict[str, list[str]]:
    """The lines of the table of each machine."""
    head = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    found: dict[str, list[str]] = {}
    for row in rows():
        found.setdefault(row["machine"], [*head]).append(line(row))
    return found


if __name__ == "__main__":
    for machine, lines in tables().items():
        print(machine, *lines, "", sep="\n")
