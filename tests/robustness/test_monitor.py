"""The monitor beside a model at run time: it says what the examination said, and flags what it cannot know."""

import copy
import importlib.util

import numpy as np
import pytest
import torch

from tests.robustness.conftest import DETECTOR
from weakspot import Plan, Run, Step, Subject
from weakspot.core.errors import ConfigError, DataError, RunError, SubjectError
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.robustness import Detector, RuntimeMonitor, WeakDetector
from weakspot.robustness.monitor import content_ids


@pytest.fixture(scope="module")
def detector(detector_run):
    return Detector(detector_run["robustness.weak_detector"])


@pytest.mark.parametrize("mode", ["white_box", "queries", "together"])
def test_it_says_what_the_examination_said(detector_run, subject, detector, mode):
    batch = limited(digits.test(), 200).read(np.arange(20))
    result = RuntimeMonitor.load(detector_run, subject, mode=mode)(batch.inputs, batch.ids)
    table = detector_run["robustness.weak_inputs"].table.to_pydict()
    column = "probability" if mode == "together" else mode
    expected = dict(zip(table["id"], table[column], strict=True))
    np.testing.assert_allclose(result.probability, [expected[name] for name in batch.ids], atol=1e-4)
    assert result.flagged.tolist() == (result.probability >= detector.networks[mode].threshold).tolist()
    with torch.no_grad():
        assert result.prediction.tolist() == subject.model(batch.inputs).argmax(1).tolist()


def test_diversity_alone(detector_run, subject, detector):
    batch = limited(digits.test(), 200).read(np.arange(20))
    result = RuntimeMonitor.load(detector_run, subject, mode="black_box")(batch.inputs, batch.ids)
    table = detector_run["robustness.weak_inputs"].table.to_pydict()
    diversity = dict(zip(table["id"], table["concentration"], strict=True))
    flagged = [-diversity[name] >= detector.thresholds["black_box"] for name in batch.ids]
    assert result.flagged.tolist() == flagged
    assert ((result.probability > 0) & (result.probability < 1)).all()


def test_without_ids_the_same_input_gets_the_same_result(detector_run, subject):
    inputs = limited(digits.test(), 200).read(np.arange(6)).inputs
    monitor = RuntimeMonitor.load(detector_run, subject, mode="queries")
    whole, alone = monitor(inputs), monitor(inputs[3:4])
    assert whole.probability[3] == pytest.approx(alone.probability[0], abs=1e-5)
    assert len(set(content_ids(inputs))) == 6


@pytest.mark.parametrize("mode", ["white_box", "black_box"])
def test_inputs_of_another_size_are_refused(detector_run, subject, mode):
    monitor = RuntimeMonitor.load(detector_run, subject, mode=mode)
    with pytest.raises(DataError, match=r"expected inputs of shape \(inputs, 1, 8, 8\), got \(2, 1, 9, 8\)"):
        monitor(torch.zeros(2, 1, 9, 8))


@pytest.mark.parametrize("mode", ["white_box", "queries", "together", "black_box"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 255.0])
def test_what_the_detector_cannot_know_is_flagged(detector_run, subject, mode, value):
    batch = limited(digits.test(), 200).read(np.arange(6))
    monitor, inputs = RuntimeMonitor.load(detector_run, subject, mode=mode), batch.inputs.numpy().copy()
    usual = monitor(inputs, batch.ids)
    inputs[2, 0, 3, 3] = value
    result = monitor(inputs, batch.ids)
    assert result.flagged[2] and np.isnan(result.probability[2])
    others = np.arange(6) != 2
    np.testing.assert_allclose(result.probability[others], usual.probability[others], atol=1e-6)
    assert (result.flagged[others] == usual.flagged[others]).all()


def test_the_model_comes_back_as_it_was(detector_run, subject):
    subject.model.train()
    try:
        with RuntimeMonitor.load(detector_run, subject) as monitor:
            monitor(limited(digits.test(), 200).read(np.arange(2)).inputs)
            monitor(limited(digits.test(), 200).read(np.arange(2)).inputs)
        assert subject.model.training
        assert not any(module._forward_pre_hooks or module._forward_hooks for module in subject.model.modules())
    finally:
        subject.model.eval()


def test_another_model_is_refused(detector_run, subject):
    other = copy.deepcopy(subject.model)
    with torch.no_grad():
        other.classifier.bias.add_(0.1)
    with pytest.raises(SubjectError, match="fingerprints differ"):
        RuntimeMonitor.load(detector_run, subject.with_model(other))


def test_a_run_without_a_detector_is_refused(subject, tmp_path):
    with pytest.raises(RunError, match="holds no detector"):
        RuntimeMonitor.load(Run.create(tmp_path / "run"), subject)


def test_modes_it_does_not_have_are_refused(detector_run, subject):
    with pytest.raises(ConfigError, match="mode 'grey_box' is not known"):
        RuntimeMonitor.load(detector_run, subject, mode="grey_box")


def test_a_callable_is_monitored_by_queries(subject, tmp_path):
    net = subject.model
    box = Subject(net.forward, classes=10, scores="logits", bounds=(0, 1), fingerprint="digits 1")
    step = Step.of(WeakDetector, **{**DETECTOR, "sample": 120}, layers=None)
    run = Run.create(tmp_path / "run")
    Plan.of([step]).run(box, {"train": limited(digits.train(), 150)}, run)
    inputs = digits.test().read(np.arange(4)).inputs
    monitor = RuntimeMonitor.load(run, box)
    assert monitor.mode == "queries"
    assert monitor(inputs).probability.shape == (4,)
    with pytest.raises(ConfigError, match="no mode 'white_box', only queries, black_box"):
        RuntimeMonitor.load(run, box, mode="white_box")


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="needs onnxruntime")
def test_an_onnx_file_is_monitored_by_queries(subject, tmp_path):
    pytest.importorskip("onnx")
    from weakspot.models.onnx_file import OnnxModel

    path = tmp_path / "digits.onnx"
    example = torch.zeros(2, 1, 8, 8)
    named = {"input_names": ["input"], "output_names": ["output"], "dynamic_axes": {"input": {0: "n"}}}
    with pytest.warns(DeprecationWarning):
        torch.onnx.export(subject.model, (example,), path, **named, dynamo=False)
    model = OnnxModel(path)
    box = Subject(model, classes=10, scores="logits", bounds=(0, 1), fingerprint=model.fingerprint())
    run = Run.create(tmp_path / "run")
    step = Step.of(WeakDetector, **{**DETECTOR, "sample": 60}, layers=None)
    Plan.of([step]).run(box, {"train": limited(digits.train(), 80)}, run)
    result = RuntimeMonitor.load(run, box, mode="black_box")(digits.test().read(np.arange(4)).inputs)
    assert result.flagged.shape == (4,)
