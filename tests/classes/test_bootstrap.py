import numpy as np
import pytest
from scipy.stats import norm

from weakspot.classes import (
    DistanceEstimate,
    activation_distance,
    activation_probability,
    bootstrap_distance,
    class_members,
    pair_values,
)
from weakspot.classes import metrics_bootstrap as module
from weakspot.core.errors import ConfigError, DataError

NEURONS = 60


def images_of_two_classes(generator: np.random.Generator, probability: np.ndarray, sizes: list[int]):
    """Images whose neurons are correlated through a factor common to the image."""
    label = np.repeat([0, 1], sizes)
    common, own = generator.random((label.size, 1)), generator.random((label.size, NEURONS))
    shared = generator.random((label.size, NEURONS)) < 0.3
    activated = np.where(shared, common, own) < probability[label]
    return np.packbits(activated, axis=1), class_members(label, 2)


@pytest.fixture
def probability() -> np.ndarray:
    generator = np.random.default_rng(5)
    first = generator.random(NEURONS)
    return np.stack([first, np.clip(first + 0.15 * generator.normal(size=NEURONS), 0, 1)])


def test_interval_covers_the_true_distance_though_the_measured_one_is_too_large(probability) -> None:
    generator, truth = np.random.default_rng(6), np.linalg.norm(probability[0] - probability[1])
    covered, corrected, measured = 0, [], []
    for seed in range(60):
        bits, members = images_of_two_classes(generator, probability, [25, 40])
        estimate = bootstrap_distance(bits, members, neurons=NEURONS, seed=seed, replicates=40)
        low, high = estimate.interval()
        covered += bool(low[0] <= truth <= high[0])
        corrected.append(estimate.squared[0])
        measured.append(activation_distance(activation_probability(bits, members, neurons=NEURONS))[0, 1] ** 2)
    assert covered >= 54
    assert np.mean(measured) > 1.5 * truth**2
    assert np.mean(corrected) == pytest.approx(truth**2, rel=0.15)


def test_equals_a_plain_loop_over_resampled_images(case) -> None:
    members = case.predicted[:, :5]  # without the empty class
    generator, replicates = np.random.default_rng(3), 7
    measured = pair_values(activation_distance(activation_probability(case.bits, members, neurons=case.neurons))) ** 2
    drawn = []
    for _ in range(replicates):
        images = generator.integers(members.shape[0], size=members.shape[0])
        probability = activation_probability(case.bits[images], members[images], neurons=case.neurons)
        drawn.append(pair_values(activation_distance(probability)) ** 2)
    estimate = bootstrap_distance(case.bits, members, neurons=case.neurons, seed=3, replicates=replicates)
    np.testing.assert_allclose(estimate.squared, 2 * measured - np.mean(drawn, axis=0), rtol=1e-5)
    np.testing.assert_allclose(estimate.error, np.std(drawn, axis=0, ddof=1), rtol=1e-5)


def test_the_order_of_the_images_does_not_matter_where_their_ranks_are_known(case) -> None:
    members, shuffled = case.predicted[:, :5], np.random.default_rng(0).permutation(90)
    sorted_ = bootstrap_distance(case.bits, members, neurons=case.neurons, seed=0, replicates=5)
    other = bootstrap_distance(
        case.bits[shuffled], members[shuffled], neurons=case.neurons, seed=0, replicates=5, rank=shuffled
    )
    np.testing.assert_array_equal(sorted_.squared, other.squared)
    np.testing.assert_array_equal(sorted_.error, other.error)


def test_blocks_change_nothing(monkeypatch, case) -> None:
    members = case.predicted[:, :5]
    whole = bootstrap_distance(case.bits, members, neurons=case.neurons, seed=0, replicates=5, normalise=True)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 1)
    parts = bootstrap_distance(case.bits, members, neurons=case.neurons, seed=0, replicates=5, normalise=True)
    np.testing.assert_array_equal(whole.squared, parts.squared)
    np.testing.assert_array_equal(whole.error, parts.error)


def test_replicates_that_miss_a_small_class_are_left_out() -> None:
    bits = np.packbits(np.random.default_rng(0).random((40, 8)) < 0.5, axis=1)
    members = class_members([0, 0] + [1] * 38, 2)
    estimate = bootstrap_distance(bits, members, neurons=8, seed=0, replicates=50)
    assert np.isfinite(estimate.squared).all()
    assert np.isfinite(estimate.error).all()


def test_certainty_by_hand() -> None:
    estimate = DistanceEstimate(squared=np.array([1.0, 4.0, 16.0]), error=np.array([1.0, 1.0, 0.0]))
    # below 2: one, none and minus infinitely many standard errors inside
    assert estimate.certainty(2) == pytest.approx([0.9986501, 0.5, 0])
    limit = np.mean([1, 2, 4]) - np.std([1, 2, 4])
    assert estimate.certainty() == pytest.approx([norm.cdf(limit**2 - 1), norm.cdf(limit**2 - 4), 0])
    assert estimate.certainty("top 67%")[1] == pytest.approx(0.5)  # the second is the farthest reported
    assert estimate.certainty("top 1%").tolist() == [0, 0, 0]  # of three pairs none


def test_distance_and_interval_are_never_negative() -> None:
    estimate = DistanceEstimate(squared=np.array([-1.0, 4.0]), error=np.array([0.1, 1.0]))
    low, high = estimate.interval(confidence=0.9544997361036416)  # two standard errors
    assert estimate.distance.tolist() == [0, 2]
    assert low == pytest.approx([0, 2**0.5])
    assert high == pytest.approx([0, 6**0.5])


def test_says_what_is_wrong() -> None:
    bits = np.zeros((3, 1), dtype=np.uint8)
    with pytest.raises(DataError, match="two or more images of each class"):
        bootstrap_distance(bits, class_members([0, 0, 1], 2), neurons=8, seed=0)
    with pytest.raises(ConfigError, match="two or more replicates, got 1"):
        bootstrap_distance(bits, class_members([0, 0, 0], 1), neurons=8, seed=0, replicates=1)
