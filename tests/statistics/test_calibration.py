"""Calibration against scikit-learn and against known probabilities; intervals against simulation."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from weakspot.core.errors import DataError
from weakspot.statistics import average_precision, average_precision_interval, detection, f1_interval
from weakspot.statistics.calibration import brier_score, logistic, platt_scaling, reliability


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=4000) * 3
    return scores, rng.random(4000) < logistic(0.6 * scores - 1.0)


def test_scaling_finds_the_odds_that_made_the_truth(scored):
    slope, offset = platt_scaling(*scored)
    assert slope == pytest.approx(0.6, abs=0.05) and offset == pytest.approx(-1.0, abs=0.1)


def test_scaling_is_logistic_regression_but_for_platts_smoothing(scored):
    fitted = LogisticRegression(C=1e9).fit(scored[0][:, None], scored[1])
    slope, offset = platt_scaling(*scored)
    assert slope == pytest.approx(fitted.coef_[0, 0], rel=0.01)
    assert offset == pytest.approx(fitted.intercept_[0], rel=0.01)


def test_scores_that_part_perfectly_give_a_finite_slope():
    slope, offset = platt_scaling([-2.0, -1.0, 1.0, 2.0], [False, False, True, True])
    assert np.isfinite([slope, offset]).all() and slope > 0


def test_constant_scores_give_the_share():
    slope, offset = platt_scaling(np.full(100, 7.0), np.arange(100) < 25)
    assert logistic(slope * 7.0 + offset) == pytest.approx(0.25, abs=0.02)


def test_calibrated_probabilities_are_reliable(scored):
    slope, offset = platt_scaling(*scored)
    said = logistic(scored[0] * slope + offset)
    assert reliability(said, scored[1]).error < 0.02
    assert reliability(said**3, scored[1]).error > 0.1
    assert brier_score(said, scored[1]) < brier_score(np.full(4000, scored[1].mean()), scored[1])


def test_reliability_counts_every_input_once():
    curve = reliability([0.0, 0.05, 0.5, 1.0], [False, True, True, True])
    assert curve.inputs.sum() == 4 and curve.inputs[0] == 2 and curve.inputs[-1] == 1
    assert np.isnan(curve.probability[3])


def test_scaling_refuses_what_does_not_fit():
    with pytest.raises(DataError, match="one score per input"):
        platt_scaling([1.0, 2.0], [True])


@pytest.mark.parametrize("size", [60, 400])
def test_intervals_hold_what_they_promise(size):
    """Over repeated draws, the interval of F1 and of average precision holds the value of a very large sample."""
    rng = np.random.default_rng(size)

    def draw(number):
        truth = rng.random(number) < 0.3
        return truth, rng.normal(size=number) + 1.5 * truth

    truth, score = draw(200000)
    f1, area = detection(score > 1, truth).f1, average_precision(score, truth)
    held = []
    for _ in range(200):
        truth, score = draw(size)
        found = detection(score > 1, truth)
        low, high = f1_interval(found.true_positives, found.false_positives, found.false_negatives)
        first, last = average_precision_interval(average_precision(score, truth), int(truth.sum()))
        held.append([low <= f1 <= high, first <= area <= last])
    assert (np.mean(held, axis=0) > 0.85).all()


def test_average_precision_at_its_ends():
    assert average_precision_interval(1.0, 20).high == 1
    assert average_precision_interval(0.0, 20).low == 0


def test_the_interval_of_average_precision_holds_the_area():
    for area in (0.00001, 0.002, 0.5, 0.998, 0.99999):
        low, high = average_precision_interval(area, 120)
        assert low <= area <= high


def test_average_precision_of_nothing_true():
    with pytest.raises(DataError, match="at least one true entry"):
        average_precision_interval(0.5, 0)
