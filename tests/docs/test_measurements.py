"""The page of measurements holds what the CSVs beside the scripts say."""

import csv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"mobilenet_v3": "MobileNetV3-Large", "efficientnet": "EfficientNet-Lite0", "resnet50": "ResNet-50"}


def test_the_table_of_whole_commands_is_that_of_its_csv():
    page = (ROOT / "docs/measurements.md").read_text(encoding="utf-8")
    with (ROOT / "benchmarks/peers/real_size.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["room"] == "coverage"]
    assert rows
    for row in rows:
        assert (
            f"| {NAMES[row['net']]} | {row['wall_s']} | {row['bare_s']} | **{row['ratio']}** | {row['cpu_s']} | "
            f"{row['bare_cpu_s']} | **{row['ratio_cpu']}** | {row['peak_gb']} |"
        ) in page
        assert (row["train"], row["test"], row["size"]) == ("96", "96", "224")
