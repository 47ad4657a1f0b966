"""Detectors on a real network: trained, evaluated beside baselines, asked of inputs, and standing guard."""

import importlib.util

import numpy as np
import pytest
import torch
from torch import nn

from tests.references.robustness import f1
from tests.robustness.conftest import DETECTOR
from weakspot import Plan, Run, Step, Subject, examine
from weakspot.core.errors import ConfigError, RunError, SubjectError
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.robustness.detectors import WeakDetector
from weakspot.robustness.evaluation import Calls, baselines, comparison, figures
from weakspot.robustness.guard import Guard, content_ids
from weakspot.robustness.learning import Detector
from weakspot.robustness.neighbours import NeighbourAccuracy, NeighbourTolerance, SquaredError
from weakspot.robustness.room import steps
from weakspot.robustness.understanding import ClassRobustness
from weakspot.statistics import detection


@pytest.fixture(scope="module")
def detector(guarded):
    return Detector(guarded["robustness.weak_detector"])


def by_method(finding):
    return {row["method"]: row for row in finding.table.to_pylist()}


def test_it_beats_what_costs_nothing(guarded):
    told = by_method(guarded["robustness.detector_evaluation"])
    assert set(told) == {"white_box", "queries", "together", "black_box", "top1", "max_softmax", "random", "flag_all"}
    assert told["together"]["average_precision"] > told["random"]["average_precision"] + 0.1
    assert told["together"]["auroc"] > told["max_softmax"]["auroc"]
    assert told["together"]["f1"] > told["flag_all"]["f1"]
    for row in told.values():
        for figure in ("f1", "precision", "recall", "average_precision", "auroc"):
            assert not row[figure] < row[f"{figure}_low"] and not row[figure] > row[f"{figure}_high"]


def test_the_weak_share_stands_beside_every_figure(guarded):
    finding = guarded["robustness.detector_evaluation"]
    share = finding.summary["weak_share"]
    assert share.low < share.value < share.high
    assert {row["weak_share"] for row in finding.table.to_pylist()} == {share.value}
    flag_all = by_method(finding)["flag_all"]
    assert flag_all["f1"] == pytest.approx(2 * share.value / (1 + share.value))
    assert flag_all["precision"] == pytest.approx(share.value)


def test_the_truth_is_that_of_looks_that_were_no_queries(guarded, subject):
    """Weak by the original and looks 9 to 20, counted by hand from single looks."""
    variation, source = DETECTOR["variation"], limited(digits.test(), 200)
    batch = source.read(np.arange(200))
    from weakspot.looks import Neighbour

    look, right = Neighbour(variation, 0, (0, 1)), []
    with torch.no_grad():
        for number in (0, *range(9, 21)):
            images = batch.inputs if number == 0 else look.images(batch.inputs, batch.ids, number)
            right.append((subject.model(images).argmax(1) == batch.targets).numpy())
    expected = (np.mean(right, axis=0) <= 0.75).mean()
    assert guarded["robustness.detector_evaluation"].summary["weak_share"].value == pytest.approx(expected)


def test_calls_come_most_probable_first_and_need_no_labels(guarded, subject, detector):
    table = guarded["robustness.weak_inputs"].table.to_pydict()
    assert table["probability"] == sorted(table["probability"], reverse=True)
    assert table["weak"] == [p >= detector.networks["together"].threshold for p in table["probability"]]


def test_the_sample_is_drawn_by_ids(guarded):
    assert guarded["robustness.weak_detector"].summary["inputs"].value == 300


def test_a_black_box_detector_sees_no_layer(subject):
    black_box = Subject(subject.model.forward, classes=digits.CLASSES, scores="logits", fingerprint="digits 1")
    probe = WeakDetector(**{**DETECTOR, "sample": 120}, layers=None)
    found = Detector(examine(black_box, limited(digits.train(), 150), [probe])[0])
    assert found.modes == ["queries", "black_box"] and found.best == "queries"


