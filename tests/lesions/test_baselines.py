"""The nine baselines of the paper's Table 2."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

from weakspot.core.errors import DataError
from weakspot.lesions.baselines import direct_uncertainties, metaseg_features
from weakspot.lesions.cases import LesionDefinition, case_lesions, lesion_measures, z_scored
from weakspot.lesions.linear import fit_least_squares, fit_logistic


def columns(count=60):
    rng = np.random.default_rng(0)
    return {
        "entropy": rng.random(count), "variance": rng.random(count), "pcs": rng.random(count),
        "voxels": rng.integers(3, 500, count),
    }  # fmt: skip


def test_means_logsums_and_size_by_hand():
    labels = np.array([[1, 1, 0, 2]], dtype=np.int32)
    maps = {name: np.array([[0.1, 0.3, 0.9, 0.5]]) for name in ("entropy", "variance", "mutual_information")}
    maps["pcs"] = np.array([[0.2, 0.6, 0.0, 1.0]])
    found = lesion_measures(labels, 2, maps, log_epsilon=1e-3)
    np.testing.assert_allclose(found["entropy"], [0.2, 0.5])
    np.testing.assert_allclose(found["pcs"], [0.4, 1.0])
    np.testing.assert_allclose(found["entropy_logsum"], [np.log(0.101) + np.log(0.301), np.log(0.501)])
    np.testing.assert_allclose(found["pcs_logsum"], [np.log(0.801) + np.log(0.401), np.log(0.001)])
    unsure = direct_uncertainties({**found, "voxels": np.array([2, 1])})
    np.testing.assert_allclose(unsure["pcs_mean"], [0.6, 0.0], atol=1e-15)
    np.testing.assert_allclose(unsure["size"], [0.5, 1.0])
    assert unsure["variance_logsum"][0] == found["variance_logsum"][0]


def test_larger_lesions_have_smaller_logsums():
    """As in the paper's Table 2, where every log-sum goes with size at ρ below −0.9."""
    rng = np.random.default_rng(0)
    mask = np.zeros((60, 60), dtype=bool)
    for k in range(8):
        mask[7 * k : 7 * k + 2 + k // 2, 10 : 12 + 3 * k] = True
    maps = {name: rng.uniform(0.05, 0.6, mask.shape) for name in ("entropy", "variance", "pcs", "mutual_information")}
    cut = case_lesions({**maps, "lesion": mask * 1.0}, np.zeros((1, *mask.shape)), None, LesionDefinition())
    order = np.argsort(cut.columns["voxels"])
    assert np.all(np.diff(cut.columns["entropy_logsum"][order]) < 0)


def test_metaseg_as_with_scikit_learn():
    features = metaseg_features(columns())
    rng = np.random.default_rng(1)
    wrong = features[:, 0] + rng.normal(0, 0.3, 60) > 0.5
    iou = 1 - features[:, 0] + rng.normal(0, 0.1, 60)
    standard = StandardScaler().fit_transform(features)
    logits = LogisticRegression().fit(standard, wrong).decision_function(standard)
    np.testing.assert_allclose(fit_logistic(features, wrong).outputs(features), logits, atol=1e-4)
    line = LinearRegression().fit(standard, iou).predict(standard)
    np.testing.assert_allclose(fit_least_squares(features, iou).outputs(features), line, atol=1e-9)


def test_one_kind_of_lesion_cannot_be_learnt():
    with pytest.raises(DataError, match="a model cannot learn to tell them apart"):
        fit_logistic(metaseg_features(columns()), np.ones(60, dtype=bool))


def test_z_scores_are_of_what_is_not_zero():
    volume = np.zeros((2, 3, 3))
    volume[0, 0] = [1, 2, 3]
    found = z_scored(volume)
    np.testing.assert_allclose(found[0, 0], (np.array([1, 2, 3]) - 2) / np.std([1, 2, 3]), rtol=1e-6)
    assert not found[1].any()
