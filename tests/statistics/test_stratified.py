"""A share from strata: against Wilson's interval, a slow search over all shares, and by simulation."""

import numpy as np
import pytest
from scipy.optimize import brentq

from weakspot.core.errors import DataError
from weakspot.statistics import stratified_share, wilson_interval

POPULATION, TRIALS = np.array([900, 500, 100]), np.array([30, 30, 30])


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (99, 100), (250, 1000)])
def test_of_one_large_stratum_it_is_wilsons_interval(successes, trials):
    value, ends = stratified_share([10**12], [trials], [successes])
    expected = wilson_interval(successes, trials)
    assert float(value) == successes / trials
    np.testing.assert_allclose([ends.low, ends.high], [expected.low, expected.high], atol=1e-7)


def likeliest(share, weights, n, k):
    """The most likely shares of the strata whose mean is `share`, by a search for the multiplier."""

    def shares(multiplier):
        found = []
        for weight, trials, hits in zip(weights, n, k, strict=True):
            slope = lambda p: hits / p - (trials - hits) / (1 - p) - multiplier * weight  # noqa: B023, E731
            tiny = 1e-13
            if slope(tiny) <= 0:
                found.append(0.0)
            elif slope(1 - tiny) >= 0:
                found.append(1.0)
            else:
                found.append(brentq(slope, tiny, 1 - tiny, xtol=1e-15))
        return np.array(found)

    root = brentq(lambda multiplier: float(weights @ shares(multiplier)) - share, -1e8, 1e8, xtol=1e-9)
    return shares(root)


@pytest.mark.parametrize("successes", [(0, 2, 10), (1, 5, 20), (29, 30, 20), (0, 0, 15)])
def test_the_ends_are_where_the_score_test_begins_to_refuse(successes):
    k, weights = np.array(successes), POPULATION / POPULATION.sum()
    value, ends = stratified_share(POPULATION, TRIALS, k)
    for end in ends:
        p = likeliest(float(end), weights, TRIALS, k)
        variance = (weights**2 * p * (1 - p) / TRIALS * (1 - TRIALS / POPULATION)).sum()
        assert abs(float(value) - float(end)) == pytest.approx(1.959964 * np.sqrt(variance), rel=2e-3)


@pytest.mark.parametrize("shares", [(0.001, 0.05, 0.4), (0.0, 0.0, 0.5), (0.02, 0.02, 0.02)])
def test_it_is_unbiased_and_covers(shares):
    """4,000 draws without replacement; three standard errors of a coverage of 95 % are one point."""
    rng = np.random.default_rng(0)
    right = (POPULATION * np.array(shares)).astype(int)
    drawn = [rng.hypergeometric(r, n - r, t, 4000) for r, n, t in zip(right, POPULATION, TRIALS, strict=True)]
    truth = right.sum() / POPULATION.sum()
    value, (low, high) = stratified_share(POPULATION, TRIALS, np.stack(drawn, 1))
    assert value.mean() == pytest.approx(truth, abs=3 * value.std() / np.sqrt(4000) + 1e-9)
    assert ((low <= truth) & (truth <= high)).mean() >= 0.93


def test_all_labelled_leaves_nothing_open():
    value, (low, high) = stratified_share([10, 20], [10, 20], [4, 20])
    assert float(low) == pytest.approx(float(value)) == pytest.approx(float(high)) == pytest.approx(0.8)


@pytest.mark.parametrize(("trials", "successes"), [([0, 5], [0, 1]), ([5, 5], [6, 0]), ([50, 5], [1, 1])])
def test_what_cannot_be_is_refused(trials, successes):
    with pytest.raises(DataError, match="expected 0 ≤ successes"):
        stratified_share([20, 20], trials, successes)
