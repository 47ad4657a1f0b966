"""Detectors at an operating point: what is promised holds on new inputs, and held-out figures are honest."""

import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot.robustness import OperatingPoint, WeakDetector
from weakspot.robustness.detector_network import DetectorTraining
from weakspot.robustness.detectors import fit_detectors, threshold_outputs
from weakspot.robustness.metrics_detection import detection_metrics
from weakspot.robustness.room import steps
from weakspot.statistics.calibration import logistic

QUICK = DetectorTraining(hidden=(16,), epochs=10, folds=4, batch_size=128)
POINTS = [OperatingPoint("recall", 0.9), OperatingPoint("false_alarms", 0.05), OperatingPoint("precision", 0.8)]


def drawn(inputs, seed):
    """Looks that are correct as two of five features say; concentration and confidence follow them, with chance."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(inputs, 5)).astype(np.float32)
    chance = logistic(1.0 + features[:, 0] - 2 * features[:, 1])
    correct = rng.random((inputs, 51)) < chance[:, None]
    columns = {
        "features": features,
        "queries": features[:, :2] + rng.normal(size=(inputs, 2)).astype(np.float32),
        "concentration": correct[:, 1:16].mean(1),
        "confidence": np.clip(chance + rng.normal(size=inputs) / 5, 0, 1),
    }
    weak = np.array([row[[0, *range(16, 51)]].sum() / 36 < 0.75 for row in correct])
    return columns, correct, weak


def said_of(fitted, columns):
    seen = {"white_box": columns["features"], "queries": columns["queries"]}
    seen["together"] = np.concatenate([columns["features"], columns["queries"]], 1)
    outputs = {
        name: own.network.probability(seen[name]) >= own.network.threshold for name, own in fitted.networks.items()
    }
    return outputs | {one.method: one.flagged for one in threshold_outputs(columns, fitted.thresholds)}


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.aim)
def test_every_detector_keeps_its_operating_point_on_new_inputs(point):
    columns, correct, _ = drawn(1500, 1)
    fitted = fit_detectors(columns, correct, 0.75, 15, QUICK, point=point)
    new, _, weak = drawn(6000, 2)
    flagged = said_of(fitted, new)
    assert set(flagged) == {"white_box", "queries", "together", "black_box", "max_softmax"}
    for method, found in flagged.items():
        recall, precision, alarms = found[weak].mean(), weak[found].mean(), found[~weak].mean()
        if point.aim == "recall":
            assert recall > 0.87, method
        elif point.aim == "false_alarms":
            assert alarms < 0.07, method
        else:
            assert precision > 0.75, method


def test_held_out_figures_never_see_their_own_threshold():
    """Fold by fold, with a threshold from the other folds, counted plainly."""
    columns, correct, weak = drawn(400, 3)
    fitted = fit_detectors(columns, correct, 0.75, 15, QUICK, point=POINTS[1])
    for output in fitted.held_out(columns, weak):
        for fold in range(5):
            inside = np.arange(400) % 5 == fold
            strong = np.sort(output.score[~inside & ~weak])
            place = int(np.ceil((len(strong) + 1) * 0.95)) - 1
            assert (output.flagged[inside] == (output.score[inside] > strong[place])).all()
        value, interval = detection_metrics(output, weak)["false_alarms"]
        assert value == output.flagged[~weak].mean() and interval.low <= value <= interval.high


def test_what_belongs_together_is_in_one_fold():
    """Ten films of which each one's frames score alike: no frame helps to choose the threshold of its own film."""
    rng = np.random.default_rng(4)
    films = np.repeat(np.arange(10), 20)
    scores, weak = films + rng.random(200), rng.random(200) < 0.4
    flagged = OperatingPoint("recall", 0.8).held_out(scores, weak, np.zeros(0), groups=films.astype(str))
    for fold in range(5):
        inside = films % 5 == fold
        point = OperatingPoint("recall", 0.8)
        limit = point.threshold(scores[~inside], weak[~inside], np.zeros(0), films[~inside].astype(str))
        assert (flagged[inside] == (scores[inside] >= limit)).all()


def test_the_room_takes_the_operating_point_of_detector_and_guard_alike():
    detector, guard = steps({"detector": {"recall": 0.95}, "guard": {"recall": 0.95}})[1:]
    for step, name in ((detector, "detector"), (guard, "guard")):
        assert {key: step.upstream[name].options[key] for key in ("aim", "value")} == {"aim": "recall", "value": 0.95}
    with pytest.raises(ConfigError, match="detector has recall and precision: its threshold is chosen by one"):
        steps({"detector": {"recall": 0.95, "precision": 0.9}})
    with pytest.raises(ConfigError, match="detector has no option 'risk'"):
        steps({"detector": {"risk": 0.1}})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aim": "recall"}, "need a value, such as 0.95"),
        ({"value": 0.9}, "nothing else takes one"),
        ({"aim": "recall", "value": 1.5}, "recall is 1.5: expected a number between 0 and 1"),
    ],
)
def test_impossible_operating_points_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        WeakDetector(**options)


@pytest.mark.parametrize(
    ("options", "own"),
    [({}, False), ({"weak_emphasis": 1}, True), ({"weak_emphasis": 1, "aim": "f1"}, False), ({"aim": "network"}, True)],
)
def test_the_dial_is_not_undone_unless_that_is_asked_for(options, own):
    assert WeakDetector(**options)._training.own_decision is own
