"""The page of measurements holds what the CSVs beside the scripts say."""

import csv
import sys
from pathlib import Path

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
