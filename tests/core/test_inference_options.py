"""Faster inference options: asked for, measured, and kept apart from plain float32."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from tests.core.helpers import Tally
from weakspot import ExecutionOptions, Plan, Run, Step, Subject, examine
from weakspot.core import speed
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.inference_options import disagreement
from weakspot.core.speed import try_inference_options
from weakspot.coverage.neuron_probes import NeuronCoverage
from weakspot.data.sources import ArraySource


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


@pytest.fixture
def data():
    images = np.random.default_rng(0).random((40, 3, 8, 8), dtype=np.float32)
    return ArraySource(images)


def measured(finding) -> dict:
    return finding.provenance["inference_options"]["against_float32"]


def test_plain_is_the_default_and_leaves_no_trace(net, data):
    assert "inference_options" not in examine(Subject(net), data, [Tally()])[0].provenance


def test_bf16_runs_in_bf16_and_says_how_far_it_lies_from_float32(net, data):
    subject = Subject(net, precision="bf16")
    finding = examine(subject, data, [Tally()])[0]
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        half = net(torch.from_numpy(data.read(np.arange(40)).inputs.numpy())).float()
    with torch.no_grad():
        exact = net(data.read(np.arange(40)).inputs)
    apart = (half - exact).abs().double()
    assert apart.max() > 1e-5
    assert measured(finding)["samples"] == 40
    assert measured(finding)["largest_difference"] == pytest.approx(float(apart.max()))
    assert measured(finding)["mean_difference"] == pytest.approx(float(apart.mean()))
    assert measured(finding)["answers_changed"] == float((half.argmax(1) != exact.argmax(1)).float().mean())


def test_channels_last_reaches_the_layers_and_changes_next_to_nothing(net, data):
    seen = []
    net[0].register_forward_pre_hook(
        lambda module, args: seen.append(args[0].is_contiguous(memory_format=torch.channels_last))
    )
    finding = examine(Subject(net, channels_last=True), data, [Tally()])[0]
    assert any(seen)
    assert measured(finding)["largest_difference"] < 1e-5


def test_a_float32_finding_is_never_used_for_bf16(net, data, tmp_path):
    run, plan = Run.create(tmp_path / "run"), Plan.of([Step.of(Tally)])
    exact = plan.run(Subject(net), {"test": data}, run)[0]
    half = plan.run(Subject(net, precision="bf16"), {"test": data}, run)[0]
    assert exact.digest != half.digest
    assert Subject(net).fingerprint() != Subject(net, precision="bf16").fingerprint()


def test_numbers_have_no_share_of_other_answers():
    found = disagreement(iter([torch.zeros(3, 2)]), lambda x: x, lambda x: x + 1, "regression", None)
    assert found == {"samples": 3, "largest_difference": 1.0, "mean_difference": 1.0}


def test_an_unknown_precision_is_refused(net):
    with pytest.raises(ConfigError, match="precision is 'fp8': choose 'float32' or 'bf16'"):
        Subject(net, precision="fp8")


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")
def test_compiled_where_nothing_is_taken_from_inside(net, data, monkeypatch):
    from torch._inductor import config

    monkeypatch.setattr(config, "compile_threads", 1)  # in this process: helpers of torch's would stay
    torch._dynamo.reset()
    subject = Subject(net, compile=True)
    execution = ExecutionOptions(batch_size=20)
    compiled, plain = (examine(s, data, [Tally()], execution=execution)[0] for s in (subject, Subject(net)))
    np.testing.assert_allclose(compiled.arrays["total"], plain.arrays["total"], rtol=1e-4)
    assert measured(compiled)["largest_difference"] < 1e-5
    inside = examine(subject, data, [NeuronCoverage()], execution=execution)[0]
    assert inside.summary == examine(Subject(net), data, [NeuronCoverage()], execution=execution)[0].summary


def test_what_cannot_be_compiled_is_said(net, monkeypatch):
    def refuse(model):
        def call(*args):
            raise RuntimeError("no such backend\nlong story")

        return call

    monkeypatch.setattr(torch, "compile", refuse)
    with pytest.raises(SubjectError, match="cannot be compiled: no such backend; leave compile off"):
        Subject(net, compile=True).quick(compiled=True)(torch.zeros(1, 3, 8, 8))


def test_every_way_is_tried_and_compared(net, data):
    found = {tried.name: tried for tried in try_inference_options(Subject(net), data.read(np.arange(16)).inputs)}
    assert list(found) == ["as it is", "channels_last", "bf16", "bf16, channels_last"]
    assert found["as it is"].speedup == 1
    assert found["as it is"].changed["largest_difference"] == 0
    assert found["bf16"].changed["largest_difference"] > 1e-5
    assert all(tried.per_second > 0 for tried in found.values())


@pytest.mark.parametrize(
    ("plain", "quick", "told"),
    [
        ([2, 2, 2, 2, 2], [1, 1, 1, 1, 1], (2, 2, 2, True)),
        ([2, 2, 40, 2, 2], [1, 1, 20, 1, 1], (2, 2, 2, True)),  # other work slows both
        ([2, 2, 2, 2, 2], [1, 1, 4, 1, 1], (2, 0.5, 2, False)),
        ([2, 2, 2, 2, 2], [4, 8, 4, 4, 4], (0.5, 0.25, 0.5, True)),
    ],
)
def test_speed_is_told_with_its_spread(net, data, monkeypatch, plain, quick, told):
    """By a clock that only the model moves on, by so many seconds for each pass in the plain way and in bfloat16."""
    now, taken = [0.0], {False: iter([0, *plain]), True: iter([0, *quick])}  # a first pass of each compares outputs

    def model(inputs):
        now[0] += next(taken[torch.is_autocast_enabled("cpu")])
        return net(inputs)

    monkeypatch.setattr(speed, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(speed, "CHOICES", {"bf16": speed.CHOICES["bf16"]})
    (tried,) = try_inference_options(Subject(model, fingerprint="by the clock"), data.read(np.arange(16)).inputs)
    assert (tried.speedup, tried.slowest, tried.fastest, tried.sure) == told
    assert tried.per_second == 16 / min(quick)


def test_a_way_that_does_not_work_says_why(data):
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.last = nn.Conv2d(3, 4, 3), nn.Linear(4 * 36, 2)

        def forward(self, images):
            return self.last(self.conv(images).view(len(images), -1))

    found = {tried.name: tried for tried in try_inference_options(Subject(Views()), data.read(np.arange(8)).inputs)}
    assert found["channels_last"].per_second is None
    assert "view size is not compatible" in found["channels_last"].trouble
    assert found["bf16"].speedup > 0