def test_figures_by_hand():
    weak = np.array([True, True, False, False, False])
    calls = Calls("together", np.array([0.9, 0.2, 0.8, 0.1, 0.0]), np.array([True, False, True, False, False]))
    found = figures(calls, weak)
    assert found["f1"][0] == f1([True, False, True, False, False], weak.tolist()) == 0.5
    assert found["precision"][0] == found["recall"][0] == 0.5
    assert found["average_precision"][0] == pytest.approx((1 + 2 / 3) / 2)
    assert comparison([calls], weak)["flagged_share"][0] == 0.4
    assert np.isnan(figures(calls, ~weak & weak)["average_precision"][0])


def test_baselines_by_hand():
    ids, confidence = list("abcd"), np.array([0.3, 0.76, 0.75, 0.99])
    found = {c.method: c for c in baselines(ids, confidence, cutoff=0.75, tuned=-0.8, flagged=2, seed=1)}
    assert found["top1"].flagged.tolist() == [True, False, False, False]
    assert found["max_softmax"].flagged.tolist() == [True, True, True, False]
    assert found["random"].flagged.sum() == 2 and found["flag_all"].flagged.all()
    other = {c.method: c for c in baselines(ids[::-1], confidence, cutoff=0.75, tuned=-0.8, flagged=2, seed=1)}
    assert (other["random"].flagged[::-1] == found["random"].flagged).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": 50}, "some looks tell the truth"),
        ({"layers": None, "queries": 0}, "must see something"),
        ({"rule": "guess"}, "choose one of quantile"),
        ({"sample": 3}, "cannot be cut into 5 folds"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        WeakDetector(**options)


@pytest.mark.parametrize(("cutoff", "said", "weak_share"), [(0.0, "strong", 0), (0.99, "weak", 1)])
def test_where_nothing_can_be_learnt_the_other_questions_go_on(subject, tmp_path, cutoff, said, weak_share):
    """A net that is always right, and one that never is."""
    always = limited(digits.train(), 30).read(np.arange(30))
    with torch.no_grad():
        answers = subject.model(always.inputs).argmax(1).numpy()
    source = ArraySource(always.inputs.numpy(), answers if said == "strong" else (answers + 1) % 10)
    asked = steps({"neighbours": {"brightness": 0.001}, "looks": 6, "cutoff": cutoff, "judge": "test",
                   "detector": {"queries": 2, "folds": 2, "epochs": 1}})  # fmt: skip
    run = Run.create(tmp_path / "run")
    Plan.of([*asked, Step.of(ClassRobustness, looks=2)]).run(subject, {"train": source, "test": source}, run)
    for name in ("weak_detector", "detector_evaluation", "weak_inputs"):
        found = run[f"robustness.{name}"]
        detector = found.summary["detector"]
        assert detector.value is None and f"all 30 training inputs are {said} at" in detector.about
        assert found.table is None and set(found.summary) <= {"weak_share", "detector", "inputs"}
        assert "weak_share" not in found.summary or found.summary["weak_share"].value == weak_share
    assert "robustness.class_robustness" in run
    with pytest.raises(ConfigError, match=f"detector has learnt nothing: .*all 30 training inputs are {said} at"):
        Guard.load(run, subject)


class TestGuard:
    @pytest.mark.parametrize("mode", ["white_box", "queries", "together"])
    def test_it_says_what_the_examination_said(self, guarded, subject, detector, mode):
        batch = limited(digits.test(), 200).read(np.arange(20))
        judged = Guard.load(guarded, subject, mode=mode)(batch.inputs, batch.ids)
        table = guarded["robustness.weak_inputs"].table.to_pydict()
        column = "probability" if mode == "together" else mode
        expected = dict(zip(table["id"], table[column], strict=True))
        np.testing.assert_allclose(judged.probability, [expected[name] for name in batch.ids], atol=1e-4)
        assert judged.weak.tolist() == (judged.probability >= detector.networks[mode].threshold).tolist()
        with torch.no_grad():
            assert judged.predicted.tolist() == subject.model(batch.inputs).argmax(1).tolist()

    def test_diversity_alone(self, guarded, subject, detector):
        batch = limited(digits.test(), 200).read(np.arange(20))
        judged = Guard.load(guarded, subject, mode="black_box")(batch.inputs, batch.ids)
        table = guarded["robustness.weak_inputs"].table.to_pydict()
        diversity = dict(zip(table["id"], table["diversity"], strict=True))
        flagged = [-diversity[name] >= detector.thresholds["black_box"] for name in batch.ids]
        assert judged.weak.tolist() == flagged
        assert ((judged.probability > 0) & (judged.probability < 1)).all()

    def test_without_ids_the_same_input_gets_the_same_judgement(self, guarded, subject):
        inputs = limited(digits.test(), 200).read(np.arange(6)).inputs
        guard = Guard.load(guarded, subject, mode="queries")
        whole, alone = guard(inputs), guard(inputs[3:4])
        assert whole.probability[3] == pytest.approx(alone.probability[0], abs=1e-5)
        assert len(set(content_ids(inputs))) == 6

    @pytest.mark.parametrize("mode", ["white_box", "queries", "together", "black_box"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, 255.0])
    def test_what_the_detector_cannot_know_is_called_weak(self, guarded, subject, mode, value):
        batch = limited(digits.test(), 200).read(np.arange(6))
        guard, inputs = Guard.load(guarded, subject, mode=mode), batch.inputs.numpy().copy()
        usual = guard(inputs, batch.ids)
        inputs[2, 0, 3, 3] = value
        judged = guard(inputs, batch.ids)
        assert judged.weak[2] and np.isnan(judged.probability[2])
        others = np.arange(6) != 2
        np.testing.assert_allclose(judged.probability[others], usual.probability[others], atol=1e-6)
        assert (judged.weak[others] == usual.weak[others]).all()

    def test_the_model_comes_back_as_it_was(self, guarded, subject):
        subject.model.train()
        try:
            with Guard.load(guarded, subject) as guard:
                guard(limited(digits.test(), 200).read(np.arange(2)).inputs)
                guard(limited(digits.test(), 200).read(np.arange(2)).inputs)
            assert subject.model.training
            assert not any(module._forward_pre_hooks or module._forward_hooks for module in subject.model.modules())
        finally:
            subject.model.eval()

    def test_another_model_is_refused(self, guarded, subject):
        import copy

        other = copy.deepcopy(subject.model)
        with torch.no_grad():
            other.classifier.bias.add_(0.1)
        with pytest.raises(SubjectError, match="fingerprints differ"):
            Guard.load(guarded, subject.with_model(other))

    def test_a_run_without_a_detector_is_refused(self, subject, tmp_path):
        with pytest.raises(RunError, match="holds no detector"):
            Guard.load(Run.create(tmp_path / "run"), subject)

    def test_modes_it_does_not_have_are_refused(self, guarded, subject):
        with pytest.raises(ConfigError, match="mode 'grey_box' is not known"):
            Guard.load(guarded, subject, mode="grey_box")

    def test_a_callable_is_guarded_by_queries(self, subject, tmp_path):
        net = subject.model
        box = Subject(net.forward, classes=10, scores="logits", bounds=(0, 1), fingerprint="digits 1")
        step = Step.of(WeakDetector, **{**DETECTOR, "sample": 120}, layers=None)
        run = Run.create(tmp_path / "run")
        Plan.of([step]).run(box, {"train": limited(digits.train(), 150)}, run)
        inputs = digits.test().read(np.arange(4)).inputs
        guard = Guard.load(run, box)
        assert guard.mode == "queries"
        assert guard(inputs).probability.shape == (4,)
        with pytest.raises(ConfigError, match="no mode 'white_box', only queries, black_box"):
            Guard.load(run, box, mode="white_box")

    @pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="needs onnxruntime")
    def test_an_onnx_file_is_guarded_by_queries(self, subject, tmp_path):
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
        judged = Guard.load(run, box, mode="black_box")(digits.test().read(np.arange(4)).inputs)
        assert judged.weak.shape == (4,)


