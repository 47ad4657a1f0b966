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
        ("shuffled", 0.07, 0.03),
        ("permuted", 0, 0),
        ("untrained", 0, 0),
        ("nothing", 4, 5),
    ):
        for seeds, said in (("012", settled), ("345", judged)):
            own = [int(row["shown"]) for row in controls if row["cause"].startswith(kind) and row["seed"] in seeds]
            assert round(sum(own) / len(own), 2 if kind == "shuffled" else 1) == said


def test_the_scenarios_kept_aside_are_as_said(tables):
    def scores(method, scenarios, key="f1"):
        return round(
            tables.mean([r for r in tables.read() if r["method"] == method and r["scenario"] in scenarios], key), 2
        )

    methods = {row["method"] for row in tables.read()}
    rivals = [name for name in methods if not name.startswith(("ranked", "traits"))]
    later = {name: scores(name, tables.ASIDE_LATER) for name in [*rivals, "ranked causes"]}
    assert later["ranked causes"] == 0.80 and max(later[name] for name in rivals) == 0.74
    assert scores("ranked causes", tables.ASIDE_LATER, "precision10") == 0.90
    assert scores("ranked causes", tables.ASIDE) == 0.70
    assert scores("ranked causes, no heat maps", tables.ASIDE_LATER) == 0.77
    assert "F1 is 0.80, and the best rival has 0.74" in PAGE and "and have 0.70 now" in PAGE


def test_the_time_is_as_measured():
    with (STUDY / "speed.csv").open() as opened:
        (row,) = csv.DictReader(opened)
    assert (round(float(row["cpu_s"])), round(float(row["peak_gib"]), 1)) == (20, 3.5)
    assert "all sources take 20 s of one core and 3.5 GiB" in PAGE
