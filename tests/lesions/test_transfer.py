"""Whether a model carries over: features of other patients, and probabilities that are off."""

import numpy as np
import pytest
from scipy.stats import rankdata

from tests.lesions.test_forecast import lesions_of
from weakspot.lesions.gcn import Learning
from weakspot.lesions.lesion_model import LesionModel, fit_lesion_model
from weakspot.lesions.transfer import calibration_gap, patient_features, shift_parts, shifts


def patients_of_hospital(rng, count, shift=0.0):
    return {"entropy": (rng.normal(size=count) + shift).tolist(), "voxels": rng.normal(size=count).tolist()}


def test_alike_patients_are_rarely_called_shifted_and_others_nearly_always():
    rng = np.random.default_rng(0)
    alike = [shifts(patients_of_hospital(rng, 20), patients_of_hospital(rng, 12)) for _ in range(400)]
    assert np.mean([min(found.values()) < 0.05 for found in alike]) <= 0.08
    apart = [shifts(patients_of_hospital(rng, 20), patients_of_hospital(rng, 12, 2.0)) for _ in range(50)]
    assert np.mean([found["entropy"] < 0.05 for found in apart]) > 0.95


def test_the_rank_test_is_that_of_all_orders():
    learnt, here = {"a": [1.0, 2, 3, 4, 9]}, {"a": [5.0, 6, 7, 8, 10]}
    rng, ranks = np.random.default_rng(1), rankdata([*learnt["a"], *here["a"]])
    middle = ranks.sum() / 2
    seen = abs(ranks[:5].sum() - middle)
    drawn = [abs(rng.permutation(ranks)[:5].sum() - middle) >= seen for _ in range(20000)]
    assert shifts(learnt, here)["a"] == pytest.approx(np.mean(drawn), abs=0.01)
    assert shifts({"a": [1.0] * 4}, here) == {} and shifts({"a": [2.0] * 6}, {"a": [2.0] * 7}) == {"a": 1.0}


def test_shifted_features_are_named():
    rng = np.random.default_rng(0)
    summary, arrays = shift_parts(patients_of_hospital(rng, 20), patients_of_hospital(rng, 20, 3.0))
    assert summary["shifted_features"].value == 1 and ": entropy;" in summary["shifted_features"].about
    assert arrays["shift_feature"].tolist() == ["entropy", "voxels"] and arrays["shift_p"][0] < 0.05
    assert shift_parts({}, patients_of_hospital(rng, 20)) == ({}, {})


def test_features_are_means_of_patients_and_kept_with_the_model():
    lesions = lesions_of(36)
    found = patient_features(lesions, lesions.case)
    names = np.unique(lesions.case)
    expected = [np.log(lesions.columns["voxels"][lesions.case == name]).mean() for name in names]
    assert found["voxels"] == pytest.approx(expected) and set(found) >= {"entropy", "intensity_0"}
    nodes = np.repeat(lesions.case, 2)
    expected = [lesions.features[nodes == name, 0].astype(float).mean() for name in names]
    assert found["intensity_0"] == pytest.approx(expected)
    model = fit_lesion_model(lesions, lesions.case, method="size", learning=Learning(epochs=1)).model
    assert LesionModel.of(model.arrays(), model.about()).features == found


def test_probabilities_that_are_off_are_told():
    rng = np.random.default_rng(0)
    probability, patients = rng.random(600), np.repeat([f"p{n}" for n in range(30)], 20)
    right = calibration_gap(probability, rng.random(600) < probability, patients)
    assert right.low < 0 < right.high and "carry over" not in right.about
    high = calibration_gap(probability, rng.random(600) < probability / 2, patients)
    assert high.low > 0 and "too high here, the calibration does not carry over" in high.about
    low = calibration_gap(probability / 2, rng.random(600) < probability, patients)
    assert low.high < 0 and "too low here" in low.about
    assert calibration_gap(probability[:60], rng.random(60) < 0.5, patients[:60]).low is None
