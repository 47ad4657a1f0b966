"""Accuracy from few labels: the plan, the estimate by hand and by simulation, labels in files, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from weakspot import Plan, Run, Subject, examine
from weakspot.classes import (
    LabelPlan,
    average_thresholded_confidence,
    difference_of_confidences,
    estimated_accuracy,
    export_plan,
    read_plan_labels,
)
from weakspot.classes.metrics_labels import allocation, drawn, strata
from weakspot.classes.room import steps
from weakspot.cli.main import app
from weakspot.compare import compare_runs
from weakspot.core.errors import ConfigError, DataError, RunError
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.data.sources import Grouped

ASKED = {"by": "outputs", "estimate": {"from": "pool", "labels": 60, "known": "known"}}


@pytest.fixture(scope="module")
def subject():
    return Subject(digits.model(), classes=digits.CLASSES, scores="logits", bounds=(0, 1))


@pytest.fixture(scope="module")
def run(subject, tmp_path_factory):
    made = Run.create(tmp_path_factory.mktemp("labels") / "run")
    data = {"test": limited(digits.test(), 100), "pool": digits.test(), "known": limited(digits.train(), 300)}
    Plan.of(steps(ASKED)).run(subject, data, made)
    return made


@pytest.fixture(scope="module")
def plan(run):
    return run["classes.label_plan"]


@pytest.fixture(scope="module")
def truth():
    """The label of every digit, by its id."""
    batch = digits.test().read(np.arange(len(digits.test().ids)))
    return {name: digits.CLASSES[int(target)] for name, target in zip(batch.ids, batch.targets, strict=True)}


def test_strata_are_cut_by_confidence():
    uncertainty = np.random.default_rng(0).random(500) ** 4
    stratum = strata(uncertainty, 100)
    ends = [(uncertainty[stratum == own].min(), uncertainty[stratum == own].max()) for own in range(stratum.max() + 1)]
    assert len(ends) == 8
    assert all(before[1] <= after[0] for before, after in pairwise(ends))


def test_the_plan_has_what_a_page_needs_to_have_it_labelled(plan):
    batch = digits.test().read(np.arange(len(digits.test().ids)))
    of = dict(zip(batch.ids, batch.inputs, strict=True))
    pictures, ids = plan.arrays["thumbnails"], plan.table["id"].to_pylist()
    assert pictures.dtype == np.uint8 and len(pictures) == len(ids)
    brightness = [float(of[name].mean()) for name in ids]
    np.testing.assert_allclose(pictures.mean((1, 2, 3)) / 255, brightness, atol=0.01)
    assert (str(plan.arrays["task"]), int(plan.arrays["outputs"])) == ("classification", 10)


def test_labels_go_where_they_tell_most():
    """By hand: 900 sure inputs and 100 unsure ones; deviations √0.08 and √(0.25 + 0.08), so 40.8 to 9.2."""
    stratum, uncertainty = np.repeat([0, 1], [900, 100]), np.repeat([0.0, 0.5], [900, 100])
    taken = allocation(stratum, uncertainty, 50)
    assert taken.tolist() == [40, 10]


def test_a_small_stratum_gives_all_it_has():
    stratum = np.repeat([0, 1], [97, 3])
    assert allocation(stratum, np.repeat([0.0, 0.5], [97, 3]), 60).tolist() == [57, 3]


def test_every_input_is_drawn_as_often_as_its_probability_says():
    stratum, taken = np.repeat([0, 1], [8, 4]), np.array([2, 3])
    rng = np.random.default_rng(1)
    often = np.zeros(12)
    for _ in range(3000):
        chosen = drawn(stratum, taken, rng.integers(0, 2**63, 12, dtype=np.uint64))
        assert np.bincount(stratum[chosen]).tolist() == [2, 3]
        often[chosen] += 1
    np.testing.assert_allclose(often / 3000, np.repeat([0.25, 0.75], [8, 4]), atol=0.03)


def test_every_beginning_of_the_plan_is_a_fair_sample():
    stratum = np.repeat([0, 1], [50, 50])
    chosen = drawn(stratum, np.array([30, 10]), np.random.default_rng(2).integers(0, 2**63, 100, dtype=np.uint64))
    for size in (8, 20, 32):
        assert abs((stratum[chosen[:size]] == 1).mean() - 0.25) < 0.1


def test_thresholded_confidence_by_hand():
    """A third of the known inputs is wrong, so a third of the known confidences lie at or below the threshold, 0.5."""
    known, right = np.array([0.4, 0.5, 0.6, 0.7, 0.8, 0.9]), np.array([1, 0, 1, 0, 1, 1], dtype=bool)
    assert average_thresholded_confidence(np.array([0.45, 0.5, 0.55, 0.99]), known, right) == 0.5
    assert average_thresholded_confidence(np.array([0.1]), known, np.ones(6, dtype=bool)) == 1


def test_difference_of_confidences_by_hand():
    known, right = np.array([0.8, 1.0]), np.array([True, False])
    assert difference_of_confidences(np.array([0.7, 0.9]), known, right) == pytest.approx(0.4)
    assert difference_of_confidences(np.array([0.1, 0.1]), known, right) == 0


def test_the_estimate_is_the_weighted_mean(plan, truth):
    finding = estimated_accuracy(plan, truth)
    rows = plan.table.to_pylist()
    share = sum((row["prediction"] == truth[row["id"]]) / row["probability"] for row in rows) / len(truth)
    assert finding.summary["accuracy"].value == pytest.approx(share)
    assert finding.summary["labels"].value == 60
    assert finding.outputs.problems(finding) == []


def test_the_interval_holds_the_accuracy_as_often_as_promised(subject, truth):
    """40 plans drawn with seeds of their own: at most 5 % of the intervals miss, with 3 σ to spare."""
    predicted = examine(subject, digits.test(), [LabelPlan(labels=len(truth))])[0].table.to_pylist()
    accuracy = np.mean([row["prediction"] == truth[row["id"]] for row in predicted])
    plans = examine(subject, digits.test(), [LabelPlan(labels=60, seed=seed) for seed in range(40)])
    held = [estimated_accuracy(one, truth).summary["accuracy"] for one in plans]
    assert sum(one.low <= accuracy <= one.high for one in held) >= 40 * 0.95 - 3 * np.sqrt(40 * 0.05 * 0.95)
    assert np.mean([one.value for one in held]) == pytest.approx(accuracy, abs=0.012)


def test_inputs_that_belong_together_get_no_interval(subject, truth):
    source = Grouped(digits.test(), [str(place // 5) for place in range(len(truth))])
    grouped = examine(subject, source, [LabelPlan(labels=60)])[0]
    accuracy = estimated_accuracy(grouped, truth).summary["accuracy"]
    assert accuracy.low is None
    assert "belong together" in accuracy.about


def test_estimates_without_labels_stand_beside(plan):
    for name in ("average_confidence", "thresholded_confidence", "confidence_difference"):
        assert 0.8 < plan.summary[name].value <= 1
        assert plan.summary[name].low is None


def test_too_few_labels_are_refused(plan, truth):
    few = {row["id"]: truth[row["id"]] for row in plan.table.to_pylist()[:3]}
    with pytest.raises(DataError, match="in the order of the plan"):
        estimated_accuracy(plan, few)


def test_a_finding_that_is_no_plan_is_refused(run):
    with pytest.raises(RunError, match="give the Finding of LabelPlan"):
        estimated_accuracy(run["classes.known_confidence-known"], {})


def test_labels_go_out_and_come_back(plan, truth, tmp_path):
    export_plan(plan, tmp_path / "labels.csv", {})
    lines = (tmp_path / "labels.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "id,label"
    assert len(lines) == 61
    filled = [lines[0], *(f"{line.rstrip(',')},{truth[line.rstrip(',')]}" for line in lines[1:41]), *lines[41:]]
    (tmp_path / "labels.csv").write_text("\n".join(filled) + "\n")
    assert len(read_plan_labels(plan, tmp_path / "labels.csv")) == 40
    with pytest.raises(ConfigError, match="may hold labels"):
        export_plan(plan, tmp_path / "labels.csv", {})


@pytest.mark.parametrize(
    ("line", "message"),
    [("nobody,3", "no input of the plan"), ("{id},llama", "is not a class"), ("{id},3\n{id},4", "has a label already")],
)
def test_labels_that_fit_nothing_are_refused(plan, tmp_path, line, message):
    (tmp_path / "labels.csv").write_text("id,label\n" + line.replace("{id}", plan.table["id"][0].as_py()) + "\n")
    with pytest.raises(DataError, match=message):
        read_plan_labels(plan, tmp_path / "labels.csv")


def test_the_command_takes_labels_and_tells_the_accuracy(run, plan, truth, tmp_path):
    labels = tmp_path / "labels.csv"
    assert CliRunner().invoke(app, ["classes", "label", str(run.folder), "--export", str(labels)]).exit_code == 0
    ids = [row["id"] for row in plan.table.to_pylist()]
    labels.write_text("id,label\n" + "".join(f"{name},{truth[name]}\n" for name in ids))
    result = CliRunner().invoke(app, ["classes", "label", str(run.folder), "--import", str(labels)])
    assert result.exit_code == 0, result.output
    assert "accuracy" in result.output
    assert Run.open(run.folder)["classes.estimated_accuracy"].summary["labels"].value == 60
    compared = compare_runs(Run.open(run.folder), Run.open(run.folder))
    assert "classes.estimated_accuracy" in {one.finding for one in compared.differences}


@pytest.mark.parametrize("option", [7, {"from": "pool", "labels": 3}, {"from": "pool", "budget": 30}])
def test_options_that_mean_nothing_are_refused(option):
    with pytest.raises(ConfigError):
        steps({"by": "outputs", "estimate": option})
