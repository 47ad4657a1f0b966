"""Which inputs were fixed and broken, in which groups accuracy fell, and the Runs of a model over time."""

import json
import os

import numpy as np
import pytest

from tests.gate.samples import make_run, neighbours
from weakspot.cli.verdict_commands import compare, history
from weakspot.compare import compare_runs
from weakspot.compare.flips import flips_of
from weakspot.core.errors import DataError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.outputs import Headline, Outputs, correct, sample_id, share, target, text
from weakspot.core.run import Run
from weakspot.statistics.groups import value_groups
from weakspot.statistics.paired import paired_difference_interval

OUTPUTS = Outputs(
    summary={"accuracy": share("right", better="higher", mean_of="correct")},
    columns={
        "id": sample_id(),
        "correct": correct(),
        "target": target(),
        "metadata.*": text("what came with the data", role="metadata"),
    },
    headlines=(Headline("{accuracy} are right."),),
)
IDS = np.array([f"s{number:03d}" for number in range(80)])
KINDS = np.array(["cat", "dog"] * 40)
LIGHT = np.arange(80) / 80


def performance(right, order=None, name="performance.performance"):
    rows = np.arange(80) if order is None else order
    table = {"id": IDS[rows], "correct": right[rows], "target": KINDS[rows], "metadata.light": LIGHT[rows]}
    found = {"accuracy": Estimate(float(right.mean()))}
    return Finding(name, summary=found, table=table_of(table), outputs=OUTPUTS)


OLD = np.ones(80, dtype=bool)
OLD[:10] = False
NEW = np.ones(80, dtype=bool)
NEW[:5] = False
NEW[60:] = False


def test_every_input_is_fixed_broken_or_as_before_whatever_the_order():
    found = flips_of(performance(OLD), performance(NEW, np.random.default_rng(0).permutation(80)))
    assert found.fixed == IDS[5:10].tolist() and found.broken == IDS[60:].tolist()
    assert found.incorrect == IDS[:5].tolist() and found.correct == 50
    assert found.inputs == 80


def test_groups_are_classes_and_parts_of_numbers_with_intervals_that_hold_together():
    groups = {(one.by, one.group): one for one in flips_of(performance(OLD), performance(NEW)).groups}
    assert [by for by, _ in groups] == ["light"] * 4 + ["class"] * 2 or set(groups) == {
        ("class", "cat"), ("class", "dog"), *((("light"), name) for name in value_groups(LIGHT)[0])
    }  # fmt: skip
    dark = groups["light", value_groups(LIGHT)[0][-1]]
    assert (dark.inputs, dark.before, dark.after, dark.verdict) == (20, 1.0, 0.0, "worse")
    low, high = paired_difference_interval(OLD[60:], NEW[60:], confidence=1 - 0.05 / 6)
    assert (dark.low, dark.high) == pytest.approx((float(low), float(high)))
    assert groups["class", "cat"].verdict == ""


def test_chance_flips_show_no_group():
    random, shown = np.random.default_rng(3), 0
    for _ in range(200):
        before, after = (random.random(80) < 0.7 for _ in range(2))
        shown += any(one.verdict for one in flips_of(performance(before), performance(after)).groups)
    assert shown <= 18, "about one in twenty, of all groups together"


def test_a_finding_that_says_nothing_of_inputs_has_no_flips():
    assert flips_of(neighbours(), neighbours()) is None


def test_values_are_groups_as_they_are_where_there_are_few():
    assert value_groups([3, 1, 3])[0] == ["1", "3"] and value_groups([3, 1, 3])[1].tolist() == [1, 0, 1]
    names, number = value_groups(np.r_[np.arange(40.0), np.nan])
    assert names[-1] == "unknown" and np.bincount(number).tolist() == [10, 10, 10, 10, 1]
    assert value_groups(np.r_[np.zeros(50), np.arange(1, 20.0)])[1].tolist().count(0) == 50, (
        "equal values stay together"
    )


