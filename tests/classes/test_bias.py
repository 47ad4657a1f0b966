import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from tests.references import classes as reference
from weakspot.classes import (
    average_bias,
    average_confusion_disparity,
    bias_errors,
    pair_values,
    triplet_bias,
    worst_third_classes,
)
from weakspot.classes import metrics_bias as module
from weakspot.core.errors import ConfigError, DataError


@pytest.fixture
def distance() -> np.ndarray:
    return squareform(pdist(np.random.default_rng(0).random((12, 3))))


@pytest.fixture
def confusion() -> np.ndarray:
    generator = np.random.default_rng(1)
    table = generator.random((12, 12)) * (generator.random((12, 12)) < 0.2)
    table[generator.random((12, 12)) < 0.1] = np.nan
    return table


def limit(values: np.ndarray) -> float:
    return float(values.mean() - values.std())


@pytest.mark.parametrize("leak", [False, True])
@pytest.mark.parametrize("near", ["matrix", "pairs", 0.4, None])
@pytest.mark.parametrize("block", [1, 50, 1 << 18])
def test_equals_the_plain_definition(monkeypatch, distance, confusion, leak: bool, near, block: int) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    limits = {"matrix": limit(distance), "pairs": limit(pair_values(distance)), 0.4: 0.4, None: np.inf}
    directional = confusion if leak else None
    expected = reference.average_bias(
        distance.tolist(), limit=limits[near], directional=confusion.tolist() if leak else None
    )
    score = average_bias(distance, confusion=directional, near=near)
    np.testing.assert_allclose(score, expected, rtol=1e-12)
    np.testing.assert_allclose(average_bias(distance, confusion=directional, near=near, halved=True), score / 2)


@pytest.mark.parametrize("near", ["matrix", None])
def test_coinciding_classes(distance, near) -> None:
    distance[3], distance[:, 3] = distance[5], distance[:, 5]
    distance[3, 3] = distance[3, 5] = distance[5, 3] = 0
    expected = reference.average_bias(distance.tolist(), limit=limit(distance) if near else np.inf)
    np.testing.assert_allclose(average_bias(distance, near=near), expected, atol=1e-14)


@pytest.mark.parametrize("near", [0.5, None])
def test_a_class_without_distances_is_left_out(distance, near) -> None:
    without = average_bias(distance[1:, 1:], near=near)
    distance[0] = distance[:, 0] = np.nan
    score = average_bias(distance, near=near)
    np.testing.assert_allclose(score[1:, 1:], without, rtol=1e-12)
    assert np.isnan(score[0]).all()
    assert np.isnan(score[:, 0]).all()


def test_triplets_and_their_mean_agree(distance) -> None:
    score = average_bias(distance, near=None)
    for a, b in ((0, 1), (4, 11)):
        assert score[a, b] == pytest.approx(np.nansum(triplet_bias(distance, a, b)) / 10)


def test_triplet_by_hand() -> None:
    distance = [[0, 9, 1, 2], [9, 0, 3, 2], [1, 3, 0, 9], [2, 2, 9, 0]]
    np.testing.assert_array_equal(triplet_bias(distance, 0, 1), [np.nan, np.nan, 0.5, 0])
    assert worst_third_classes(distance, 0, 1, near=None).tolist() == [2, 3]
    assert worst_third_classes(distance, 0, 1, near=None, number=1).tolist() == [2]
    np.testing.assert_array_equal(triplet_bias(distance, 0, 1, near=2), [np.nan, np.nan, 0.5, np.nan])
    assert worst_third_classes(distance, 0, 1, near=2).tolist() == [2]


def test_the_distance_matrix_is_left_as_it_was(distance) -> None:
    before = distance.copy()
    average_bias(distance)
    triplet_bias(distance, 0, 1)
    np.testing.assert_array_equal(distance, before)


def test_disparity_equals_the_plain_definition(confusion) -> None:
    expected = reference.average_confusion_disparity(confusion.tolist())
    disparity = average_confusion_disparity(confusion)
    np.testing.assert_allclose(disparity, expected, atol=1e-15)
    np.testing.assert_allclose(average_confusion_disparity(confusion, directions="sum"), 2 * disparity)


@pytest.mark.parametrize(("cutoff", "top"), [("std", None), ("top 10%", 7)])  # 6.6 pairs, rounded up
def test_errors_equal_the_plain_definition(distance, confusion, cutoff: str, top: int | None) -> None:
    score, disparity = average_bias(distance), average_confusion_disparity(confusion)
    found = bias_errors(score, disparity, cutoff=cutoff)
    expected = reference.errors(pair_values(score).tolist(), pair_values(disparity).tolist(), top=top)
    assert (found.true_positives, found.false_positives) == expected


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: average_bias(np.zeros((2, 2))), DataError, "three or more classes with distances, got 2"),
        (lambda: average_bias(np.full((9, 9), np.nan)), DataError, "got 0"),
        (lambda: average_bias(np.ones((3, 3)), near="far"), ConfigError, 'near to be "matrix", "pairs"'),
        (lambda: average_bias(np.ones((3, 3)), confusion=np.ones((4, 4))), DataError, "same classes"),
        (lambda: average_bias([[0, 1, 2], [1, 0, 3], [9, 3, 0]]), DataError, "row and column 0 differ"),
        (lambda: triplet_bias(np.ones((3, 3)), 1, 1), ConfigError, "two different classes of 0 … 2, got 1 and 1"),
        (lambda: triplet_bias(np.ones((3, 3)), 1, 3), ConfigError, "two different classes"),
        (lambda: average_confusion_disparity(np.ones((2, 2))), DataError, "three or more classes, got 2"),
        (lambda: bias_errors(np.ones((3, 3)), np.ones((4, 4))), DataError, "same classes"),
    ],
)
def test_says_what_is_wrong(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
