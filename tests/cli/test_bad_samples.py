"""Bad samples and faster inference options, from the command line."""

import json
import re

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import BadSample, ConfigError

NETS = """
import torch
from torch import nn

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "bad_sample_nets.py").write_text(NETS)
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "test" / name).mkdir(parents=True)
        for number in range(6):
            pixels = rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "test" / name / f"{number}.png")
    (tmp_path / "test" / "cat" / "3.png").write_bytes(b"no image at all")
    file = tmp_path / "weakspot.yaml"
    file.write_text(
        "subject: {model: 'bad_sample_nets:net', scores: logits, bounds: [0, 1]}\n"
        "data: {test: test}\nask: {coverage: {criteria: [nc], agreement: false}}\n"
    )
    return file


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


def test_a_bad_sample_stops_the_run_and_names_itself(config):
    stopped = invoke("examine", config)
    assert isinstance(stopped.exception, BadSample)
    assert stopped.exception.sample == "cat/3.png"


def test_skipped_it_is_listed_and_the_rest_is_examined(config):
    done = invoke("examine", config, "--on-bad-sample", "skip")
    assert done.exit_code == 0, done.output
    assert "1 samples of test cannot be used and were left out" in done.stderr
    assert "cat/3.png" in done.stderr
    noted = json.loads((config.parent / "runs" / "weakspot" / "run.json").read_text())
    assert noted["data"]["test"]["samples"] == 11
    assert list(noted["data"]["test"]["skipped"]) == ["cat/3.png"]


def test_another_word_than_stop_and_skip_is_refused(config):
    refused = invoke("examine", config, "--on-bad-sample", "ignore")
    assert isinstance(refused.exception, ConfigError)
    assert "on_bad_sample is 'ignore', expected 'stop' or 'skip'" in str(refused.exception)


def test_a_faster_way_is_noted_in_the_finding(config):
    how = ["--on-bad-sample", "skip", "--precision", "bf16", "--channels-last"]
    assert invoke("coverage", config, *how).exit_code == 0
    finding = config.parent / "runs" / "weakspot" / "findings" / "coverage.neuron_coverage" / "finding.json"
    options = json.loads(finding.read_text())["provenance"]["inference_options"]
    assert (options["precision"], options["channels_last"], options["compile"]) == ("bf16", True, False)
    assert options["against_float32"]["largest_difference"] > 0


def test_the_ways_can_be_tried_beforehand(config, monkeypatch):
    from weakspot.core import speed

    monkeypatch.delitem(speed.CHOICES, "compile")  # a minute
    (config.parent / "test" / "cat" / "3.png").unlink()
    shown = invoke("plan", config, "--inference-options")
    assert "channels_last" in shown.stdout
    assert "of the answers change" in shown.stdout
    assert re.search(r"bf16 .*/s +\d+\.\d\d× \(\d+\.\d\d to \d+\.\d\d\)", shown.stdout)
    tried = json.loads(invoke("plan", config, "--inference-options", "--json").stdout)
    assert [way["name"] for way in tried] == ["as it is", "channels_last", "bf16", "bf16, channels_last"]