class Steering(nn.Module):
    """Numbers instead of classes: where the ink lies, times how much there is. Shifts hurt most where there is much."""

    def __init__(self):
        super().__init__()
        self.hidden, self.last = nn.Linear(64, 2, bias=False), nn.Linear(2, 1, bias=False)
        ramp = torch.arange(8.0).repeat(8) - 3.5
        with torch.no_grad():
            self.hidden.weight.copy_(torch.stack([ramp / 8, torch.full((64,), 1 / 8)]))
            self.last.weight.copy_(torch.tensor([[1.0, 0.0]]))

    def forward(self, images):
        return self.last(self.hidden(images.flatten(1)))[:, 0]


@pytest.fixture(scope="module")
def driving():
    """Images of different brightness; targets with an error of the size of a shift by a pixel."""
    net, rng = Steering().eval(), np.random.default_rng(1)
    images = (
        digits.train().read(np.arange(400)).inputs
        * torch.from_numpy(rng.uniform(0.2, 1, 400)).float()[:, None, None, None]
    )
    with torch.no_grad():
        targets = net(images).numpy() + rng.normal(size=400).astype(np.float32)
    ids = [f"frame-{i:03d}" for i in range(400)]
    return Subject(net, task="regression", bounds=(0, 1)), ArraySource(images.numpy(), targets, ids=ids)


