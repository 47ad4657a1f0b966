"""`weakspot lesions`: sample, fit, score and evaluate on the command line."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.lesions import toy
from weakspot.cli.main import app
from weakspot.core.errors import ConfigError, DataError, RunError
from weakspot.core.run import Run

CONFIG = """
subject: {model: "toy_nets:Blur", task: segmentation, classes: [background, lesion], scores: logits}
data:
  validation: {path: "toy_nets:source", arguments: {count: 24, split: v, seed: 1}}
  test: {path: "toy_nets:source", arguments: {count: 10, split: t, seed: 2}}
ask:
  lesions: {looks: 3, splits: [validation, test], trained_on: known.txt}
"""
RUN = Path("runs/weakspot")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A project whose validation and test cases are sampled and whose lesion model is fitted."""
    folder = tmp_path_factory.mktemp("lesions")
    (folder / "weakspot.yaml").write_text(CONFIG)
    (folder / "known.txt").write_text("k-000\nk-001\n")
    shutil.copy(toy.__file__, folder / "toy_nets.py")
    return folder


@pytest.fixture
def project(prepared, monkeypatch):
    monkeypatch.chdir(prepared)
    return prepared


def said(*words):
    told = CliRunner().invoke(app, ["lesions", *map(str, words)], catch_exceptions=False)
    assert told.exit_code == 0, told.output
    return told.output


def test_from_samples_to_an_evaluation(project):
    assert "lesions.lesions-validation" in said("weakspot.yaml")
    assert Run.open(RUN)["lesions.lesions"].summary["cases"].value == 10
    told = said("fit", RUN, "--epochs", 5, "--folds", 2, "--output", "model")
    assert "calibrated" in told and (project / "model" / "model.safetensors").exists()
    told = said("score", RUN, "--model", "model", "--rows", 3)
    assert "expected_false_positives" in told and "false_positive_probability" in told
    scored = Run.open(RUN)["lesions.scores"]
    assert scored.provenance["upstream"] == [Run.open(RUN)["lesions.lesions"].digest]
    told = said("evaluate", RUN, "--replicates", 50)
    assert "metaseg_regression" in told and "lesions.evaluation" in Run.open(RUN)
    table = Run.open(RUN)["lesions.evaluation"].table.to_pylist()
    difference = {row["method"]: row["difference"] for row in table}
    assert difference[scored.summary["method"].value] == 0 != difference["gcn_classification"]
    (entry,) = json.loads(said("evaluate", RUN, RUN, "--replicates", 20, "--json"))
    assert entry["name"] == "lesions.evaluation" and entry["rows"] == 17
    Run.open(RUN).verify()


def test_what_would_mislead_is_refused(project):
    if not (project / "model").exists():
        test_from_samples_to_an_evaluation(project)
    with pytest.raises(ConfigError, match="fit is 'train'"):
        said("fit", RUN, "--split", "train")
    with pytest.raises(ConfigError, match="device is 'abacus': expected 'cpu'"):
        said("fit", RUN, "--device", "abacus", "--output", "elsewhere")
    assert not (project / "elsewhere").exists()
    (project / "seen.txt").write_text("v-003\n")
    with pytest.raises(DataError, match="trained on case 'v-003'"):
        said("fit", RUN, "--trained-on", "seen.txt")
    said("fit", RUN, "--trained-on", "seen.txt", "--training-cases", "--epochs", 1, "--folds", 2, "--output", "other")
    with pytest.raises(DataError, match="the lesion model learnt from case 'v-0"):
        said("score", RUN, "--model", "model", "--split", "validation")
    with pytest.raises(RunError, match=r"no lesions of the split 'improvement'.*splits='\[improvement\]'"):
        said("score", RUN, "--model", "model", "--split", "improvement")
    with pytest.raises(DataError, match="cannot read a lesion model in nowhere"):
        said("score", RUN, "--model", "nowhere")
    with pytest.raises(ConfigError, match="method 'best' is not known"):
        said("evaluate", RUN, "--method", "best")
    with pytest.raises(DataError, match="holds no volumes in NIfTI files"):
        said("export", "weakspot.yaml")


def test_cases_on_both_sides_are_refused_by_every_command(project, tmp_path):
    """Validation and test share the cases t-000 to t-003."""
    both = CONFIG.replace("count: 24, split: v, seed: 1", "count: 4, split: t, seed: 2").replace(
        "count: 10", "count: 6"
    )
    (project / "both.yaml").write_text(both)
    run = tmp_path / "run"
    said("both.yaml", "--run", run)
    with pytest.raises(DataError, match=r"case 't-000' \(4 of 4 cases here: t-000.*in the test split"):
        said("fit", run, "--epochs", 1, "--folds", 2, "--output", tmp_path / "model")
    assert not (tmp_path / "model").exists()
    with pytest.raises(DataError, match="lesion model learnt from case 't-000'"):
        said("both.yaml", "--run", tmp_path / "asked", "--set", "fit=validation")
    assert not (tmp_path / "asked").exists()


def test_patients_on_both_sides_are_refused_by_every_command(project, tmp_path):
    """Other cases, of the same patient p1."""
    alike = CONFIG.replace("count: 24, split: v", "count: 12, split: p1-v").replace(
        "count: 10, split: t", "count: 4, split: p1-t"
    )
    (project / "alike.yaml").write_text(alike.replace("trained_on: known.txt", "trained_on: [p2-before]"))
    run, model = tmp_path / "run", tmp_path / "model"
    said("alike.yaml", "--run", run)
    fit = ("fit", run, "--epochs", 1, "--folds", 2, "--output", model)
    with pytest.raises(DataError, match=r"patient 'p1' \(12 of 12 cases here: p1-v-000.*is in the test split"):
        said(*fit, "--patient", "p[0-9]")
    (project / "seen.txt").write_text("p1-before\n")
    with pytest.raises(DataError, match="trained on patient 'p1'"):
        said(*fit, "--patient", "p[0-9]", "--trained-on", "seen.txt")
    assert not model.exists()
    said(*fit)
    with pytest.raises(DataError, match="lesion model learnt from patient 'p1'"):
        said("score", run, "--model", model, "--patient", "p[0-9]")
    said("score", run, "--model", model)
    with pytest.raises(DataError, match="lesion model learnt from patient 'p1'"):
        said("evaluate", run, "--patient", "p[0-9]", "--replicates", 5)
    with pytest.raises(DataError, match="lesion model learnt from patient 'p1'"):
        said("alike.yaml", "--run", tmp_path / "asked", "--set", "fit=validation", "--set", "patient=p[0-9]")


def test_test_cases_that_the_network_was_trained_on_are_refused_by_every_command(project, tmp_path):
    if not (project / "model").exists():
        test_from_samples_to_an_evaluation(project)
    (project / "trained.txt").write_text("t-002\n")
    (project / "trained.yaml").write_text(CONFIG.replace("known.txt", "trained.txt"))
    with pytest.raises(
        DataError, match=r"trained on case 't-002' \(1 of 10 cases here: t-002\).*test with other cases"
    ):
        said("trained.yaml", "--run", tmp_path / "run")
    run = Run.create(tmp_path / "marked")
    for name in ("lesions.lesions", "lesions.scores"):
        finding = Run.open(RUN)[name]
        marked = finding.arrays["cases"] == "t-002"
        run.save(replace(finding, arrays={**finding.arrays, "case_trained_on": marked}))
    with pytest.raises(DataError, match="trained on case 't-002'"):
        said("score", run.folder, "--model", "model")
    with pytest.raises(DataError, match="trained on case 't-002'"):
        said("evaluate", run.folder)
