"""Accuracy–confidence curves, areas and intervals against loops and published definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.references import lesions as reference
from weakspot.core.errors import ConfigError, DataError
from weakspot.lesions.estimates import (
    brier_estimate,
    calibration_note,
    case_summary,
    dice_estimate,
    patient_calibration,
)
from weakspot.lesions.lesion_model import calibrate
from weakspot.lesions.metrics_evaluation import ScoredFold, accuracy_confidence, evaluate, mean_dice, weighted_areas
from weakspot.statistics.ranking import auroc


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=25))
def test_the_curve_as_by_setting_lesions_aside(lesions):
    uncertainty, wrong = np.array([u for u, _ in lesions], float), np.array([w for _, w in lesions])
    if wrong.all() or not wrong.any():
        with pytest.raises(DataError, match="needs some of both"):
            accuracy_confidence(uncertainty, wrong)
        return
    curve = accuracy_confidence(uncertainty, wrong)
    points, area = reference.accuracy_confidence(uncertainty.tolist(), wrong.tolist())
    np.testing.assert_allclose(np.stack([curve.false_positives, curve.true_positives], 1), points)
    assert curve.area == pytest.approx(area)
    assert curve.area == pytest.approx(auroc(uncertainty, wrong))


@settings(deadline=None)
@given(st.integers(0, 1000))
def test_weighted_areas_as_with_lesions_repeated(seed):
    rng = np.random.default_rng(seed)
    uncertainty, wrong = rng.integers(0, 5, 12).astype(float), rng.random(12) < 0.5
    weights = rng.integers(0, 3, (4, 12))
    found = weighted_areas(uncertainty, wrong, weights)
    for row, area in zip(weights, found, strict=True):
        repeated, kinds = np.repeat(uncertainty, row), np.repeat(wrong, row)
        expected = auroc(repeated, kinds) if len(kinds) else np.nan
        assert area == pytest.approx(expected, nan_ok=True)


def fold(seed, patients=12, each=8):
    rng = np.random.default_rng(seed)
    wrong = rng.random(patients * each) < 0.4
    good, poor = wrong + rng.normal(0, 0.5, len(wrong)), wrong + rng.normal(0, 1.5, len(wrong))
    names = np.array([f"p{number:02d}" for number in range(patients + 1)])
    voxels = rng.integers(3, 100, len(wrong))
    uncertainty = {"good": good, "poor": poor, "size": 1 / voxels}
    dice = np.append(rng.random(patients), np.nan)
    return ScoredFold(uncertainty, wrong, np.repeat(names[:-1], each), voxels, names, dice)


def test_mean_of_the_folds_and_intervals_over_patients():
    folds = [fold(seed) for seed in range(3)]
    told = evaluate(folds, replicates=400)
    areas = [auroc(own.uncertainty["good"], own.false_positive) for own in folds]
    np.testing.assert_allclose(told.per_fold["good"], areas)
    assert told.area["good"] == pytest.approx(np.mean(areas))
    low, high = told.interval["good"]
    assert low < told.area["good"] < high < 1
    assert told.spearman["size"] == pytest.approx(-1)
    apart, (apart_low, apart_high) = told.difference("good", "poor")
    assert apart == pytest.approx(told.area["good"] - told.area["poor"]) and 0 < apart_low < apart < apart_high
    assert told.few == "" and np.isnan(told.difference("good", "good")[1]).all()


def test_an_interval_over_patients_is_wider_where_lesions_of_a_patient_are_alike():
    rng = np.random.default_rng(0)
    wrong = np.repeat(rng.random(30) < 0.5, 6)
    unsure = np.repeat(wrong[::6] + rng.normal(0, 1, 30), 6)
    names, alone = np.array([f"p{n:02d}" for n in range(30)]), np.array([f"c{n:03d}" for n in range(180)])
    together = ScoredFold({"m": unsure}, wrong, np.repeat(names, 6), np.ones(180, int), names, np.full(30, np.nan))
    apart = ScoredFold({"m": unsure}, wrong, alone, np.ones(180, int), alone, np.full(180, np.nan))
    wide, narrow = (np.ptp(evaluate([own], replicates=500).interval["m"]) for own in (together, apart))
    assert wide > 1.8 * narrow


def test_the_interval_covers_as_often_as_it_says():
    """95 % intervals over 40 patients with 3 lesions each: about 95 of 100 studies hold the true area."""
    rng, inside = np.random.default_rng(1), 0
    names = np.array([f"p{n:02d}" for n in range(40)])
    for _ in range(100):
        wrong = rng.random(120) < 0.4
        unsure = wrong + rng.normal(0, 1, 120)  # area Φ(1/√2) = 0.7602
        own = ScoredFold({"m": unsure}, wrong, np.repeat(names, 3), np.ones(120, int), names, np.full(40, np.nan))
        low, high = evaluate([own], replicates=200).interval["m"]
        inside += low <= 0.7602 <= high
    assert 88 <= inside <= 99


def small_fold(wrong, owners, unsure):
    patients = np.unique(owners)
    return ScoredFold(
        {"m": np.array(unsure, float)}, np.array(wrong), np.array(owners), np.ones(len(wrong), int), patients,
        np.full(len(patients), np.nan),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "true", "kind"),
    [("a", "abcde", "false"), ("aaaaaa", "abcde", "false"), ("abcd", "abcde", "false"), ("abcde", "ab", "true")],
)
def test_too_few_patients_give_no_interval_but_say_why(wrong, true, kind):
    """Each letter is a lesion of the patient of that name: lesions of one patient do not count as several."""
    owners = [*wrong, *true]
    unsure = np.random.default_rng(0).random(len(owners))
    told = evaluate([small_fold(np.arange(len(owners)) < len(wrong), owners, unsure)], replicates=20)
    assert np.isnan(told.interval["m"]).all() and 0 <= told.area["m"] <= 1
    few = len(set(wrong if kind == "false" else true))
    assert told.few == f"no interval: it takes 5 patients with {kind} positives, here are {few}"


def test_each_fold_needs_two_patients_to_resample():
    def folds(sizes):
        for size in sizes:
            owners = [f"p{number}" for number in range(size)] * 2
            unsure = np.random.default_rng(size).random(2 * size)
            yield small_fold(np.arange(2 * size) < size, owners, unsure)

    assert evaluate(list(folds([4, 3])), replicates=20).few == ""
    assert "two in each fold, here are 6, 1" in evaluate(list(folds([6, 1])), replicates=20).few
    assert "here are 2, 2" in evaluate(list(folds([2, 2])), replicates=20).few


def test_an_area_that_no_replicate_changes_has_no_interval():
    fold = small_fold([True] * 6 + [False] * 6, [*"abcdef"] * 2, [*range(7, 13), *range(6)])
    told = evaluate([fold], replicates=50)
    assert told.area["m"] == 1 and told.few == "" and np.isnan(told.interval["m"]).all()


@pytest.mark.parametrize(
    ("dice", "why"),
    [
        ([0.2, 0.9, np.nan, 0.4, 0.5], "takes 5 patients, here are 4"),
        ([1.0] * 6, "the same however patients are drawn"),
        ([0.2, 0.9, 0.1, 0.4, 0.5], ""),
    ],
)
def test_dice_says_why_it_has_no_interval(dice, why):
    told = dice_estimate(np.array(dice))
    assert told.value == pytest.approx(np.nanmean(dice))
    assert (told.low is None) == bool(why) and why in told.about


def test_the_brier_score_of_few_patients_has_no_interval():
    said, wrong, owners = np.array([0.1, 0.9, 0.3, 0.6]), np.array([False, True, False, False]), np.array([*"abcd"])
    told = brier_estimate(said, wrong, owners, "error")
    assert told.low is None and told.about == "error; no interval: it takes 5 patients, here are 4"
    twice = brier_estimate(np.tile(said, 2), np.tile(wrong, 2), np.array([*"abcdefgh"]), "error")
    assert twice.value == pytest.approx(told.value) and twice.low < twice.value < twice.high


def test_dice_leaves_out_patients_without_any():
    mean, (low, high) = mean_dice(np.array([0.5, np.nan, 0.7, 0.9]))
    assert mean == pytest.approx(0.7) and 0.5 <= low < 0.7 < high <= 0.9
    assert np.isnan(mean_dice(np.array([np.nan]))[0])


def test_nothing_to_evaluate_is_refused():
    with pytest.raises(ConfigError, match="at least one fold"):
        evaluate([])


def test_calibration_of_each_patient_beside_the_share_of_all():
    probability = np.array([0.1, 0.3, 0.9, 0.8, 0.9])
    wrong = np.array([False, True, True, False, False])
    patients = np.array(["b", "b", "b", "a", "a"])
    summary, arrays = patient_calibration(probability, wrong, patients)
    assert arrays["patients"].tolist() == ["a", "b"] and arrays["patient_lesions"].tolist() == [2, 3]
    assert arrays["patient_expected"] == pytest.approx([1.7, 1.3])
    assert arrays["patient_false_positives"].tolist() == [0, 2]
    assert arrays["patient_brier"] == pytest.approx([(0.64 + 0.81) / 2, (0.01 + 0.49 + 0.01) / 3])
    assert arrays["patient_brier_of_share"] == pytest.approx([0.16, (0.16 + 0.36 + 0.36) / 3])
    assert summary["brier_of_share"].value == pytest.approx(0.24)
    assert summary["patients_worse_than_share"].value == 1  # patient a
    assert patient_calibration(probability[:0], wrong[:0], patients[:0]) == ({}, {})


def test_scores_that_rank_the_wrong_way_round_give_no_probability():
    score = np.linspace(-1, 1, 40)
    wrong = score + 0.4 * np.sin(9 * score) > 0
    good, bad = calibrate(score, wrong), calibrate(-score, wrong)
    assert good.calibrated and good.area > 0.8 and bad.area == pytest.approx(1 - good.area)
    assert calibration_note(good).endswith(f"of held-out patients, with an area of {good.area:.2f} where 0.5 is chance")
    assert not bad.calibrated and np.isnan(bad.probability(score)).all()
    assert "a higher score did not mean more false positives" in calibration_note(bad)
    few = calibrate(score[:12], wrong[:12])
    assert not few.calibrated and few.area is None and calibration_note(few).startswith("too few (")


def test_dice_is_of_patients_where_they_are_named():
    table = {"voxels": np.ones(4), "true_positive": np.array([True, True, False, True])}
    arrays = {
        "case_lesions": np.array([1, 1, 2]),
        "case_missed_lesions": np.zeros(3),
        "case_dice": np.array([0, 1, 1.0]),
    }
    by_case, by_patient = case_summary(table, arrays), case_summary(table, arrays, np.array(["p1", "p1", "p2"]))
    assert by_case["dice"].value == pytest.approx(2 / 3) and "over the cases" in by_case["dice"].about
    assert by_patient["dice"].value == 0.75 and "over the patients" in by_patient["dice"].about
    assert by_patient["patients"].value == 2 and by_patient["cases"].value == 3 and "patients" not in by_case
