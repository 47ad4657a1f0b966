"""The page of measurements holds what the CSVs beside the scripts say."""

import csv
import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def real_size_table(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks/peers")
    import real_size_table

    yield real_size_table
    sys.modules.pop("real_size_table")


def test_the_tables_of_whole_commands_are_those_of_their_csv(real_size_table):
    page = (ROOT / "docs/measurements.md").read_text(encoding="utf-8")
    section = page.partition("## Whole commands at real size")[2].partition("\n## ")[0]
    tables = real_size_table.tables()
    assert tables
    for machine, lines in tables.items():
        assert machine in section
        assert "\n".join(lines) in section, f"the table of {machine} is not that of real_size.csv"
    cells = len(real_size_table.COLUMNS)
    written = [line for line in section.splitlines() if line.startswith("| ") and line.count(" | ") == cells - 1]
    assert len(written) == sum(len(lines) - 1 for lines in tables.values()), "a row that was not measured"


def test_what_sketches_cost_is_what_their_csv_says():
    page = (ROOT / "docs/measurements.md").read_text(encoding="utf-8")
    with (ROOT / "benchmarks/peers/causes_sketches.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        cells = (row["net"], row["errors"], f"{row['sketched_layers']} of {row['layers']}", row["rand_mean"])
        more = (row["rand_least"], row["rand_of_best"], row["length_error"], row["whole_mb"], row["kept_mb"])
        assert f"| {' | '.join((*cells, *more))} |" in page
        assert row["same_best_layer"] == "True"


def rows_of(name):
    with (ROOT / "benchmarks/peers" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_the_page_says_of_corruptions_is_what_the_csv_says():
    page = " ".join((ROOT / "docs/measurements.md").read_text(encoding="utf-8").split())
    rows = rows_of("corruptions.csv")
    fast = [float(row["times_as_fast"]) for row in rows]
    cannot = sum(10 * float(row["ms_least"]) > float(row["ms_reference"]) for row in rows)
    assert (
        f"in {sum(one >= 10 for one in fast)} of {len(rows)} cases; at least as fast in {sum(f >= 1 for f in fast)}"
        in page
    )
    assert f"In {cannot} cases it cannot be met there" in page
    assert all(row["severities_equal"] == "True" for row in rows)
    same = max(float(row["difference"]) for row in rows if not row["again"])
    angle = max(float(row["same_angle"]) for row in rows if row["same_angle"])
    assert f"at most {same:.4f} of the way" in page and f"differs by {angle:.4f} at most from all three" in page
    for kind in dict.fromkeys(row["corruption"] for row in rows):
        sets = [[row for row in rows if row["set"] == name and row["corruption"] == kind] for name in
                ("ImageNet-C at 224", "ImageNet-C at 32", "CIFAR-10-C")]  # fmt: skip
        cells = [f"{median(float(row['times_as_fast']) for row in own):.1f}" for own in sets]
        assert f"| {kind.replace('_', ' ')} | {' | '.join(cells)} |" in page


def test_what_the_page_says_of_corruptions_on_the_device_is_what_the_csvs_say():
    page = " ".join((ROOT / "docs/measurements.md").read_text(encoding="utf-8").split())
    large = {"ImageNet-C at 224": "224", "ImageNet-C at 32": "32"}
    hardest = [row for row in rows_of("corruptions.csv") if row["severity"] == "5" and row["set"] in large]
    reference = {(large[row["set"]], row["corruption"]): float(row["ms_reference"]) for row in hardest}
    times = {key: reference[key] / float(row["ms_weakspot"]) for row in rows_of("corruptions_gpu.csv")
             if (key := (row["height"], row["corruption"]))}  # fmt: skip
    missed = {key: time for key, time in times.items() if time < 10}
    assert f"met by {len(times) - len(missed)} of the {len(times)} that were measured" in page
    assert f"defocus blur ({missed['224', 'defocus_blur']:.1f} times)" in page
    assert f"JPEG ({missed['224', 'jpeg_compression']:.1f}) at 224²" in page


def test_the_table_of_attacks_is_that_of_the_csv_and_meets_the_aims():
    page = (ROOT / "docs/measurements.md").read_text(encoding="utf-8")
    balls = {("linf", "0.00392"): "L∞ 1/255", ("l2", "0.2"): "L2 0.2", ("l2", "0.25"): "L2 0.25"}
    rows = [row for row in rows_of("auto_attack.csv") if row["net"] == "ResNet-32, CIFAR-10"]
    assert len(rows) == 12
    for row in rows:
        robust = [f"{100 * float(row[f'robust_{side}']):.1f} %" for side in ("weakspot", "reference")]
        seconds = [float(row[f"seconds_{side}"]) for side in ("weakspot", "reference")]
        cells = (*robust, *(f"{one:.1f}" for one in seconds))
        line = f"| {' | '.join(cells)} |"
        told = [text for text in page.splitlines() if text.startswith(f"| {balls[row['norm'], row['epsilon']]} |")]
        assert any(text.endswith(line) for text in told)
        assert abs(float(row["points_apart"])) <= 0.5 and seconds[0] <= seconds[1]


def test_the_tables_of_judging_are_those_of_their_csvs():
    page = (ROOT / "docs/measurements.md").read_text(encoding="utf-8")
    times = rows_of("judging.csv")
    assert [row["agrees"] for row in times] == ["True"] * 5
    for row in times:
        cells = (
            *(f"{1000 * float(row[f'seconds_{side}']):.1f}" for side in ("weakspot", "peer")),
            row["times_as_fast"],
        )
        assert f"| {row['what']} | " in page and f" | {' | '.join(cells)} |" in page
    peaks = {(row["what"], row["images"]): row for row in rows_of("judging_memory.csv")}
    for name in ("label plan", "diverse", "guard", "gaps"):
        found = [peaks[name, images] for images in ("5000", "10000", "20000")]
        cells = (*(row["peak_anonymous_mb"] for row in found), found[-1]["ratio_to_1x"])
        assert f"| {name} | {' | '.join(cells)} |" in page
