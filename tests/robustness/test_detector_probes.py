"""Detectors on a real network: trained, evaluated beside baselines, and used on inputs without labels."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.references.robustness import f1
from tests.robustness.conftest import DETECTOR
from weakspot import Plan, Run, Step, Subject, examine
from weakspot.core.errors import ConfigError
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.robustness.analysis_probes import ClassRobustness
from weakspot.robustness.detector_probes import WeakDetector, WeakInputs
from weakspot.robustness.detectors import Detector
from weakspot.robustness.metrics_detection import MethodOutput, baselines, detection_metrics, metrics_table
from weakspot.robustness.monitor import RuntimeMonitor
from weakspot.robustness.probes import NeighbourAccuracy, NeighbourTolerance, SquaredError
from weakspot.robustness.room import steps
from weakspot.statistics import detection


@pytest.fixture(scope="module")
def detector(detector_run):
    return Detector(detector_run["robustness.weak_detector"])


def by_method(finding):
    return {row["method"]: row for row in finding.table.to_pylist()}


def test_it_beats_what_costs_nothing(detector_run):
    told = by_method(detector_run["robustness.detector_evaluation"])
    assert set(told) == {"white_box", "queries", "together", "black_box", "top1", "max_softmax", "random", "flag_all"}
    assert told["together"]["average_precision"] > told["random"]["average_precision"] + 0.1
    assert told["together"]["auroc"] > told["max_softmax"]["auroc"]
    assert told["together"]["f1"] > told["flag_all"]["f1"]
    for row in told.values():
        for figure in ("f1", "precision", "recall", "average_precision", "auroc"):
            assert not row[figure] < row[f"{figure}_low"] and not row[figure] > row[f"{figure}_high"]


def test_the_weak_share_stands_beside_every_figure(detector_run):
    finding = detector_run["robustness.detector_evaluation"]
    share = finding.summary["weak_share"]
    assert share.low < share.value < share.high
    assert {row["weak_share"] for row in finding.table.to_pylist()} == {share.value}
    flag_all = by_method(finding)["flag_all"]
    assert flag_all["f1"] == pytest.approx(2 * share.value / (1 + share.value))
    assert flag_all["precision"] == pytest.approx(share.value)


def test_the_truth_is_that_of_looks_that_were_no_queries(detector_run, subject):
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
    assert detector_run["robustness.detector_evaluation"].summary["weak_share"].value == pytest.approx(expected)


def test_the_most_likely_weak_inputs_come_first(detector_run, detector):
    table = detector_run["robustness.weak_inputs"].table.to_pydict()
    assert table["probability"] == sorted(table["probability"], reverse=True)
    assert table["flagged"] == [p >= detector.networks["together"].threshold for p in table["probability"]]


def test_a_budget_lists_the_most_likely_weak_inputs(detector_run, subject):
    everything = detector_run["robustness.weak_inputs"]
    probe = WeakInputs(budget=5, detector=detector_run["robustness.weak_detector"])
    finding = examine(subject, limited(digits.test(), 200), [probe])[0]
    assert finding.table.equals(everything.table.slice(0, 5))
    assert finding.summary["selected"].value == 5 and finding.summary["inputs"].value == 200
    assert finding.summary["flagged_share"] == everything.summary["flagged_share"]
    assert "selected" not in everything.summary
    with pytest.raises(ConfigError, match="a budget of at least 1, got 0"):
        WeakInputs(budget=0, detector=detector_run["robustness.weak_detector"])


def test_the_sample_is_drawn_by_ids(detector_run):
    assert detector_run["robustness.weak_detector"].summary["inputs"].value == 300


def test_a_black_box_detector_sees_no_layer(subject):
    black_box = Subject(subject.model.forward, classes=digits.CLASSES, scores="logits", fingerprint="digits 1")
    probe = WeakDetector(**{**DETECTOR, "sample": 120}, layers=None)
    found = Detector(examine(black_box, limited(digits.train(), 150), [probe])[0])
    assert found.modes == ["queries", "black_box"] and found.best == "queries"


def test_figures_by_hand():
    weak = np.array([True, True, False, False, False])
    calls = MethodOutput("together", np.array([0.9, 0.2, 0.8, 0.1, 0.0]), np.array([True, False, True, False, False]))
    found = detection_metrics(calls, weak)
    assert found["f1"][0] == f1([True, False, True, False, False], weak.tolist()) == 0.5
    assert found["precision"][0] == found["recall"][0] == 0.5
    assert found["average_precision"][0] == pytest.approx((1 + 2 / 3) / 2)
    assert metrics_table([calls], weak)["flagged_share"][0] == 0.4
    assert np.isnan(detection_metrics(calls, ~weak & weak)["average_precision"][0])


def test_baselines_by_hand():
    ids, confidence = list("abcd"), np.array([0.3, 0.76, 0.75, 0.99])
    found = {c.method: c for c in baselines(ids, confidence, threshold=0.75, tuned=-0.8, flagged=2, seed=1)}
    assert found["top1"].flagged.tolist() == [True, False, False, False]
    assert found["max_softmax"].flagged.tolist() == [True, True, True, False]
    assert found["random"].flagged.sum() == 2 and found["flag_all"].flagged.all()
    other = {c.method: c for c in baselines(ids[::-1], confidence, threshold=0.75, tuned=-0.8, flagged=2, seed=1)}
    assert (other["random"].flagged[::-1] == found["random"].flagged).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": 50}, "some looks decide whether an input is weak"),
        ({"layers": None, "queries": 0}, "must see something"),
        ({"rule": "guess"}, "choose one of quantile"),
        ({"sample": 3}, "cannot be cut into 5 folds"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        WeakDetector(**options)


@pytest.mark.parametrize(("threshold", "said", "weak_share"), [(0.01, "strong", 0), (1.0, "weak", 1)])
def test_where_nothing_can_be_learnt_the_other_questions_go_on(subject, tmp_path, threshold, said, weak_share):
    """A net that is always right, and one that never is."""
    always = limited(digits.train(), 30).read(np.arange(30))
    with torch.no_grad():
        answers = subject.model(always.inputs).argmax(1).numpy()
    source = ArraySource(always.inputs.numpy(), answers if said == "strong" else (answers + 1) % 10)
    asked = steps({"neighbours": {"brightness": 0.001}, "looks": 6, "threshold": threshold, "select": {"from": "test"},
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
        RuntimeMonitor.load(run, subject)


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
        probe = NeighbourTolerance(variation=variation, looks=6, early_stopping="never", trained=error)
        table = examine(subject, source, [probe])[0].table.sort_by("id").to_pydict()
        from weakspot.looks import Neighbour

        look, right = Neighbour(variation, 0, (0, 1)), [residual**2 <= 3 * (residual**2).mean()]
        with torch.no_grad():
            for number in range(1, 7):
                answers = subject.model(look.images(batch.inputs, batch.ids, number)) - batch.targets
                right.append(answers.double().numpy() ** 2 <= 3 * (residual**2).mean())
        np.testing.assert_allclose(table["neighbour_accuracy"], np.mean(right, axis=0))

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
        judged = RuntimeMonitor.load(run, subject)(source.read(np.arange(5)).inputs)
        assert judged.prediction.shape == (5,) and judged.probability.shape == (5,)


def test_labels_are_right_if_the_whole_set_is():
    torch.manual_seed(3)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))
    images = digits.test().read(np.arange(30)).inputs
    with torch.no_grad():
        targets = (net(images) > 0).numpy()
    subject = Subject(net, task="multilabel", classes=list("abcde"), scores="logits", bounds=(0, 1))
    probe = NeighbourAccuracy(variation=DETECTOR["variation"], looks=8, early_stopping="never")
    table = examine(subject, ArraySource(images.numpy(), targets), [probe])[0].table.to_pydict()
    assert table["target"] == table["prediction"] and max(table["neighbour_accuracy"]) < 1.01
    ends = zip(table["low"], table["neighbour_accuracy"], table["high"], strict=True)
    assert all(low <= share <= high for low, share, high in ends)
    assert [d == 1 for d in table["concentration"]] == [c == 1 for c in table["consistency"]]
    flagged = detection(table["weak"], np.array(table["neighbour_accuracy"]) <= 0.75)
    assert flagged.false_positives == flagged.false_negatives == 0
