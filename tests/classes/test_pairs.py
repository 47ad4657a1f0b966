from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakspot.classes import cutoff_score, most_suspicious, pair_classes, pair_values, suspicious
from weakspot.classes.pairs import checked_symmetric
from weakspot.core.errors import ConfigError, DataError


@given(st.integers(0, 12))
def test_values_and_classes_of_a_pair_belong_together(classes: int) -> None:
    matrix = np.arange(classes**2).reshape(classes, classes)
    values, pairs = pair_values(matrix), pair_classes(np.arange(classes * (classes - 1) // 2), classes)
    assert [tuple(pair) for pair in pairs] == list(combinations(range(classes), 2))
    assert [matrix[a, b] for a, b in pairs] == values.tolist()


def test_standard_deviations_by_hand() -> None:
    score = [0, 0, 0, 0, 5]  # mean 1, population std 2
    assert suspicious(score).tolist() == [False] * 4 + [True]
    assert cutoff_score(score) == 3
    assert cutoff_score(score, "1.5 std") == 4
    assert not suspicious(score, "2 std").any()  # 5 is not above 5


def test_numbers_and_shares() -> None:
    score = np.arange(100.0)
    assert np.flatnonzero(suspicious(score, 97.5)).tolist() == [98, 99]
    assert np.flatnonzero(suspicious(score, "top 2%")).tolist() == [98, 99]
    assert np.flatnonzero(suspicious(score, "top 1.5 %")).tolist() == [99]
    assert np.flatnonzero(suspicious(score, "top1.5%", rounding="up")).tolist() == [98, 99]
    assert suspicious(score, "top 7%", rounding="up").sum() == 7
    assert cutoff_score(score, "top 2%") == 98
    assert cutoff_score(score, "top 0%") == np.inf


def test_equal_scores_are_reported_in_the_order_of_the_pairs() -> None:
    assert suspicious([1, 2, 1, 2, 1], "top 60%").tolist() == [True, True, False, True, False]
    assert most_suspicious([1, 2, 1, 2], [True, True, True, False]).tolist() == [1, 0, 2]


@pytest.mark.parametrize("cutoff", ["std", "top 50%", 1.5])
def test_pairs_without_a_score_are_neither_counted_nor_reported(cutoff: str | float) -> None:
    with_gap, without = suspicious([1, np.nan, 2, 9, 1], cutoff), suspicious([1, 2, 9, 1], cutoff)
    assert with_gap.tolist() == [without[0], False, *without[1:]]
    assert not suspicious([np.nan], cutoff).any()


@pytest.mark.parametrize("cutoff", ["standard", "top", "1%", "-1 std"])
def test_unknown_cutoff(cutoff: str) -> None:
    with pytest.raises(ConfigError, match='expected cutoff "std", "2 std", "top 1%" or a number'):
        suspicious([1, 2], cutoff)


def test_says_what_is_wrong() -> None:
    with pytest.raises(DataError, match=r"classes × classes\), got shape \(2, 3\)"):
        pair_values(np.zeros((2, 3)))
    with pytest.raises(DataError, match="positions 0 … 2 for 3 classes, got 3 … 3"):
        pair_classes([3], 3)
    with pytest.raises(DataError, match="row and column 0 differ; pass the mean of both"):
        checked_symmetric([[0, 1], [2, 0]])
