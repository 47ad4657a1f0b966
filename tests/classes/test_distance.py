import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage
from scipy.spatial.distance import pdist, squareform

from tests.references import classes as reference
from weakspot.classes import activation_distance, class_tree
from weakspot.classes import metrics_distance as module
from weakspot.core.errors import DataError


@pytest.mark.parametrize("normalise", [False, True])
def test_equals_the_plain_definition(normalise: bool) -> None:
    generator = np.random.default_rng(0)
    probability = generator.random((7, 15)) * (generator.random((7, 15)) < 0.5)
    expected = reference.activation_distance(probability.tolist(), normalise=normalise)
    np.testing.assert_allclose(activation_distance(probability, normalise=normalise), expected, rtol=1e-12)


def test_by_hand() -> None:
    probability = [[0, 0, 1, 0], [0, 0.5, 0, 0]]
    assert activation_distance(probability)[0, 1] == pytest.approx(1.25**0.5)
    assert activation_distance(probability, normalise=True)[0, 1] == pytest.approx((1.25 / 2) ** 0.5)


@pytest.mark.parametrize("block_bytes", [1, 8 * 40 * 9, 1 << 30])
def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr(module, "_BLOCK_BYTES", block_bytes)
    probability = np.random.default_rng(1).random((25, 40)).astype(np.float32)
    expected = squareform(pdist(probability.astype(np.float64)))
    np.testing.assert_allclose(activation_distance(probability), expected, rtol=1e-12)


def test_near_classes_keep_their_digits() -> None:
    # through |x|² + |y|² − 2·x·y alone these would come out as 0 or as noise near 1e-7
    probability = np.random.default_rng(2).random((4, 3000))
    probability[1] = probability[0]
    probability[2] = probability[0]
    probability[2, 5] += 1e-9
    distance = activation_distance(np.clip(probability, 0, 1))
    assert distance[0, 1] == 0
    assert distance[0, 2] == pytest.approx(1e-9, rel=1e-6)


def test_a_class_without_images_has_no_distance() -> None:
    distance = activation_distance([[1, 0], [np.nan, np.nan], [0, 1]])
    assert np.isnan(distance[1]).all()
    assert np.isnan(distance[:, 1]).all()
    assert distance[0, 2] == pytest.approx(2**0.5)
    assert np.isnan(activation_distance([[np.nan], [np.nan]])).all()


def test_silent_classes_are_not_divided_by_zero() -> None:
    assert (activation_distance(np.zeros((3, 5)), normalise=True) == 0).all()


@pytest.mark.parametrize(
    ("probability", "message"),
    [([1, 0], "classes × neurons"), (np.zeros((2, 0)), "classes × neurons"), ([[0, 7]], "divide the counts")],
)
def test_says_what_is_wrong(probability: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        activation_distance(probability)


def test_tree_puts_similar_classes_side_by_side() -> None:
    position = np.array([0.0, 10.0, 0.1, 10.2])
    tree, order = class_tree(np.abs(position[:, None] - position))
    assert is_valid_linkage(tree)
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset({0, 2}), frozenset({1, 3})}
    assert tree[:, 2] == pytest.approx([0.1, 0.2, 10.05])


@pytest.mark.parametrize("distance", [[[0.0]], [[0, np.nan], [np.nan, 0]]])
def test_tree_needs_distances(distance: list[list[float]]) -> None:
    with pytest.raises(DataError, match="leave out classes without images"):
        class_tree(distance)


@pytest.mark.parametrize("normalise", [False, True])
def test_counts_divided_block_by_block_are_probabilities(normalise, monkeypatch):
    monkeypatch.setattr("weakspot.classes.metrics_distance._BLOCK_BYTES", 8 * 20 * 3)  # three classes at a time
    generator = np.random.default_rng(8)
    images = np.array([9, 200, 31, 0, 7, 64, 12, 255])
    counts = generator.binomial(images[:, None], generator.random((8, 20))).astype(np.uint8)
    with np.errstate(invalid="ignore"):
        expected = activation_distance(counts / images[:, None], normalise=normalise)
    found = activation_distance(counts, images=images, normalise=normalise)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.isnan(found[3]).all()


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(DataError, match="at most as many images"):
        activation_distance([[3, 1]], images=[2])
    with pytest.raises(DataError, match="expected counts of images"):
        activation_distance([[0.5, 1.0]], images=[2])
