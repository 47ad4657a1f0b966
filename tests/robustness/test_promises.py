"""Thresholds keep what they promise: by simulation, against the exact binomial, and at their edges."""

import numpy as np
import pytest

from tests.references.guard import group_quantile, risk_levels_passed
from weakspot.core.errors import ConfigError
from weakspot.robustness.guard_fitting import parts
from weakspot.robustness.metrics_promises import (
    NEVER,
    OperatingPoint,
    conformal_quantile,
    precision_threshold,
    risk_levels,
    risk_threshold,
)


def drawn(rng, size, error=0.15):
    """Scores that tell wrong from correct predictions to some degree."""
    wrong = rng.random(size) < error
    return rng.normal(wrong * 1.5, 1), wrong


def test_a_conformal_quantile_covers_as_often_as_promised():
    """Over many calibration sets, new scores exceed it with a probability of ⌊(n + 1)·miss⌋/(n + 1), here 0.0960."""
    rng = np.random.default_rng(0)
    scores = rng.random((4000, 124))
    exceeded = np.mean([1 - conformal_quantile(row, 0.1) for row in scores])
    assert exceeded == pytest.approx(12 / 125, abs=0.002)


def test_too_few_scores_promise_nothing():
    assert conformal_quantile(np.arange(8.0), 0.1) == NEVER
    assert conformal_quantile(np.arange(9.0), 0.1) == 8


@pytest.mark.parametrize(("aim", "value"), [("recall", 0.8), ("false_alarms", 0.1)])
def test_an_operating_point_is_reached_on_new_inputs(aim, value):
    rng = np.random.default_rng(1)
    reached = []
    for _ in range(400):
        scores, wrong = drawn(rng, 300)
        threshold = OperatingPoint(aim, value).threshold(scores, wrong, risk_levels(scores))
        new, new_wrong = drawn(rng, 2000)
        reached.append((new[new_wrong if aim == "recall" else ~new_wrong] >= threshold).mean())
    mean = np.mean(reached)
    assert value <= mean + 0.01 <= value + 0.04 if aim == "recall" else value - 0.02 <= mean <= value + 0.005


def test_a_promised_risk_is_kept_with_the_promised_confidence():
    """In at most 5 % of the calibrations more than the promised share of what is accepted is wrong."""
    rng = np.random.default_rng(2)
    new, new_wrong = drawn(rng, 200_000)
    broken, useful = 0, 0
    for _ in range(300):
        levels = risk_levels(drawn(rng, 500)[0])
        scores, wrong = drawn(rng, 800)
        threshold = risk_threshold(scores, wrong, 0.06, levels=levels)
        accepted = new < threshold
        useful += accepted.any()
        broken += accepted.any() and new_wrong[accepted].mean() > 0.06
    assert broken <= 0.05 * 300
    assert useful > 250


def test_the_risk_is_tested_as_the_binomial_tail_says():
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores, wrong = drawn(rng, 150)
        levels = risk_levels(drawn(rng, 60)[0])
        passed = risk_levels_passed(scores.tolist(), wrong.tolist(), 0.12, levels.tolist(), 0.95)
        assert risk_threshold(scores, wrong, 0.12, levels=levels) == (passed[-1] if passed else -NEVER)


def test_a_risk_that_cannot_be_promised_flags_everything():
    scores, wrong = drawn(np.random.default_rng(4), 50)
    threshold = risk_threshold(scores, wrong, 0.001, levels=risk_levels(scores))
    assert (scores >= threshold).all()


def test_what_belongs_together_stays_together():
    films = [f"film {number // 7}" for number in range(700)]
    part = parts(films, 0).reshape(100, 7)
    assert (part == part[:, :1]).all()
    assert np.bincount(part[:, 0]).tolist() == pytest.approx([40, 20, 40], abs=2)


def films(rng, count):
    """Scores of frames, whose films differ more than their frames do; and the film of each."""
    sizes = rng.integers(1, 30, count)
    film = np.repeat(np.arange(count), sizes)
    return rng.normal(rng.normal(0, 1, count)[film], 0.3), film.astype(str)


def test_a_quantile_by_group_is_that_of_the_plain_version():
    rng = np.random.default_rng(6)
    for count in (3, 12, 30):
        scores, film = films(rng, count)
        expected = group_quantile(scores.tolist(), film.tolist(), 0.15)
        assert conformal_quantile(scores, 0.15, film) == (NEVER if expected is None else expected)


def test_a_quantile_by_group_covers_frames_of_new_films_where_one_by_frame_does_not():
    rng = np.random.default_rng(7)
    by_film, by_frame = [], []
    for _ in range(1500):
        scores, film = films(rng, 19)
        new = rng.normal(rng.normal(0, 1, 200), 0.3)  # a frame of each of so many films
        by_film.append((new > conformal_quantile(scores, 0.1, film)).mean())
        by_frame.append((new > conformal_quantile(scores, 0.1)).mean())
    assert np.mean(by_film) <= 0.1 and np.mean(by_frame) > 0.11


def test_a_risk_by_group_counts_one_frame_of_each_film():
    scores, wrong = drawn(np.random.default_rng(8), 400)
    levels = risk_levels(scores)
    alike = {"scores": np.repeat(scores, 9), "wrong": np.repeat(wrong, 9), "levels": levels}
    by_film = risk_threshold(**alike, risk=0.1, groups=np.repeat(np.arange(400).astype(str), 9))
    assert by_film == risk_threshold(scores, wrong, 0.1, levels=levels)
    assert by_film < risk_threshold(**alike, risk=0.1)  # frames taken for independent promise too much


def test_the_measure_of_a_rule_never_has_one_film_on_both_sides():
    rng = np.random.default_rng(9)
    scores, film = films(rng, 40)
    wrong = rng.random(len(scores)) < 0.4
    point, levels = OperatingPoint("recall", 0.7), risk_levels(scores)
    flagged = point.held_out(scores, wrong, levels, film)
    names = sorted(set(film))
    for number in range(5):
        here = np.isin(film, names[number::5])
        limit = point.threshold(scores[~here], wrong[~here], levels, film[~here])
        assert (flagged[here] == (scores[here] >= limit)).all()


def test_precision_by_hand():
    scores = np.arange(20.0)
    wrong = np.array([False] * 8 + [True, False] + [True] * 10)
    assert precision_threshold(scores, wrong, 0.9) == 8
    assert precision_threshold(scores, np.zeros(20, dtype=bool), 0.9) == NEVER


def test_the_measure_of_a_rule_is_taken_on_inputs_that_it_was_not_chosen_on():
    scores, wrong = drawn(np.random.default_rng(5), 400)
    point, levels = OperatingPoint("recall", 0.7), risk_levels(scores)
    flagged = point.held_out(scores, wrong, levels)
    others = np.arange(400) % 5 != 2
    assert flagged[2] == (scores[2] >= point.threshold(scores[others], wrong[others], levels))


@pytest.mark.parametrize(("aim", "value", "message"), [("luck", 0.1, "choose one of recall"), ("risk", 2, "between 0")])
def test_an_operating_point_that_is_none_is_refused(aim, value, message):
    with pytest.raises(ConfigError, match=message):
        OperatingPoint(aim, value)
