"""What the room declares of its Findings is what its probes make, and readers can draw, tell and print it."""

from dataclasses import replace

import numpy as np
import pytest

from weakspot import Plan, Run, Subject
from weakspot.causes.finding_outputs import ROOT_CAUSES
from weakspot.causes.labelling import RunLabels, current_labels, export_labels, labels_in
from weakspot.causes.outputs import worst
from weakspot.causes.room import steps
from weakspot.core.digest import canonical
from weakspot.core.outputs import Outputs
from weakspot.formatting import in_unit, number, percent
from weakspot.report.drawings import figures
from weakspot.report.headlines import answer
from weakspot.report.next_steps import next_steps
from weakspot.rooms import declared, rooms

from .conftest import CLASSES, images

MADE = ("causes.errors", "causes.error_slices", "causes.root_causes", "causes.unsafe")


@pytest.fixture(scope="module")
def labelled(examined, tmp_path_factory):
    """The labels of the unsafe set, two of which are given."""
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    export_labels(examined["causes.unsafe"], path)
    given = path.read_text(encoding="utf-8-sig").replace(",\n", ",x\n", 2)
    copy = Run.create(path.parent / "run")
    copy.save(examined["causes.unsafe"])
    RunLabels(copy).change(labels_in(copy["causes.unsafe"], given.encode(), "labels.csv"))
    return current_labels(copy)


@pytest.mark.parametrize("name", MADE)
def test_findings_are_as_declared(examined, name):
    finding = examined[name]
    assert canonical(finding.outputs) == canonical(declared(name))
    assert finding.outputs.problems(finding) == []


def test_labels_are_as_declared(labelled):
    assert labelled.outputs == declared("causes.labels") != Outputs()
    assert labelled.outputs.problems(labelled) == []
    assert labelled.summary["labelled"].value == 2


def test_findings_without_errors_are_as_declared(net, tmp_path):
    """Where nothing is predicted incorrectly there are no clusters, and no images to label."""
    test = images("i", 12)
    targets = net(test.read(np.arange(12)).inputs).argmax(1).numpy()
    run = Run.create(tmp_path / "run")
    splits = {"test": images("i", 12, targets), "pool": images("u", 6, seed=3)}
    Plan.of(steps({"select": {"from": "pool", "budget": 2}})).run(
        Subject(net, classes=CLASSES, scores="logits"), splits, run
    )
    found = [run[name] for name in MADE]
    assert found[0].summary["errors"].value == 0
    assert [finding.outputs.problems(finding) for finding in found] == [[], [], [], []]
    assert worst(found, "classification") == []
    said = "".join(part.text for part in answer("causes", found).sentence)
    assert said.startswith(f"{percent(0.0)} (95") and said.endswith("0 in all.")


def test_every_declared_figure_is_drawn(examined):
    made = examined["causes.root_causes"]
    drawn = figures(made, list(CLASSES))
    assert [figure.caption for figure in drawn] == [figure.caption for figure in ROOT_CAUSES.figures]
    assert all(figure.svg.startswith("<svg") and not figure.problem for figure in drawn)
    last = len(examined["causes.root_causes"].table)
    assert f"cluster {last}" in drawn[0].svg and f"cluster {last + 1}" not in drawn[0].svg


def test_the_headline_is_told_from_the_findings(examined):
    found = [examined[name] for name in MADE if name != "causes.error_slices"]
    summary = examined["causes.root_causes"].summary
    assert found[1].name == "causes.root_causes" and summary["agreement_near_chance"].value < 0.2
    better = {name: one for name, one in summary.items() if name != "agreement_near_chance"}
    found[1] = replace(found[1], summary=better)
    said = "".join(part.text for part in answer("causes", found).sentence)
    errors, clusters, inspect = (number(summary[name].value) for name in ("errors", "clusters", "images_to_inspect"))
    assert said.startswith(f"{errors} errors fall into {clusters} clusters of similar heat maps.")
    assert f"Look at {inspect} images to see what they share." in said
    assert "resampled" not in said  # no stability was measured


def test_next_steps_name_the_images_to_look_at_and_to_label(examined):
    told = next_steps([examined[name] for name in MADE])
    inspect = number(examined["causes.root_causes"].summary["images_to_inspect"].value)
    assert told[0].text.startswith(f"Look at {inspect} images") and "do not train on them" in told[0].text
    assert told[1].text.startswith("Label the 12 images") and told[1].command.startswith("weakspot causes label RUN")


def test_the_largest_cluster_is_the_worst(examined):
    finding = examined["causes.root_causes"]
    (largest,) = worst([examined["causes.errors"], finding], "classification")
    size = max(finding.table["images"].to_pylist())
    assert largest.title == f"{size} errors with similar heat maps"
    assert "need not have one cause" in largest.text
    assert largest.share == size / 80
    assert [name for name, _ in largest.pictures] == ["cluster 1"]


@pytest.mark.parametrize("name", MADE)
def test_every_number_prints_in_its_declared_unit(examined, name):
    finding = examined[name]
    for key, estimate in finding.summary.items():
        declared_number = finding.outputs.number(key)
        assert declared_number.about
        text = in_unit(estimate.value, declared_number.unit)
        assert text.endswith("%") == (declared_number.unit == "share" and estimate.value is not None), key


def test_the_viewer_has_a_page_for_causes_clusters_and_labels():
    pages = {page.name: page.findings for page in rooms()["causes"].pages}
    assert pages == {
        "causes": ("causes.error_slices",),
        "clusters": ("causes.root_causes",),
        "label": ("causes.unsafe", "classes.label_plan"),
    }
    assert ROOT_CAUSES.by_sample == {"cluster": ("image_id", "image_cluster")}