def test_each_fact_is_told_once(tmp_path):
    again = performance(OLD, name="causes.errors"), performance(NEW, name="causes.errors")
    before = make_run(tmp_path / "before", performance(OLD), again[0])
    after = make_run(tmp_path / "after", performance(NEW), again[1])
    found = compare_runs(before, after)
    assert [(one.finding, one.name) for one in found.main] == [("performance.performance", "accuracy")]
    assert found.main[0].verdict == "worse" and found.main[0].unit == "share"
    assert len(found.flips.broken) == 20 and found.flips.finding == "performance.performance"


def test_the_command_tells_what_changed_in_few_lines(tmp_path, capsys):
    before, after = make_run(tmp_path / "before", performance(OLD)), make_run(tmp_path / "after", performance(NEW))
    compare(before.folder, after.folder)
    told = capsys.readouterr().out
    assert told.startswith("of 80 inputs: 5 fixed, 20 broken, 5 still incorrect, 50 still correct\n")
    assert "  broken: s060, s061, s062, s063, s064, s065 … and 14 more\n" in told
    assert "light 0.75 to 0.9875" in told and "  class" not in told
    assert "87.5 %" in told and "68.8 %" in told and "points" in told and "worse" in told and "\\xa0" not in told
    assert len(told.splitlines()) <= 12
    compare(before.folder, after.folder, as_json=True)
    entry = json.loads(capsys.readouterr().out)
    assert entry["inputs"]["fixed"] == IDS[5:10].tolist() and entry["main"][0]["name"] == "accuracy"


def test_runs_over_time_are_listed_by_when_they_were_written(tmp_path, capsys):
    runs = [make_run(tmp_path / name, performance(right)) for name, right in (("b", NEW), ("a", OLD))]
    for seconds, run in zip((2_000_000_000, 1_000_000_000), runs, strict=True):
        os.utime(run.folder / "run.json", (seconds, seconds))
    (tmp_path / "policy.yaml").write_text(
        "rules:\n  - {finding: performance.performance, number: accuracy, at_least: 0.8}\n"
    )
    history([run.folder for run in runs], policy=tmp_path / "policy.yaml")
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[-3:] == ["fixed", "broken", "gate"] and "Accuracy" in head
    assert first.startswith("a ") and "2001-09-09" in first and "87.5 %" in first
    assert second.startswith("b ") and second.split()[-3:] != [] and "  5      20 " in second
    history([run.folder for run in runs], as_json=True)
    entries = json.loads(capsys.readouterr().out)
    assert [entry["fixed"] for entry in entries] == [None, 5] and entries[0]["passed"] is None
    with pytest.raises(DataError, match="two Runs or more"):
        history([runs[0].folder])


def test_groups_are_compared_by_the_root_causes_of_the_first_run_where_they_were_not_found(tmp_path):
    """Of the half that rules were sought on, all errors were fixed: that half must not count."""
    sought = np.arange(80) % 2 == 0
    rule = np.where(np.arange(80) < 40, 1, 0)
    was, now = np.ones(80, dtype=bool), np.ones(80, dtype=bool)
    was[:40], now[:40] = False, sought[:40]
    arrays = {"image_id": IDS, "image_slice": rule, "image_found_on": sought}
    causes = Finding("causes.error_slices", table=table_of({"slice": [1], "rule": ["dark"]}), arrays=arrays)
    runs = [Run.create(tmp_path / name) for name in ("before", "after")]
    for run, right in zip(runs, (was, now), strict=True):
        run.save(performance(right))
    runs[0].save(causes)
    groups = {one.group: one for one in compare_runs(*runs).flips.groups if one.by == "root cause"}
    assert groups.keys() == {"dark", "no root cause"} and {one.inputs for one in groups.values()} == {20}
    assert (groups["dark"].before, groups["dark"].after, groups["dark"].verdict) == (0, 0, "")
    assert groups["no root cause"].before == 1
