"""A guard: its scores against plain versions, its promises on a real model, what it refuses, and what it watches."""

import numpy as np
import pytest
import torch

from tests.references import guard as plain
from weakspot import Plan, Run, Step, Subject, examine
from weakspot.core.errors import ConfigError, RunError, SubjectError
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.data.sources import ArraySource, Grouped
from weakspot.robustness import (
    DriftAlarm,
    GuardedInputs,
    GuardError,
    GuardEvaluation,
    PredictionGuard,
    guard_of,
    guarded_model,
)
from weakspot.robustness.guard_runtime import VERDICTS, confidence_scores, conformity, input_statistics
from weakspot.robustness.room import steps

EVALUATION, GUARD, USED = (f"robustness.{name}" for name in ("guard_evaluation", "prediction_guard", "guarded_inputs"))


@pytest.fixture(scope="module")
def used(guard_run):
    return guard_run[f"{USED}-pool"]


@pytest.fixture(scope="module")
def guarded(guard_run, shaky):
    return guarded_model(guard_run, shaky)


def test_scores_of_confidence_are_those_of_the_plain_version():
    logits = torch.randn(7, 5, dtype=torch.double, generator=torch.Generator().manual_seed(0)) * 3
    found = confidence_scores(logits)
    for row in range(7):
        for name, expected in plain.confidence_scores(logits[row].tolist()).items():
            assert float(found[name][row]) == pytest.approx(expected, abs=1e-9), name


@pytest.mark.parametrize("method", ["lac", "aps", "raps"])
def test_conformity_is_that_of_the_plain_version(method):
    p = torch.randn(6, 8, dtype=torch.double, generator=torch.Generator().manual_seed(1)).mul(2).softmax(1)
    found = conformity(p, method, 0.05, 2)
    for row in range(6):
        np.testing.assert_allclose(found[row], plain.conformity(p[row].tolist(), method, 0.05, 2), atol=1e-12)


def test_statistics_of_an_input_are_those_of_the_plain_version():
    image = torch.rand(1, 1, 6, 5, dtype=torch.double, generator=torch.Generator().manual_seed(2))
    rows = image[0, 0].tolist()
    rough = [plain.roughness(rows, step, down=down) for down in (True, False) for step in (1, 2)]
    expected = [image.mean(), image.std(correction=0), *rough]
    np.testing.assert_allclose(input_statistics(image)[0], np.array([float(value) for value in expected]), atol=1e-12)


def test_the_neighbour_distance_is_that_of_the_plain_version(guarded):
    guard = guarded.guard
    bank = guard.get_buffer("bank")
    feature = torch.randn(3, bank.shape[1], dtype=torch.double, generator=torch.Generator().manual_seed(4))
    found = guard._neighbour_distance(feature)
    for row in range(3):
        expected = plain.neighbour_distance(feature[row].tolist(), bank.tolist(), guard.about["neighbours"])
        assert float(found[row]) == pytest.approx(np.log(expected), abs=1e-8)


def test_confidence_stands_beside_the_guard_in_both_tables(guard_run):
    for name in (GUARD, EVALUATION):
        methods = guard_run[name].table.column("method").to_pylist()
        assert methods[:2] == ["guard", "max_softmax"]
        assert {"energy", "max_logit", "mahalanobis", "knn"} <= set(methods)
        assert "max_softmax_auroc" in guard_run[name].summary
    assert "max_softmax" in guard_of(guard_run[GUARD]).about["inputs"]


def test_promises_hold_on_the_test_data(guard_run):
    """Neither the model nor the guard has seen it; the intervals are of a single test set, so they must reach."""
    summary = guard_run[EVALUATION].summary
    assert summary["recall"].high >= 0.8
    for name in ("coverage_lac", "coverage_aps", "coverage_raps"):
        assert summary[name].high >= 0.88
    assert summary["unfamiliar_share"].low <= 0.01
    assert summary["auroc"].low > 0.6


def test_the_evaluation_counts_what_the_module_says(guard_run, guarded, guard_data):
    batch = guard_data["test"].read(np.arange(len(guard_data["test"].ids)))
    answer, targets = guarded(batch.inputs), torch.as_tensor(batch.targets)
    wrong = answer.prediction != targets
    summary = guard_run[EVALUATION].summary
    assert summary["recall"].value == pytest.approx(float(answer.flagged[wrong].double().mean()))
    assert summary["false_alarms"].value == pytest.approx(float(answer.flagged[~wrong].double().mean()))
    held = answer.prediction_set[torch.arange(len(wrong)), targets]
    assert summary["coverage"].value == pytest.approx(float(held.double().mean()), abs=0.002)


def test_each_input_gets_what_the_module_says(used, guarded, guard_data):
    batch = guard_data["pool"].read(np.arange(300))
    answer = guarded(batch.inputs)
    rows = {row["id"]: row for row in used.table.to_pylist()}
    for place in range(0, 300, 23):
        row = rows[batch.ids[place]]
        assert row["wrong_probability"] == pytest.approx(float(answer.wrong_probability[place]), abs=1e-4)
        assert row["verdict"] == VERDICTS[int(answer.verdict[place])] == answer.verdict_names[place]
        assert row["set_size"] == int(answer.prediction_set[place].sum())


def test_black_white_and_noise_are_not_fine(guarded):
    noise = torch.rand(50, 1, 8, 8, generator=torch.Generator().manual_seed(5))
    for inputs in (torch.zeros(1, 1, 8, 8), torch.ones(1, 1, 8, 8), noise):
        assert (guarded(inputs).verdict > 0).all()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (torch.zeros(2, 1, 9, 8), r"expected inputs of shape \(inputs, 1, 8, 8\), got \(2, 1, 9, 8\)"),
        (torch.full((1, 1, 8, 8), torch.nan), "input 0 holds NaN"),
        (torch.full((1, 1, 8, 8), torch.inf), "input 0 holds NaN or infinity"),
    ],
)
def test_inputs_that_no_guard_can_judge_are_refused(guarded, inputs, message):
    with pytest.raises(GuardError, match=message):
        guarded(inputs)


