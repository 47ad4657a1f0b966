"""Runs of format version 1, as weakspot 0.1 wrote them: every built-in probe, one Run for each task."""

import tarfile
from pathlib import Path

import pytest

from weakspot.compare import compare_runs
from weakspot.core.run import Run
from weakspot.report import render
from weakspot.report.drawings import figures
from weakspot.rooms import declared
from weakspot.upgrades import finding_from_1

TASKS = ("classification", "multilabel", "regression", "keypoints", "segmentation")
OLD_NAMES = {"predicted", "answer", "answers", "right", "wrong", "guess", "leaning", "leaning_rank", "lucky"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("version-1")
    with tarfile.open(Path(__file__).with_name("runs_v1.tar.xz")) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_every_finding_of_an_older_run_is_as_declared_today(runs, task):
    run = Run.open(runs / task)
    run.verify()
    findings = list(run)
    assert len(findings) > 10
    for finding in findings:
        assert finding.outputs.summary, finding.name
        assert finding.outputs.problems(finding) == [], finding.name
        columns = [] if finding.table is None else finding.table.column_names
        assert not OLD_NAMES & {*finding.summary, *finding.arrays, *columns}, finding.name


@pytest.mark.parametrize("task", TASKS)
def test_an_older_run_is_reported_with_its_figures(runs, task):
    run = Run.open(runs / task)
    assert "cannot be drawn" not in render(run)
    drawn = {finding.name: figures(finding, []) for finding in run}
    assert sum(map(len, drawn.values())) >= 5
    assert not [figure for own in drawn.values() for figure in own if figure.problem]


def test_truth_values_that_were_wrong_are_correct_turned_round(runs):
    errors = Run.open(runs / "classification")["causes.errors"].table
    same = [a == b for a, b in zip(errors["target"].to_pylist(), errors["prediction"].to_pylist(), strict=True)]
    assert errors["correct"].to_pylist() == same and not all(same) and any(same)


def test_the_number_of_looks_has_its_name_of_today(runs):
    run = Run.open(runs / "segmentation")
    assert run["lesions.lesions"].provenance["parameters"]["looks"] == 4
    for name in ("lesions.lesion_fit", "lesions.scores", "lesions.case_volumes"):
        sampling = run[name].provenance["parameters"]["sampling"]
        assert sampling["looks"] == 4 and "samples" not in sampling


def test_older_runs_are_compared(runs):
    run = Run.open(runs / "classification")
    assert compare_runs(run, run).shown() == []


def test_inference_options_have_their_new_name():
    index = {"name": "causes.errors", "provenance": {"ways": {"precision": "bf16"}, "probe": "Errors"}}
    assert finding_from_1(index)["provenance"] == {"inference_options": {"precision": "bf16"}, "probe": "Errors"}


@pytest.mark.parametrize("task", ("classification", "multilabel"))
def test_the_criteria_of_classes_are_declared_under_their_new_name(runs, task):
    finding = Run.open(runs / task)["classes.class_gauge"]
    assert {*finding.outputs.columns} == {*declared("classes.class_criteria").columns}
    assert len(finding.outputs.figures) == 1


def test_the_inputs_of_importance_have_their_new_name():
    index = {"name": "coverage.neuron_importance", "provenance": {"parameters": {"where": "wrong", "method": "lrp"}}}
    assert finding_from_1(index)["provenance"]["parameters"] == {"where": "incorrect", "method": "lrp"}
