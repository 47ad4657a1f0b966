"""What the page says of planted causes is what the CSV says."""

import csv
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "benchmarks" / "causes_planted"
PAGE = (ROOT / "docs" / "howto-causes.md").read_text(encoding="utf-8")


@pytest.fixture
def tables():
    spec = importlib.util.spec_from_file_location("causes_tables", STUDY / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_csv(tables):
    rows = tables.read()
    for line in [*tables.by_method(rows), *tables.by_scenario(rows)]:
        assert line in PAGE


def test_the_controls_and_the_miss_are_as_said(tables):
    with (STUDY / "causes_planted.csv").open() as opened:
        controls = [row for row in csv.DictReader(opened) if row["scenario"] == "control"]
    for kind, settled, judged in (
        ("shuffled", 0.02, 0.05),
        ("permuted", 0, 0),
        ("untrained", 0, 0),
        ("nothing", 6, 5.3),
    ):
        for seeds, said in (("012", settled), ("345", judged)):
            own = [int(row["shown"]) for row in controls if row["cause"].startswith(kind) and row["seed"] in seeds]
            assert round(sum(own) / len(own), 2 if kind == "shuffled" else 1) == said
    aside = [row for row in tables.read() if row["scenario"] in tables.ASIDE]
    rivals = {name: tables.mean([row for row in aside if row["method"] == name], "f1") for name in
              ("ranked causes", "heat maps, unit length, last convolution, k = 6")}  # fmt: skip
    assert [round(score, 2) for score in rivals.values()] == [0.66, 0.67]
    assert "there the F1 is\n  0.66" in PAGE and "have 0.67" in PAGE
