import numpy as np
import pytest
from scipy.stats import binom, binomtest

from weakspot.core.errors import ConfigError, DataError
from weakspot.statistics import (
    bootstrap_interval,
    clopper_pearson_interval,
    difference_interval,
    percentile_interval,
    wilson_interval,
)

SHARES = [(0, 1), (0, 20), (3, 20), (10, 20), (20, 20), (317, 1000)]


@pytest.mark.parametrize(
    ("interval", "method"), [(wilson_interval, "wilson"), (clopper_pearson_interval, "exact")], ids=["wilson", "exact"]
)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_agrees_with_scipy(interval, method: str, confidence: float) -> None:
    low, high = interval(*np.transpose(SHARES), confidence=confidence)
    expected = [binomtest(*share).proportion_ci(confidence, method) for share in SHARES]
    np.testing.assert_allclose(low, [each.low for each in expected], atol=1e-12)
    np.testing.assert_allclose(high, [each.high for each in expected], atol=1e-12)


def test_wilson_by_hand() -> None:
    # p = 1/2, n = 4, z = 2: (1/2 + 1/2 ± 2·√(1/16 + 1/16)) / 2
    confidence = 0.9544997361036416  # two standard deviations
    low, high = wilson_interval(2, 4, confidence=confidence)
    assert (low, high) == (pytest.approx((1 - 0.5**0.5) / 2), pytest.approx((1 + 0.5**0.5) / 2))


@pytest.mark.parametrize("interval", [wilson_interval, clopper_pearson_interval])
def test_no_trials_leave_everything_open(interval) -> None:
    assert interval(0, 0) == (0, 1)


def test_clopper_pearson_is_never_less_sure_than_it_says() -> None:
    trials, successes = 15, np.arange(16)
    low, high = clopper_pearson_interval(successes, trials, confidence=0.9)
    for share in np.linspace(0.01, 0.99, 33):
        inside = (low <= share) & (share <= high)
        assert binom.pmf(successes, trials, share)[inside].sum() >= 0.9


def test_difference_agrees_with_the_published_examples() -> None:
    # Newcombe 1998, table II, method 10
    published = {(56, 70, 48, 80): (0.0524, 0.3339), (9, 10, 3, 10): (0.1705, 0.8090), (10, 10, 0, 10): (0.6075, 1.0)}
    for counts, (low, high) in published.items():
        np.testing.assert_allclose(difference_interval(*counts), (low, high), atol=5e-5)


def test_difference_of_nothing_is_open_and_swapping_mirrors_it() -> None:
    low, high = difference_interval(0, 0, 0, 0)
    assert low < -0.7
    assert high > 0.7
    low, high = difference_interval(7, 9, 30, 80)
    assert difference_interval(30, 80, 7, 9) == (pytest.approx(-high), pytest.approx(-low))


def test_bootstrap_of_a_mean_is_near_its_normal_interval_and_repeats() -> None:
    values = np.random.default_rng(0).normal(3, 2, 400)
    low, high = bootstrap_interval(lambda drawn: values[drawn].mean(), 400, seed=1)
    error = values.std() / 20
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.25 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.25 * error)
    assert bootstrap_interval(lambda drawn: values[drawn].mean(), 400, seed=1) == (low, high)
    assert bootstrap_interval(lambda drawn: values[drawn].mean(), 400, seed=2) != (low, high)


def test_bootstrap_takes_statistics_that_are_arrays() -> None:
    table = np.arange(12.0).reshape(6, 2)
    low, high = bootstrap_interval(lambda drawn: table[drawn].mean(axis=0), 6, seed=0, replicates=200)
    assert low.shape == high.shape == (2,)
    np.testing.assert_allclose(low + 1, [low[0] + 1, low[0] + 2])  # the second column is the first plus one


def test_percentiles_by_hand_without_the_replicates_that_failed() -> None:
    assert percentile_interval([0, 1, 2, 3, 4, np.nan], confidence=0.5) == (1, 3)


@pytest.mark.parametrize(("successes", "trials"), [(3, 2), (-1, 2), (0.5, 0), (np.nan, 1)])
def test_refuses_counts_that_cannot_be(successes: float, trials: float) -> None:
    with pytest.raises(DataError, match="0 ≤ successes ≤ trials"):
        wilson_interval(successes, trials)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_refuses_a_confidence_in_per_cent(confidence: float) -> None:
    with pytest.raises(ConfigError, match=r"write 0\.95"):
        wilson_interval(1, 2, confidence=confidence)


def test_refuses_to_draw_from_nothing() -> None:
    with pytest.raises(ConfigError, match="at least one input"):
        bootstrap_interval(lambda drawn: drawn.mean(), 0, seed=0)
