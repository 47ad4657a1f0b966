"""What the room declares: drawn, told and printed from Findings that its probes made."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tests.robustness.conftest import DETECTOR
from weakspot import Estimate, Finding, Plan, Run, Subject, examine
from weakspot.compare import compare_findings
from weakspot.core.finding import Picture, table_of
from weakspot.core.outputs import Outputs
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.formatting import in_unit, show_estimate
from weakspot.looks import Noise
from weakspot.report.drawings import figures
from weakspot.report.headlines import answer
from weakspot.report.next_steps import next_steps
from weakspot.report.worst import worst
from weakspot.robustness import NeighbourAccuracy, NeighbourDiversity, NeighbourSegmentation, compared_neighbours
from weakspot.robustness.outputs import ROOM
from weakspot.robustness.room import steps
from weakspot.rooms import declared

PICTURE = Picture(b"png", "an input")
SELECT = {"from": "pool", "budget": 5}
ATTACKS = {"epsilons": [0.05], "attacks": [{"attack": "pgd", "iterations": 3}, {"attack": "square", "queries": 9}]}
CORRUPTIONS = {"kinds": ["shot_noise", "defocus_blur", "fog", "contrast"], "severities": [2]}


@pytest.fixture(scope="module")
def run(subject, tmp_path_factory):
    """Every Finding that the room makes for classes, of some of the digits."""
    detector = {"queries": 6, "epochs": 15, "folds": 3, "hidden": (32,)}
    options = {"neighbours": {"rotate": 20, "shift": 1}, "looks": 12, "early_stopping": "never"}
    further = {"select": SELECT, "corruptions": CORRUPTIONS, "attacks": ATTACKS}
    asked = steps({**options, "analysis": True, "detector": detector, **further})
    data = {"train": limited(digits.train(), 120), "test": limited(digits.test(), 80)}
    made = Run.create(tmp_path_factory.mktemp("outputs") / "run")
    Plan.of(asked).run(subject, {**data, "pool": data["test"]}, made)
    return made


class Sum(nn.Module):
    """One number per image."""

    def forward(self, images):
        return images.flatten(1).sum(1)


@pytest.fixture(scope="module")
def regression_run(tmp_path_factory):
    """Neighbour accuracy of numbers, with a detector."""
    images = digits.test().read(np.arange(60)).inputs
    targets = Sum()(images).numpy() + np.random.default_rng(0).normal(size=60).astype(np.float32) * 2
    source = ArraySource(images.numpy(), targets)
    made = Run.create(tmp_path_factory.mktemp("outputs") / "regression")
    asked = steps({"neighbours": {"brightness": 0.1}, "tolerance": 1, "looks": 8, "analysis": True})
    Plan.of(asked).run(Subject(Sum(), task="regression", bounds=(0, 1)), {"train": source, "test": source}, made)
    return made


@pytest.fixture(scope="module")
def findings(run, regression_run, guard_run, subject):
    """One Finding of every name, as it was read from its folder."""
    probe = NeighbourAccuracy(variation=DETECTOR["variation"], looks=12, early_stopping="never")
    model = nn.Sequential(subject.model, nn.Linear(10, 10, bias=False))
    with torch.no_grad():
        model[1].weight.copy_(torch.eye(10) + 0.2)
    other = examine(subject.with_model(model), limited(digits.test(), 80), [probe])[0]
    found = {finding.name: finding for each in (run, regression_run, guard_run) for finding in each}
    compared = compared_neighbours(found["robustness.neighbour_accuracy"], other)
    segmented = NeighbourSegmentation(variation=Noise(0.3), looks=3, least_iou=0.5)
    masks = np.random.default_rng(0).integers(0, 3, (6, 5, 7))
    images = np.random.default_rng(1).random((6, 1, 5, 7)).astype(np.float32)
    net = Subject(nn.Conv2d(1, 3, 3, padding=1), task="segmentation", classes=3, bounds=(0, 1))
    (overlaps,) = examine(net, ArraySource(images, masks), [segmented])
    (ranked,) = examine(subject, limited(digits.test(), 20), [NeighbourDiversity(looks=3)])
    return {**found, **{each.name: each for each in (compared, overlaps, ranked)}}


def plain(text):
    return text.replace("\u00a0", " ")


def said(answer):
    return plain("".join(part.text for part in answer.sentence))


def test_every_finding_of_the_room_is_declared_and_as_declared(findings):
    assert {name.removesuffix("-pool") for name in findings} == set(ROOM.findings)
    for name, finding in findings.items():
        assert finding.outputs.problems(finding) == []
        assert Outputs.from_json(finding.outputs.__canonical__()).problems(finding) == []
        assert declared(name) == ROOM.findings[name.partition("-")[0]]


def test_declarations_are_read_without_torch():
    code = "import sys, weakspot.robustness.outputs; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_declared_figure_is_drawn(findings):
    for finding in findings.values():
        drawn = figures(finding, [])
        assert len(drawn) == len(finding.outputs.figures), finding.name
        assert [figure.problem for figure in drawn] == [""] * len(drawn)
        assert all(figure.svg.startswith("<svg") and figure.caption for figure in drawn)


def test_every_number_prints_as_declared(findings):
    for finding in findings.values():
        for name, estimate in finding.summary.items():
            spec = finding.outputs.number(name)
            shown = show_estimate(name, estimate, spec)
            assert shown.value == in_unit(estimate.value, spec.unit)
            assert shown.about and estimate.about == shown.about
            assert shown.value.endswith("%") == (spec.unit == "share"), name


def test_columns_say_what_they_are(findings):
    for finding in findings.values():
        for name in [] if finding.table is None else finding.table.column_names:
            assert finding.outputs.column(name).about, (finding.name, name)
    outputs = findings["robustness.neighbour_accuracy"].outputs
    roles = {name: spec.role for name, spec in outputs.columns.items() if spec.role not in ("", "interval")}
    assert roles == {"id": "id", "correct": "correct", "target": "target", "prediction": "prediction"}
    assert outputs.columns["weak"].better == "lower" and outputs.columns["neighbour_accuracy"].better == "higher"


@pytest.mark.parametrize(
    ("fixture", "name", "good"),
    [
        ("run", "neighbour_accuracy", "predicted correctly"),
        ("regression_run", "neighbour_tolerance", "within the tolerance"),
    ],
)
def test_the_headline_is_told_from_neighbour_accuracy(request, fixture, name, good):
    made = request.getfixturevalue(fixture)
    summary = made[f"robustness.{name}"].summary
    told = said(answer("robustness", list(made)))
    weak = plain(in_unit(float(f"{summary['weak_share'].value:.3g}"), "share"))
    assert told.startswith(f"{weak} (95 % interval ")
    assert f"{summary['fragile'].value} of the weak inputs are {good} as they are, by luck" in told
    assert name == "neighbour_accuracy" or ("correct" not in told and "accuracy" not in told)
    assert f"in every one of {summary['worst_of'].value} looks." in told


def test_without_neighbour_accuracy_the_detectors_answer(run):
    evaluated, flagged = run["robustness.detector_evaluation"], run["robustness.weak_inputs-pool"]
    assert "of the inputs are weak: their small variations" in said(answer("robustness", [flagged, evaluated]))
    assert said(answer("robustness", [flagged])).startswith("A detector, without labels, flags ")
    trained = run["robustness.weak_detector"]
    assert "are weak:" not in said(answer("robustness", [trained]))  # of the training data


def test_next_steps_rest_on_what_was_found(run):
    told = [step for step in next_steps(list(run)) if step.finding]
    assert [step.finding.partition(".")[2] for step in told] == [
        "variation_effects", "neighbour_accuracy", "weak_inputs-pool",
    ]  # fmt: skip
    effects = run["robustness.variation_effects"].summary
    assert f"Vary {effects['hurts_most'].value} of the training inputs" in told[0].text
    fragile = run["robustness.neighbour_accuracy"].summary["fragile"].value
    assert f"like the {fragile} that are predicted correctly only by luck" in told[1].text
    assert told[1].command == "weakspot compare RUN NEW_RUN"
    assert told[2].text.startswith("Label the 5 inputs that are most likely weak.")


def test_no_step_trains_on_test_inputs(run):
    *_, fragile, selected = [step.text for step in next_steps(list(run)) if step.finding]
    assert "stay in the test set, held out: do not train on them" in fragile
    assert selected.endswith("Train on them only if they are no test inputs.")


def test_two_models_are_compared_by_what_the_columns_say(findings):
    before = findings["robustness.neighbour_accuracy"]
    found = {one.name: one for one in compare_findings(before, before)}
    assert {name: one.higher_is_better for name, one in found.items() if one.column} == {
        "weak": False, "neighbour_accuracy": True, "concentration": True, "variation_ratio": False, "entropy": False,
        "consistency": True, "correct": True, "correct_in_all": True,
    }  # fmt: skip
    numbers = [name for name, one in found.items() if not one.column]
    assert numbers == ["fragile", "looks_per_input", "worst_of", "inputs"]


OLD = {
    "neighbour_accuracy": {"neighbour_accuracy": "accuracy", "correct_looks": "right", "prediction": "predicted"},
    "weak_places": {"neighbour_accuracy": "accuracy", "prediction": "predicted"},
    "class_robustness": {"neighbour_accuracy": "accuracy"},
    "weak_strips": {"predictions": "answers", "correct_looks": "right"},
    "weak_inputs-pool": {"flagged": "weak"},
}
"""What columns were called in Findings of version 1."""


@pytest.mark.parametrize("name", OLD)
def test_findings_of_version_1_are_read_by_the_names_of_today(findings, tmp_path, name):
    finding = findings[f"robustness.{name}"]
    columns = [OLD[name].get(column, column) for column in finding.table.column_names]
    numbers = {"fragile": "lucky", "flagged_share": "called_weak"}
    summary = {numbers.get(key, key): estimate for key, estimate in finding.summary.items()}
    made = finding.provenance["parameters"].items()
    parameters = {{"threshold": "cutoff"}.get(key, key): v for key, v in made if key != "weak_if"}
    old = replace(finding, table=finding.table.rename_columns(columns), summary=summary, outputs=Outputs())
    old.with_provenance(parameters=parameters).save(tmp_path / "old")
    index = json.loads((tmp_path / "old/finding.json").read_text())
    (tmp_path / "old/finding.json").write_text(json.dumps({**index, "version": 1}))
    read = Finding.load(tmp_path / "old")
    assert read.table.equals(finding.table) and read.summary == finding.summary
    assert read.outputs.problems(read) == []
    boundary = {} if name == "weak_inputs-pool" else {"weak_if": "at_or_below"}  # version 1 had no choice
    assert read.provenance["parameters"] == finding.provenance["parameters"] | boundary


def class_robustness():
    """Of two classes, cats are weak."""
    columns = {
        "class": ["dog", "cat"], "weak_share": [0.1, 0.9], "weak_low": [0.05, 0.8], "weak_high": [0.2, 0.95],
        "inputs": [30, 10],
    }  # fmt: skip
    return Finding("robustness.class_robustness", table=table_of(columns))


def neighbours(fragile=7):
    table = table_of({"id": ["a", "b", "c"], "weak": [True] * 3, "target": ["cat", "dog", "cat"]})
    summary = {"weak_share": Estimate(0.5), "fragile": Estimate(fragile), "inputs": Estimate(100)}
    return Finding("robustness.neighbour_accuracy", summary=summary, table=table)


def strips():
    media = dict.fromkeys("abc", PICTURE)
    return Finding("robustness.weak_strips", table=table_of({"id": list(media)}), media=media)


def test_the_worst_is_the_class_with_most_weak_inputs():
    (found,) = worst([class_robustness(), neighbours(), strips()])[:1]
    assert plain(found.title) == "Class “cat”: 90 % of its inputs are weak"
    assert "95 % interval 80 % to 95 %, 10 inputs." in plain(found.text)
    assert found.share == pytest.approx(0.9 * 10 / 40) and [name for name, _ in found.pictures] == ["a", "c"]


def test_without_classes_the_worst_are_the_fragile_inputs():
    (found,) = worst([neighbours(), strips()])[:1]
    assert found.title == "7 inputs are predicted correctly only by luck" and found.share == 0.07
    assert [name for name, _ in found.pictures] == ["a", "b"]
    assert worst([neighbours(fragile=0)]) == []
    assert ROOM.worst([], "classification") == []


def test_the_worst_of_a_real_run(run):
    (found,) = ROOM.worst(list(run), "classification")
    summary = run["robustness.class_robustness"].summary
    assert f"Class “{summary['weakest_class'].value}”" in found.title and 0 < found.share <= 1
