"""`weakspot causes select|label|export`, from a configuration to labels in the Run."""

import csv
import json
import textwrap

import numpy as np
import pytest

from weakspot import engines
from weakspot.causes.labelling import RunLabels
from weakspot.cli import retraining
from weakspot.core.engine import LocalEngine
from weakspot.core.run import Run

NETS = """
import torch
from torch import nn

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
"""


@pytest.fixture
def small(tmp_path):
    """A configuration of a small net that is often wrong, with all three splits; no labels for the pool."""
    (tmp_path / "small_causes_net.py").write_text(NETS)
    rng = np.random.default_rng(0)
    counts = {"train": 20, "test": 60, "pool": 40}
    arrays = {f"x_{split}": rng.random((count, 1, 8, 8), dtype=np.float32) for split, count in counts.items()}
    targets = {f"y_{split}": rng.integers(0, 3, counts[split]) for split in ("train", "test")}
    np.savez(tmp_path / "data.npz", **arrays, **targets)
    (tmp_path / "weakspot.yaml").write_text(
        textwrap.dedent(
            """
            subject: {model: "small_causes_net:net", classes: [x, y, z], scores: logits}
            data: {train: data.npz, test: data.npz, pool: data.npz}
            ask:
              causes: {replicates: 0, clusters: 4, select: {from: pool, budget: 3, limit: 1.0}}
            """
        )
    )
    return tmp_path


def test_from_clusters_to_labels_and_folders(weakspot, small):
    config, run = small / "weakspot.yaml", small / "runs" / "weakspot"
    code, out, _ = weakspot("causes", "select", config, "--budget", 6, "--json")
    assert code == 0
    found = {entry["name"]: entry["summary"] for entry in json.loads(out)}
    assert found["causes.unsafe"]["unsafe"]["value"] == 6

    code, out, err = weakspot("causes", "label", run, "--export", small / "labels.csv")
    assert (code, err) == (0, "")
    assert out.startswith("0 labelled, 6 still missing; wrote")
    with (small / "labels.csv").open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    rows[0][3] = "y"
    (small / "labels.csv").write_text("\n".join(",".join(row) for row in [header, *rows]))
    assert weakspot("causes", "label", run, "--import", small / "labels.csv")[1] == "1 labelled, 5 still missing\n"
    assert json.loads(weakspot("causes", "label", run, "--status", "--json")[1]) == {"labelled": 1, "missing": 5}
    RunLabels(Run.open(run)).change({rows[2][0]: "x"})  # as the viewer does, a moment ago
    assert json.loads(weakspot("causes", "label", run, "--status", "--json")[1]) == {"labelled": 2, "missing": 4}
    weakspot("causes", "label", run, "--export", small / "more.csv")
    with (small / "more.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [row[3] for row in csv.reader(file)] == ["label", "y", "", "x", "", "", ""]
    known = retraining._labels_of(Run.open(run))["label"].to_pylist()  # what `causes retrain` trains on
    assert known == ["y", None, "x", None, None, None]
    rows[1][3] = "yy"
    (small / "labels.csv").write_text("\n".join(",".join(row) for row in [header, *rows]))
    code, _, err = weakspot("causes", "label", run, "--import", small / "labels.csv")
    assert code == 2
    assert "labels.csv:3: 'yy' is not a class: did you mean 'y'?" in err

    code, out, err = weakspot("causes", "export", config, "--output", small / "clusters", "--quiet", "--heat-maps")
    assert (code, out, err) == (0, "", "")
    made = sorted(path.name for path in (small / "clusters").iterdir())
    assert {"cluster-01", "layers", "train_results.csv", "test_results.csv"} <= set(made)
    assert any((small / "clusters" / "layers").rglob("heat_maps.npy"))
    code, _, err = weakspot("causes", "export", config, "--output", small / "clusters")
    assert code == 2
    assert "exists already" in err


class Noting(LocalEngine):
    """This process; notes how many passes it was asked for, and with which options it was made."""

    def __init__(self, asked, options):
        self._asked = asked
        asked.append(options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._asked.append("closed")

    def run(self, work, shards, progress):
        self._asked.append([probe.name() for probe in work.job.probes])
        super().run(work, shards, progress)


@pytest.mark.parametrize("command", [["select"], ["export", "--output", "clusters"]])
def test_the_passes_are_made_by_the_engine_that_was_asked_for(weakspot, small, monkeypatch, command):
    asked = []
    monkeypatch.setattr(engines, "RayEngine", lambda **options: Noting(asked, options), raising=False)
    monkeypatch.chdir(small)
    doing = ["--engine", "ray", "--address", "10.0.0.1:6379", "--engine-workers", 2, "--threads", 2]
    code, _, err = weakspot("causes", *command, "weakspot.yaml", *doing, "--quiet")
    assert (code, err) == (0, "")
    assert (asked[0], asked[-1]) == ({"address": "10.0.0.1:6379", "workers": 2}, "closed")
    assert "causes.root_causes" in {name for probes in asked[1:-1] for name in probes}
    kept = Run.open(small / "runs" / "weakspot")["causes.root_causes"]
    assert kept.provenance["execution"]["threads"] == 2


def test_a_run_without_images_to_label_says_how_to_choose_some(weakspot, small):
    weakspot("causes", small / "weakspot.yaml", "--quiet", "--set", "select=null")
    code, _, err = weakspot("causes", "label", small / "runs" / "weakspot", "--status")
    assert code == 2
    assert "weakspot causes select CONFIG" in err
    code, _, err = weakspot("causes", "label", small / "runs" / "weakspot")
    assert code == 2
    assert "give --export FILE, --import FILE or --status" in err
