import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.statistics.paired import paired_difference_interval


def test_by_hand():
    """n = 8, b = 3, c = 1: p = 0.4, q = 0.2, 0.2 ± 1.96·√((0.6 − 0.04)/10)."""
    before = np.array([0, 0, 0, 1, 1, 1, 0, 1], dtype=bool)
    after = np.array([1, 1, 1, 0, 1, 1, 0, 1], dtype=bool)
    low, high = paired_difference_interval(before, after)
    assert (float(low), float(high)) == pytest.approx((0.2 - 0.46381, 0.2 + 0.46381), abs=1e-4)


def test_it_keeps_its_promise():
    """Over many draws the true difference lies inside about as often as promised."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        before = rng.random(60) < 0.8
        after = np.where(rng.random(60) < 0.25, rng.random(60) < 0.5, before)
        true = 0.25 * (0.5 - 0.8)
        low, high = paired_difference_interval(before, after)
        inside += low <= true <= high
    assert 0.935 <= inside / 2000 <= 0.975


@pytest.mark.parametrize(
    ("before", "after"),
    [([1, 0], [True, False]), ([True], [True, False]), (np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))],
)
def test_columns_that_do_not_pair_are_refused(before, after):
    with pytest.raises(DataError, match="two boolean columns of equal length"):
        paired_difference_interval(before, after)
