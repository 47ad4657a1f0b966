"""From `weakspot.yaml` to the report: samples that belong together, and copies between the splits."""

import csv
import re

import numpy as np
import pytest
from PIL import Image

from tests.cli.calling import call

NETS = """
import torch
from torch import nn


class Bright(nn.Module):
    def forward(self, images):
        bright = images.mean((1, 2, 3)) - 0.5
        return torch.stack([-bright, bright], 1)
"""
CONFIG = """
subject: {{model: "bright_nets:Bright", classes: [dark, bright], scores: logits, bounds: [0, 1]}}
data:
  test: {{path: test.csv, mode: L{group}}}
  train: {{path: train.csv, mode: L}}
ask:
  coverage: {{criteria: [], duplicates: true}}
  robustness: {{looks: 4, analysis: false}}
  predictions: {{}}
"""


@pytest.fixture
def folder(tmp_path):
    """24 test images of 6 films, and 12 training images of which 4 are test images."""
    rng = np.random.default_rng(0)
    (tmp_path / "bright_nets.py").write_text(NETS)
    pictures = {}
    for split, count in (("train", 12), ("test", 24)):
        rows = []
        for number in range(count):
            level = rng.integers(30, 220)
            pixels = np.clip(level + rng.integers(-30, 30, (12, 12)), 0, 255).astype(np.uint8)
            if split == "test" and number < 4:
                pixels = pictures["train", number]
            pictures[split, number] = pixels
            name = f"{split}-{number}.png"
            Image.fromarray(pixels).save(tmp_path / name)
            film = f"film {number // 4}"
            rows.append([name, "bright" if level > 127 else "dark", film, film])
        with (tmp_path / f"{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["path", "target", "film", "reel"], *rows])
    return tmp_path


def examined(folder, group, *arguments):
    (folder / "weakspot.yaml").write_text(CONFIG.format(group=group))
    return call("examine", str(folder / "weakspot.yaml"), "--run", str(folder / "run"), *arguments)


def test_groups_and_copies_reach_findings_and_report(folder):
    from weakspot import Run

    code, _, said = examined(folder, ", group: film")
    assert code == 0, said
    run = Run.open(folder / "run")
    finding = run["repair.predictions"]
    assert finding.summary["sample_groups"].value == 6
    assert finding.summary["sample_groups"].about == "groups by film; intervals go by them"
    assert run["coverage.duplicates"].summary["leaked_exact"].value == 4
    code, _, said = call("report", str(folder / "run"))
    page = (folder / "run" / "report.html").read_text()
    assert code == 0, said
    text = " ".join(re.sub(r"<[^>]*>", "", page).split())
    assert "16.7 % of the 24 test images have a copy in the training data." in text.replace("\u00a0", " ")
    assert "Of the test images with a copy in the training data" in text and "Take the 4 test images" in text


def test_without_a_group_the_column_that_suggests_one_is_named(folder):
    code, _, said = examined(folder, "")
    assert code == 0
    assert "test: the metadata have a column 'film' with the same value for several samples" in " ".join(said.split())
    assert "(group:)" in said


def test_a_column_that_is_not_there_is_named_with_its_line(folder):
    code, _, said = examined(folder, ", group: flim")
    assert code == 2
    assert "weakspot.yaml:4" in said and "group is 'flim'" in said and "did you mean 'film'" in said
