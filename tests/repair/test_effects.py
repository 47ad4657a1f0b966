"""The interval of a difference over repeats and inputs, worked out once more and tried on simulated trainings."""

import numpy as np
import pytest
from scipy.stats import t

from weakspot.core.errors import DataError
from weakspot.repair.effects import mcnemar, repeated_effect
from weakspot.statistics.paired import paired_difference_interval


def test_one_repeat_is_the_paired_interval():
    rng = np.random.default_rng(0)
    before, after = rng.random(80) < 0.6, rng.random(80) < 0.7
    effect = repeated_effect(before[None], after[None])
    assert (effect.low, effect.high) == pytest.approx([float(x) for x in paired_difference_interval(before, after)])
    assert effect.difference == pytest.approx(after.mean() - before.mean())


def plain_interval(before, after):
    """Step by step, for right and wrong answers."""
    repeats, inputs = len(before), len(before[0])
    pairs = [list(zip(old, new, strict=True)) for old, new in zip(before, after, strict=True)]
    gained = sum(sum(new and not old for old, new in row) for row in pairs) / repeats
    lost = sum(sum(old and not new for old, new in row) for row in pairs) / repeats
    p, q = (gained + 1) / (inputs + 2), (lost + 1) / (inputs + 2)
    of_inputs = (p + q - (p - q) ** 2) / (inputs + 2)
    means = [sum(int(new) - int(old) for old, new in row) / inputs for row in pairs]
    mean = sum(means) / repeats
    of_repeats = sum((m - mean) ** 2 for m in means) / (repeats - 1) / repeats
    variance = of_inputs + of_repeats
    freedom = variance**2 / (of_repeats**2 / (repeats - 1))
    spread = t.ppf(0.975, freedom) * variance**0.5
    return mean, p - q - spread, p - q + spread


def test_several_repeats_step_by_step():
    rng = np.random.default_rng(1)
    before, after = rng.random((3, 40)) < 0.5, rng.random((3, 40)) < 0.7
    effect = repeated_effect(before, after)
    assert (effect.difference, effect.low, effect.high) == pytest.approx(plain_interval(before, after))


@pytest.mark.parametrize("numbers", [False, True])
def test_intervals_hold_what_they_promise(numbers):
    """Trainings differ, and so do test sets: the true difference lies inside at least as often as promised."""
    rng, inside, truth = np.random.default_rng(2), 0, 0.1
    for _ in range(300):
        of_training = rng.normal(0, 0.03, (4, 1))
        level = rng.random(150)
        if numbers:
            before = np.broadcast_to(level, (4, 150))
            after = level + truth + of_training + rng.normal(0, 0.4, 150) + rng.normal(0, 0.2, (4, 150))
        else:
            before = np.broadcast_to(rng.random(150) < 0.6, (4, 150))
            after = rng.random((4, 150)) < 0.7 + of_training
        effect = repeated_effect(np.ascontiguousarray(before), after)
        inside += effect.low <= truth <= effect.high
    assert inside / 300 > 0.94
    assert inside < 300  # an interval of everything would hold it too


def test_verdicts():
    right, wrong = np.ones((2, 50), dtype=bool), np.zeros((2, 50), dtype=bool)
    assert repeated_effect(wrong, right).verdict == "better"
    assert repeated_effect(right, wrong).verdict == "worse"
    assert repeated_effect(right, right).verdict == "no difference shown"
    far, near = np.full((2, 50), 3.0) + np.arange(50), np.full((2, 50), 1.0) + np.arange(50)
    assert repeated_effect(far, near).verdict == "better"  # a smaller error
    assert repeated_effect(near, far).verdict == "worse"


def test_mcnemar_by_hand():
    assert mcnemar(5, 1) == pytest.approx(2 * (1 + 6) / 2**6)
    assert mcnemar(0, 0) == 1.0


def test_what_does_not_pair_is_refused():
    with pytest.raises(DataError, match="two arrays"):
        repeated_effect(np.ones((2, 3), dtype=bool), np.ones((2, 4), dtype=bool))


def test_copies_in_a_group_add_no_certainty():
    rng = np.random.default_rng(0)
    before, after = rng.random((3, 60)) < 0.6, rng.random((3, 60)) < 0.75
    once = repeated_effect(before, after)
    copies, films = [np.repeat(values, 8, axis=1) for values in (before, after)], np.repeat(np.arange(60), 8)
    plain, grouped = repeated_effect(*copies), repeated_effect(*copies, groups=films)
    assert plain.high - plain.low < 0.6 * (once.high - once.low)
    assert grouped.high - grouped.low == pytest.approx(once.high - once.low, rel=0.1)
    numbers = [values.astype(float) + rng.random((3, 1)) for values in copies]
    assert repeated_effect(*numbers, groups=films).low < repeated_effect(*numbers).low