def test_another_model_is_refused(guard_run, subject):
    with pytest.raises(SubjectError, match="not the one that the guard was fitted for"):
        guarded_model(guard_run, subject)


def test_a_run_without_a_guard_says_what_to_ask(detector_run, subject):
    with pytest.raises(RunError, match="ask robustness with guard"):
        guarded_model(detector_run, subject)


def test_a_black_box_has_a_guard_too(guard_data):
    model = digits.model().eval()
    subject = Subject(lambda inputs: model(inputs).softmax(1).detach(), classes=10, scores="probabilities")
    fitted = examine(subject, guard_data["validation"], [PredictionGuard(read=None)])[0]
    guard = guard_of(fitted)
    assert guard.about["layer"] is None
    assert {"energy", "knn"}.isdisjoint(guard.about["inputs"])
    finding = examine(subject, guard_data["test"], [GuardEvaluation(guard=fitted)])[0]
    assert finding.summary["auroc"].value > 0.7


def test_where_inputs_belong_together_the_promise_is_made_by_group(shaky, guard_data):
    """As if each image were a film of one frame: the same threshold. Of ten films nothing can be promised."""
    data = guard_data["validation"]
    plain = examine(shaky, data, [PredictionGuard()])[0]
    alone = examine(shaky, Grouped(data, list(data.ids)), [PredictionGuard()])[0]
    assert guard_of(alone).about["flag_threshold"] == guard_of(plain).about["flag_threshold"]
    films = examine(shaky, Grouped(data, [f"film {place // 3}" for place in range(700)]), [PredictionGuard()])[0]
    assert guard_of(films).about["flag_threshold"] != guard_of(plain).about["flag_threshold"]
    few = examine(shaky, Grouped(data, [f"film {place % 10}" for place in range(700)]), [PredictionGuard()])[0]
    assert "false alarms of 0.05 cannot be promised for a new group: that takes 19 groups with correct" in (
        few.summary["guard"].about
    )


def test_too_few_inputs_give_a_reason(shaky, guard_data):
    few = limited(guard_data["validation"], 100)
    fitted = examine(shaky, few, [PredictionGuard()])[0]
    assert "too few" in fitted.summary["guard"].about
    finding = examine(shaky, limited(guard_data["test"], 50), [GuardEvaluation(guard=fitted)])[0]
    assert finding.summary["guard"].about == fitted.summary["guard"].about
    with pytest.raises(RunError, match="holds no guard"):
        guard_of(fitted)


def test_a_guard_is_not_judged_on_what_it_was_fitted_on(shaky, guard_data, tmp_path):
    asked = Step(GuardEvaluation, {"training": {}}, "test", {"guard": Step.of(PredictionGuard, split="test")})
    with pytest.raises(ConfigError, match="keep some labelled data apart"):
        Plan.of([asked]).run(shaky, guard_data, Run.create(tmp_path / "run"))


def test_a_model_in_training_mode_is_refused(guard_run, shaky, guard_data):
    guarded = guarded_model(guard_run, shaky)
    guarded.train()
    with pytest.raises(GuardError, match="training mode"):
        guarded(guard_data["test"].read(np.arange(2)).inputs)
    guarded.eval()


def test_the_room_understands_its_option():
    asked = steps({"guard": {"from": "held", "risk": 0.02, "sets": "raps", "inputs": "pool", "time": "hour"}})
    by_name = {step.probe: step for step in asked}
    assert by_name[GuardedInputs].split == "pool"
    fitted = by_name[GuardEvaluation].upstream["guard"]
    assert (fitted.split, fitted.options["aim"], fitted.options["value"]) == ("held", "risk", 0.02)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"recall": 0.9, "risk": 0.1}, "by one of them"),
        ({"time": "hour"}, "add inputs"),
        ({"sharpness": 1}, "no option"),
        (7, "expected true, or options"),
        ({"recall": 9}, "between 0 and 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(option, message):
    with pytest.raises(ConfigError, match=message):
        steps({"guard": option})


def streams(rng, count, length, *, shift=0.0):
    """How many of so many streams raise an alarm, each against calibration scores of its own."""
    alarms = 0
    for _ in range(count):
        alarm = DriftAlarm([rng.normal(size=100).tolist(), rng.normal(size=100).tolist()], rate=0.1)
        for row in rng.normal(shift, size=(length, 2)).tolist():
            alarm.add(row)
        alarms += alarm.first_alarm is not None
    return alarms


def test_false_alarms_are_as_rare_as_promised():
    """400 streams of 150 inputs that are like the calibration data: at most 10 % may alarm (here with 3 σ to spare)."""
    assert streams(np.random.default_rng(6), 400, 150) <= 400 * 0.1 + 3 * np.sqrt(400 * 0.1 * 0.9)


def test_a_change_is_seen():
    assert streams(np.random.default_rng(7), 20, 150, shift=1.0) >= 18


def test_drift_is_in_the_finding(shaky, guard_data, guard_run):
    usual = guard_run[f"{USED}-pool"]
    assert usual.summary["drifted"].value is False
    assert usual.arrays["drift_evidence"].max() < 2
    batch = guard_data["test"].read(np.arange(300))
    inverted = ArraySource(1 - batch.inputs.numpy(), ids=list(batch.ids))
    finding = examine(shaky, inverted, [GuardedInputs(guard=guard_run[GUARD])])[0]
    assert finding.summary["drifted"].value is True
    assert finding.summary["first_alarm"].value in batch.ids