class TestNumbers:
    def test_right_is_within_the_tolerance(self, driving):
        subject, source = driving
        variation = DETECTOR["variation"]
        error = examine(subject, source, [SquaredError()])[0]
        batch = source.read(np.arange(400))
        with torch.no_grad():
            residual = (subject.model(batch.inputs) - batch.targets).double().numpy()
        assert error.summary["mean_squared_error"].value == pytest.approx((residual**2).mean())
        probe = NeighbourTolerance(variation=variation, looks=6, release="never", trained=error)
        table = examine(subject, source, [probe])[0].table.sort_by("id").to_pydict()
        from weakspot.looks import Neighbour

        look, right = Neighbour(variation, 0, (0, 1)), [residual**2 <= 3 * (residual**2).mean()]
        with torch.no_grad():
            for number in range(1, 7):
                answers = subject.model(look.images(batch.inputs, batch.ids, number)) - batch.targets
                right.append(answers.double().numpy() ** 2 <= 3 * (residual**2).mean())
        np.testing.assert_allclose(table["accuracy"], np.mean(right, axis=0))

    def test_the_weak_share_is_known_where_nothing_can_be_learnt(self, driving, tmp_path):
        """All numbers are within a wide tolerance of the training data's error."""
        subject, source = driving
        asked = steps({"neighbours": {"brightness": 0.001}, "tolerance": 50, "looks": 3, "detector": {"sample": 60}})
        run = Run.create(tmp_path / "run")
        Plan.of(asked).run(subject, {"train": source, "test": source}, run)
        assert "all 60 training inputs are strong" in run["robustness.weak_detector"].summary["detector"].about
        assert run["robustness.detector_evaluation"].summary["weak_share"].value == 0

    def test_the_white_box_detector_reads_raw_features(self, driving, tmp_path):
        subject, source = driving
        neighbours, detector = {"shift": 3}, {"sample": 300, "epochs": 60}
        asked = steps({"neighbours": neighbours, "tolerance": 3.0, "looks": 20, "detector": detector})
        run = Run.create(tmp_path / "run")
        Plan.of(asked).run(subject, {"train": source, "test": source}, run)
        told = by_method(run["robustness.detector_evaluation"])
        assert set(told) == {"white_box", "random", "flag_all"}
        assert told["white_box"]["auroc"] > 0.8
        judged = Guard.load(run, subject)(source.read(np.arange(5)).inputs)
        assert judged.predicted.shape == (5,) and judged.probability.shape == (5,)


def test_labels_are_right_if_the_whole_set_is():
    torch.manual_seed(3)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))
    images = digits.test().read(np.arange(30)).inputs
    with torch.no_grad():
        targets = (net(images) > 0).numpy()
    subject = Subject(net, task="multilabel", classes=list("abcde"), scores="logits", bounds=(0, 1))
    probe = NeighbourAccuracy(variation=DETECTOR["variation"], looks=8, release="never")
    table = examine(subject, ArraySource(images.numpy(), targets), [probe])[0].table.to_pydict()
    assert table["target"] == table["predicted"] and max(table["accuracy"]) < 1.01
    assert all(
        low <= share <= high for low, share, high in zip(table["low"], table["accuracy"], table["high"], strict=True)
    )
    assert [d == 1 for d in table["diversity"]] == [c == 1 for c in table["consistency"]]
    flagged = detection(table["weak"], np.array(table["accuracy"]) <= 0.75)
    assert flagged.false_positives == flagged.false_negatives == 0
