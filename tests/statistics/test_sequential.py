"""Stopping rules: their promises by exhaustive counting and simulation, and what they save on real predictions."""

import itertools
import operator

import numpy as np
import pytest
from scipy.stats import betabinom

from weakspot.core.errors import ConfigError
from weakspot.statistics.sequential import all_trials, certain_rule, operation, predictive_rule, wald_rule

RULES = {
    "certain": certain_rule,
    "predictive": lambda total, threshold: predictive_rule(total, threshold, 0.02),
    "wald": lambda total, threshold: wald_rule(total, threshold, 0.05),
}


def followed(rule, path):
    """Walk one path of successes and failures: (said low, trials)."""
    for used, right in enumerate(itertools.accumulate(path), 1):
        stop, below = rule.verdicts(right, used)
        if stop:
            return bool(below), used
    raise AssertionError("the rule never stops")


@pytest.mark.parametrize(
    ("threshold", "low_if", "is_low"),
    [
        *((threshold, "below", operator.lt) for threshold in (1 / 3, 0.5, 0.75, 1.0)),
        *((threshold, "at_or_below", operator.le) for threshold in (0.0, 1 / 3, 0.5, 0.9)),
    ],
)
def test_certain_is_certain_on_every_path(threshold, low_if, is_low):
    rule = certain_rule(9, threshold, low_if)
    for path in itertools.product((0, 1), repeat=9):
        said, used = followed(rule, path)
        assert said == is_low(sum(path) / 9, threshold)
        others = {sum(path[:used]) + more for more in range(9 - used + 1)}
        assert len({is_low(each / 9, threshold) for each in others}) == 1
        before = {sum(path[: used - 1]) + more for more in range(9 - used + 2)}
        assert len({is_low(each / 9, threshold) for each in before}) == 2  # and not a trial later than it must


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.72, 0.9])
def test_operation_sums_over_all_paths(name, share):
    rule = RULES[name](10, 0.7)
    said = trials = 0.0
    for path in itertools.product((0, 1), repeat=10):
        chance = share ** sum(path) * (1 - share) ** (10 - sum(path))
        below, used = followed(rule, path)
        said += chance * below
        trials += chance * used
    found = operation(rule, share)
    assert found.low == pytest.approx(said) and found.trials == pytest.approx(trials)


@pytest.mark.parametrize("error", [0.005, 0.02, 0.05])
def test_predictive_errs_no_more_than_it_says(error):
    """Shares drawn from the uniform prior: against the verdict of all trials, path by path."""
    rule, rng = predictive_rule(51, 0.75, error), np.random.default_rng(5)
    paths = rng.random((20000, 51)) < rng.random((20000, 1))
    right = paths.cumsum(1)
    stop, below = rule.verdicts(right, np.arange(1, 52)[None].repeat(len(paths), 0))
    first = stop.argmax(1)
    said = below[np.arange(len(paths)), first]
    assert (said != (right[:, -1] / 51 <= 0.75)).mean() <= error


def test_predictive_stops_no_earlier_than_its_chance_allows():
    rule = predictive_rule(51, 0.75, 0.02)
    for used in (12, 20, 30):
        right = int(rule.high[used])
        assert betabinom.cdf(38 - right, 51 - used, 1 + right, 1 + used - right) <= 0.02
        assert betabinom.cdf(38 - right + 1, 51 - used, right, 2 + used - right) > 0.02


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_wald_keeps_its_error_outside_the_zone(threshold):
    rule = wald_rule(400, threshold, 0.05)
    assert operation(rule, threshold + 0.1).low <= 0.055
    assert 1 - operation(rule, threshold - 0.1).low <= 0.055


def test_one_of_both_holds_in_the_end():
    for rule in (make(51, 0.75) for make in RULES.values()):
        stop, _ = rule.verdicts(np.arange(52), np.full(52, 51))
        assert stop.all() and (rule.low < rule.high).all()


def test_all_trials_is_the_binomial():
    assert all_trials(3, 0.5, 0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("threshold", [0.75, 0.5])
@pytest.mark.parametrize("net", ["ResN", "WideResN", "Vgg16Half"])
def test_real_predictions_need_far_fewer_looks(net, threshold, shared):
    """At least 2.5 times fewer, and under 1 % other verdicts more than 0.1 away from the threshold."""
    right = np.load(shared / f"models/neighbours/{net}-svhn-predicted.npz")["test"]
    with np.load(shared / "data/svhn.npz") as arrays:
        right = right == arrays["y_test"][:, None]
    rule, counts = predictive_rule(51, threshold, 0.02), right.cumsum(1)
    stop, below = rule.verdicts(counts, np.arange(1, 52)[None].repeat(len(right), 0))
    first = stop.argmax(1)
    accuracy = right.mean(1)
    wrong = below[np.arange(len(right)), first] != (accuracy <= threshold)
    assert 51 / (first + 1).mean() >= 2.5
    assert wrong[np.abs(accuracy - threshold) > 0.1].mean() < 0.01
    assert wrong.mean() < 0.025


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: certain_rule(0, 0.5), "at least one trial"),
        (lambda: certain_rule(5, 0.0), "0 < threshold ≤ 1, as no share lies below 0"),
        (lambda: certain_rule(5, 1.0, "at_or_below"), "0 ≤ threshold < 1, as every share"),
        (lambda: certain_rule(5, 0.5, "under"), "'under' is not known: choose one of below, at_or_below"),
        (lambda: predictive_rule(5, 0.5, 0.7), "error rate between 0 and 0.5"),
        (lambda: wald_rule(5, 0.95, 0.05), "narrow the zone"),
    ],
)
def test_impossible_rules_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
