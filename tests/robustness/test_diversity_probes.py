"""Inputs without labels: diversity, entropy and consistency, by plain counting; in file, report and viewer."""

import html
import re

import numpy as np
import pytest
import torch

from tests.references.robustness import simpson
from tests.viewer.runs import client_of
from weakspot import Plan, Run, examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.looks import Neighbour, Rotate, Shift
from weakspot.report import render
from weakspot.robustness import NeighbourAccuracy, NeighbourDiversity
from weakspot.robustness.room import steps
from weakspot.statistics import auroc

VARIATION = Rotate(15) & Shift(1)


@pytest.fixture(scope="module")
def unlabelled():
    return ArraySource(digits.test().read(np.arange(200)).inputs.numpy())


@pytest.fixture(scope="module")
def finding(subject, unlabelled):
    return examine(subject, unlabelled, [NeighbourDiversity(variation=VARIATION, looks=8, seed=3)])[0]


def test_every_number_is_that_of_the_predictions_themselves(finding, subject, unlabelled):
    look, batch = Neighbour(VARIATION, 3), unlabelled.read(np.arange(200))
    model = subject.model.eval()
    with torch.no_grad():
        said = [model(batch.inputs).argmax(1).tolist()]
        said += [model(look.images(batch.inputs, batch.ids, k)).argmax(1).tolist() for k in range(1, 9)]
    rows = {row["id"]: row for row in finding.table.to_pylist()}
    for name, own in zip(batch.ids, zip(*said, strict=True), strict=True):
        shares = [own.count(each) / 9 for each in set(own)]
        row = rows[name]
        assert row["concentration"] == pytest.approx(simpson(own))
        assert row["entropy"] == pytest.approx(-sum(share * np.log(share) for share in shares))
        assert row["variation_ratio"] == pytest.approx(1 - max(shares))
        assert row["consistency"] == pytest.approx(own[1:].count(own[0]) / 8)
        assert row["distinct_predictions"] == len(set(own)) and row["unanimous"] == (len(set(own)) == 1)
        assert row["prediction"] == digits.CLASSES[own[0]]


def test_what_differs_most_comes_first(finding):
    table = finding.table.to_pydict()
    assert (
        table["concentration"] == sorted(table["concentration"])
        and table["concentration"][0] < table["concentration"][-1] == 1
    )
    assert finding.summary["unanimous_share"].value == np.mean(table["unanimous"])
    assert finding.summary["looks"].value == 9 and finding.outputs.problems(finding) == []


def test_the_ranking_finds_inputs_that_are_predicted_incorrectly(subject):
    """With the labels that the probe never saw."""
    labelled = digits.test().read(np.arange(len(digits.test().ids)))
    probe = NeighbourDiversity(variation=VARIATION, looks=8)
    table = examine(subject, ArraySource(labelled.inputs.numpy()), [probe])[0].table
    targets = labelled.targets[[int(name) for name in table["id"].to_pylist()]]
    wrong = [
        digits.CLASSES[label] != said for label, said in zip(targets, table["prediction"].to_pylist(), strict=True)
    ]
    assert sum(wrong) > 10 and auroc(np.arange(len(wrong))[::-1], np.array(wrong)) > 0.7


def test_the_file_asks_for_it_and_report_and_viewer_show_it(subject, unlabelled, tmp_path):
    asked = steps({"neighbours": {"rotate": 30}, "unlabelled": "test", "looks": 6})
    assert [(step.probe, step.split, step.options["looks"]) for step in asked] == [(NeighbourDiversity, "test", 6)]
    run = Run.create(tmp_path / "run")
    Plan.of(asked).run(subject, {"test": unlabelled}, run)
    page = " ".join(html.unescape(re.sub("<[^>]+>", "", render(run))).split())
    assert "predicted alike in all 7 looks" in page and "label these first" in page
    client = client_of(run.folder)
    assert "weak" in [page["page"] for page in client.get("/api/run").json()["pages"]]
    told = client.get("/api/weak").json()
    assert told["strips"] == told["filters"] == [] and told["fragile"] is None
    (listed,) = told["differing"]
    assert ranked(client, listed) == differing(run["robustness.neighbour_diversity"])


def differing(finding):
    rows = [row for row in finding.table.to_pylist() if not row["unanimous"]]
    return [(row["id"], pytest.approx(row["concentration"]), pytest.approx(row["entropy"])) for row in in_order(rows)]


def in_order(rows):
    """By λ; the viewer sorts by one column, and keeps the order of the ids where values are equal."""
    return sorted(rows, key=lambda row: (row["concentration"], row["id"]))


def ranked(client, told):
    """What the viewer lists, in its order."""
    asked = {"split": told["split"], "filter": told["filters"], "sort": told["sort"], "limit": 256}
    found = client.get("/api/samples", params=asked).json()
    places = [[column["name"] for column in found["columns"]].index(name) for name in (told["sort"], *told["beside"])]
    return [(row["id"], *(row["values"][place] for place in places)) for row in found["rows"]]


def test_the_page_of_weak_inputs_shows_unlabelled_data_beside_labelled(subject, unlabelled, tmp_path):
    labelled = digits.test().read(np.arange(60))
    test = ArraySource(labelled.inputs.numpy(), labelled.targets.numpy())
    run = Run.create(tmp_path / "run")
    Plan.of(steps({"neighbours": {"rotate": 30}, "unlabelled": "pool", "looks": 6})).run(
        subject, {"test": test, "pool": unlabelled}, run
    )
    client = client_of(run.folder)
    told = client.get("/api/weak").json()
    (differ,) = told["differing"]
    assert (told["split"], differ["split"]) == ("test", "pool") and told["filters"]
    listed = ranked(client, differ)
    assert len(listed) > 10 and listed == differing(run["robustness.neighbour_diversity-pool"])


def test_beside_labelled_test_data_another_split_is_ranked():
    accuracy, ranked = steps({"unlabelled": "pool", "neighbours": {"rotate": 5}})
    assert (accuracy.probe, ranked.probe, ranked.split) == (NeighbourAccuracy, NeighbourDiversity, "pool")
    assert ranked.options["variation"] == accuracy.options["variation"] and ranked.options["looks"] == 15
    with pytest.raises(ConfigError, match="unlabelled is True: expected the name of a split"):
        steps({"unlabelled": True})
    with pytest.raises(ConfigError, match="expected looks ≥ 1"):
        NeighbourDiversity(looks=0)


def test_neighbour_accuracy_says_what_to_ask_instead(subject, unlabelled):
    with pytest.raises(DataError, match=r"no targets: add them .* robustness: \{unlabelled: test\}"):
        examine(subject, unlabelled, [NeighbourAccuracy(looks=2)])
