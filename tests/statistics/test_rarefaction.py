from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakspot.core.errors import DataError
from weakspot.statistics import expected_coverage, unseen_targets


def coverage_of_all_subsets(reached: np.ndarray, size: int) -> float:
    """Mean coverage over every subset of the inputs, by enumeration; `reached` is inputs × targets."""
    subsets = list(combinations(range(len(reached)), size))
    return float(np.mean([reached[list(subset)].any(axis=0).mean() for subset in subsets]))


@given(st.integers(1, 7), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_equals_the_mean_over_every_subset(inputs: int, targets: int, seed: int) -> None:
    reached = np.random.default_rng(seed).random((inputs, targets)) < 0.4
    sizes = np.arange(inputs + 1)
    expected = [coverage_of_all_subsets(reached, size) for size in sizes]
    np.testing.assert_allclose(expected_coverage(reached.sum(axis=0), inputs, sizes), expected, atol=1e-13)


@pytest.mark.parametrize("inputs", [1_000, 50_000, 1_281_167])
def test_relative_precision_against_whole_number_arithmetic(inputs: int) -> None:
    for count in (1, 2, 40, 900):
        for size in (1, 3, 500, inputs - 900, inputs - 1, inputs):
            missed = comb(inputs - size, count) * 10**30 // comb(inputs, count)
            expected = (10**30 - missed) / 10**30
            assert expected_coverage([count], inputs, [size])[0] == pytest.approx(expected, rel=1e-12)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20))
def test_starts_at_zero_never_falls_and_ends_at_what_was_covered(counts: list[int]) -> None:
    curve = expected_coverage(counts, 30, np.arange(31))
    assert curve[0] == 0
    assert curve[-1] == np.mean(np.array(counts) > 0)
    assert (np.diff(curve) >= -1e-15).all()


def test_a_target_reached_by_every_input_is_certain_from_the_first() -> None:
    assert expected_coverage([10], 10, [0, 1, 5]).tolist() == [0, 1, 1]


def test_keeps_the_shape_of_sizes_and_takes_counts_of_any_shape() -> None:
    counts = np.array([[1, 2], [0, 3]], dtype=np.uint16)
    assert expected_coverage(counts, 3, 3) == 0.75
    assert expected_coverage(counts, 3, [[1, 2, 3]]).shape == (1, 3)


def test_millions_of_targets_and_inputs_in_little_time() -> None:
    counts = np.random.default_rng(0).integers(0, 1_000_000, 2_000_000)
    curve = expected_coverage(counts, 1_000_000, np.linspace(0, 1_000_000, 101).astype(int))
    assert curve[1] == pytest.approx(1 - 1e-4, abs=3e-5)  # uniform counts: about N/n targets in a million are missed


@pytest.mark.parametrize(
    ("counts", "inputs", "sizes", "message"),
    [
        ([3], 2, [1], "counts between 0 and 2"),
        ([-1], 2, [1], "counts between 0 and 2"),
        ([1], 2, [3], "whole numbers between 0 and 2 .* got 3 to 3"),
        ([1], 2, [-1], "whole numbers between 0 and 2"),
        ([1], 2, [0.5], "whole numbers between 0 and 2"),
        ([0.5], 2, [1], "whole numbers"),
        ([], 2, [1], "at least one target"),
    ],
)
def test_says_what_is_wrong(counts: list[float], inputs: int, sizes: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        expected_coverage(counts, inputs, sizes)


def test_chao2_by_hand() -> None:
    # Q1 = 4, Q2 = 2, N = 10: A = 0.9; unseen = 0.9·16/4; r = 2: 2·(0.9·4/2 + 0.81·8 + 0.81·16/4)
    estimate = unseen_targets([1, 1, 1, 1, 2, 2, 5] + [0] * 50, inputs=10)
    assert (estimate.seen, estimate.unseen) == (7, pytest.approx(3.6))
    assert estimate.variance == pytest.approx(2 * (1.8 + 6.48 + 3.24))
    factor = np.exp(1.959963984540054 * np.sqrt(np.log(1 + estimate.variance / 3.6**2)))
    assert (estimate.low, estimate.high) == (pytest.approx(3.6 / factor), pytest.approx(3.6 * factor))
    assert estimate.completeness == pytest.approx(7 / 10.6)


def test_chao2_without_targets_seen_twice() -> None:
    # Q1 = 3, Q2 = 0, N = 4: A = 3/4; unseen = 3/4 · 3·2/2; seen = 4
    estimate = unseen_targets([1, 1, 1, 4] + [0] * 20, inputs=4)
    assert estimate.unseen == pytest.approx(2.25)
    assert estimate.variance == pytest.approx(2.25 + 9 / 16 * 3 * 25 / 4 - 9 / 16 * 81 / (4 * 6.25))


@pytest.mark.parametrize("counts", [[0, 0], [3, 3], [1, 3]])
def test_nothing_to_extrapolate_from_gives_nothing_unseen(counts: list[int]) -> None:
    estimate = unseen_targets(counts, inputs=5)
    assert (estimate.unseen, estimate.low, estimate.high) == (0, 0, 0)
    assert estimate.completeness == 1


@pytest.mark.parametrize(("counts", "inputs"), [([1, 0, 0], 1), ([0, 0], 0)])
def test_fewer_than_two_inputs_tell_nothing_of_the_unseen(counts: list[int], inputs: int) -> None:
    estimate = unseen_targets(counts, inputs)
    told = (estimate.unseen, estimate.low, estimate.high, estimate.variance, estimate.completeness)
    assert estimate.seen == sum(counts) and np.isnan(told).all()
    assert unseen_targets([1, 1], inputs=1).unseen == 0  # none are left


def test_no_more_can_be_unseen_than_targets_are_left() -> None:
    estimate = unseen_targets([1] * 30 + [0] * 5, inputs=100)
    assert (estimate.unseen, estimate.low, estimate.high) == (5, 5, 5)


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    # equally likely targets: the case in which Chao2 is not only a lower bound but unbiased
    generator, inputs, targets = np.random.default_rng(0), 40, 300
    covered = 0
    for _ in range(200):
        counts = generator.binomial(inputs, 0.04, targets)
        estimate = unseen_targets(np.concatenate([counts, np.zeros(1000, dtype=int)]), inputs)
        covered += estimate.low <= targets - estimate.seen <= estimate.high
    assert 180 <= covered <= 200


def test_targets_never_reached_may_be_left_out_of_the_counts():
    counts, sizes = np.array([4, 1, 1, 2, 0, 0, 0]), np.array([1, 3, 9])
    reached = counts[counts > 0]
    np.testing.assert_allclose(
        expected_coverage(reached, 9, sizes, targets=7), expected_coverage(counts, 9, sizes), rtol=1e-14
    )
    assert unseen_targets(reached, 9, targets=7) == unseen_targets(counts, 9)
    assert unseen_targets(reached, 9, targets=10**30).unseen == pytest.approx(8 / 9 * 2**2 / 2)
    with pytest.raises(DataError, match="expected 4 targets or more"):
        unseen_targets(reached, 9, targets=3)
