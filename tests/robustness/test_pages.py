"""The room's pages of the viewer."""

import numpy as np
import pytest
from torch import nn

from tests.viewer.runs import client_of
from weakspot import Finding, Plan, Run, Subject
from weakspot.core.finding import table_of
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.robustness.room import steps


class Sum(nn.Module):
    """One number per image."""

    def forward(self, images):
        return images.flatten(1).sum(1)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What the room makes for a regression: neighbour accuracy within a tolerance, and nothing with pictures."""
    images = digits.test().read(np.arange(40)).inputs
    targets = Sum()(images).numpy() + np.random.default_rng(0).normal(size=40).astype(np.float32) * 2
    source = ArraySource(images.numpy(), targets)
    made = Run.create(tmp_path_factory.mktemp("pages") / "run")
    asked = steps({"neighbours": {"brightness": 0.05}, "tolerance": 2, "looks": 10})
    Plan.of(asked).run(Subject(Sum(), task="regression", bounds=(0, 1)), {"train": source, "test": source}, made)
    return made


def listed(client, told, filters):
    rows = client.get("/api/samples", params={"filter": filters, "sort": told["sort"], "limit": 100}).json()["rows"]
    return [row["id"] for row in rows]


def test_a_regression_has_its_page_of_weak_inputs(run):
    assert set(run.names()) == {"robustness.neighbour_tolerance", "robustness.squared_error"}
    client = client_of(run.folder)
    assert "weak" in [page["page"] for page in client.get("/api/run").json()["pages"]]
    shell = client.get("/weak")
    assert shell.status_code == 200 and "Weak inputs" in shell.text
    told = client.get("/api/weak").json()
    table = run["robustness.neighbour_tolerance"].table.sort_by("id").to_pylist()
    weak = {row["id"] for row in table if row["weak"]}
    fragile = {row["id"] for row in table if row["weak"] and row["correct"]}
    assert told["strips"] == [] and 0 < len(fragile) < len(weak) < 40
    assert set(listed(client, told, told["filters"])) == weak
    assert set(listed(client, told, told["fragile"])) == fragile
    accuracy = {row["id"]: row["neighbour_accuracy"] for row in table}
    order = [accuracy[name] for name in listed(client, told, told["filters"])]
    assert order == sorted(order)


def test_weak_and_correct_are_those_of_neighbour_accuracy(run, tmp_path):
    """Another Finding may call other predictions correct, and may say it first."""
    manifest, finding = run.manifest(), run["robustness.neighbour_tolerance"]
    ids = finding.table["id"].to_pylist()
    provenance = {name: finding.provenance[name] for name in ("subject", "data")}
    columns = {"id": ids, "correct": np.ones(len(ids), bool), "weak": np.zeros(len(ids), bool)}
    both = Run.create(tmp_path / "run")
    both.describe(subject=manifest["subject"], data=manifest["data"])
    both.save(Finding("causes.errors", table=table_of(columns), provenance=provenance))
    both.save(finding)
    client = client_of(both.folder)
    told = client.get("/api/weak").json()
    rows = [row for row in finding.table.to_pylist() if row["weak"]]
    assert set(listed(client, told, told["filters"])) == {row["id"] for row in rows}
    assert set(listed(client, told, told["fragile"])) == {row["id"] for row in rows if row["correct"]}
