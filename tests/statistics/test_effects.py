import numpy as np
import pytest
from scipy.stats import kruskal

from weakspot.core.errors import DataError
from weakspot.statistics import cohens_d, effect_size_class, kruskal_wallis, pairwise_cohens_d


def test_cohens_d_by_hand() -> None:
    # means 4 and 1; variances 4 and 1 with n = 3 and 3: s² = 2.5
    assert cohens_d([2, 4, 6], [0, 1, 2]) == pytest.approx(3 / 2.5**0.5)
    # n = 2 and 4: s² = (1·2 + 3·0)/4
    assert cohens_d([1, 3], [5, 5, 5, 5]) == pytest.approx(-3 / 0.5**0.5)


def test_every_pair_equals_the_definition() -> None:
    generator = np.random.default_rng(0)
    groups = generator.integers(0, 5, 200)
    values = generator.normal(size=200) * (1 + groups) + groups
    table = pairwise_cohens_d(values, groups)
    for a in range(5):
        for b in range(5):
            first, second = values[groups == a], values[groups == b]
            squares = ((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum()
            spread = (squares / (len(first) + len(second) - 2)) ** 0.5
            assert table[a, b] == pytest.approx((first.mean() - second.mean()) / spread)


def test_cohens_d_at_the_edges() -> None:
    assert cohens_d([1, 1], [1, 1]) == 0
    assert cohens_d([2, 2], [1, 1]) == np.inf
    assert np.isnan(cohens_d([1], [2]))
    table = pairwise_cohens_d([1, 2, 3, 4], [0, 0, 2, 2])  # nothing in group 1
    assert np.isnan(table[1]).all()
    assert table[2, 0] == pytest.approx(2 / 0.5**0.5)


def test_verbal_classes_begin_at_their_borders() -> None:
    expected = ["negligible", "small", "small", "medium", "medium", "large", "large"]
    assert effect_size_class([0.19, 0.2, -0.49, -0.5, 0.79, 0.8, np.inf]).tolist() == expected
    with pytest.raises(DataError, match="too few values"):
        effect_size_class([np.nan])


@pytest.mark.parametrize("decimals", [0, 1, 8])  # few decimals: many ties
def test_kruskal_wallis_agrees_with_scipy(decimals: int) -> None:
    generator = np.random.default_rng(decimals)
    groups = generator.integers(0, 4, 80) * 2  # groups 1, 3 and 5 are empty
    values = (generator.normal(size=80) + groups / 4).round(decimals)
    expected = kruskal(*(values[groups == group] for group in (0, 2, 4, 6)))
    result = kruskal_wallis(values, groups)
    assert result.statistic == pytest.approx(expected.statistic)
    assert result.p_value == pytest.approx(expected.pvalue)
    assert result.epsilon_squared == pytest.approx(expected.statistic / 79)


def test_kruskal_wallis_by_hand() -> None:
    # ranks 1+2 and 3+4: 12/20 · (9/2 + 49/2) − 15
    assert kruskal_wallis([5, 6, 7, 8], [0, 0, 1, 1]).statistic == pytest.approx(2.4)


def test_equal_values_are_no_difference() -> None:
    result = kruskal_wallis([1, 1, 1], [0, 1, 2])
    assert (result.statistic, result.p_value) == (0, 1)


@pytest.mark.parametrize(
    ("values", "groups", "message"),
    [
        ([1, 2], [0], "one group number per value"),
        ([], [], "one group number per value"),
        ([1.0], [0.5], "group numbers 0, 1, 2"),
        ([1.0], [-1], "group numbers 0, 1, 2"),
        ([1, 2], [0, 0], "at least two groups"),
    ],
)
def test_says_what_is_wrong(values: list[float], groups: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        kruskal_wallis(values, groups)
