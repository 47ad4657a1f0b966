"""Intervals over samples that belong together: against plain references, and by how often they cover the truth."""

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.statistics import auroc, wilson_interval
from weakspot.statistics.clustered import (
    auroc_deviations,
    design_effect,
    effective_size,
    grouped_mean_interval,
    grouped_paired_interval,
    grouped_share_interval,
)
from weakspot.statistics.paired import paired_difference_interval


def drawn(rng, share, groups, size, alike):
    """Truth values whose share varies between groups (beta); `alike` is the correlation within a group."""
    rates = rng.beta(share * (1 - alike) / alike, (1 - share) * (1 - alike) / alike, groups)
    names = np.repeat(np.arange(groups), rng.poisson(size - 1, groups) + 1)
    return rng.random(len(names)) < rates[names], names


def bootstrap_variance(values, names, rng, replicates=4000):
    """Of the mean, by drawing whole groups."""
    sums, sizes = np.bincount(names, values), np.bincount(names)
    chosen = rng.integers(len(sizes), size=(replicates, len(sizes)))
    return (sums[chosen].sum(1) / sizes[chosen].sum(1)).var()


def test_the_design_effect_is_that_of_a_bootstrap_over_groups():
    rng = np.random.default_rng(0)
    flags, names = drawn(rng, 0.7, 200, 8, 0.4)
    independent = flags.var() / len(flags)
    expected = bootstrap_variance(flags, names, rng) / independent
    assert design_effect(flags - flags.mean(), names) == pytest.approx(expected, rel=0.1)
    assert expected > 2


def test_samples_that_stand_alone_and_copies_of_one():
    rng = np.random.default_rng(1)
    values = rng.normal(size=300)
    assert design_effect(values - values.mean(), np.arange(300)) == pytest.approx(300 / 299)
    copies = np.repeat(values, 5)
    assert design_effect(copies - copies.mean(), np.repeat(np.arange(300), 5)) == pytest.approx(5 * 300 / 299)


def test_where_all_are_equal_a_group_counts_once():
    low, high = grouped_share_interval(np.ones(200, dtype=bool), np.repeat(np.arange(40), 5))
    assert float(high) == pytest.approx(1)
    assert float(low) < float(wilson_interval(40, 40).low) < float(wilson_interval(200, 200).low)


@pytest.mark.parametrize(
    ("share", "groups", "size", "alike"),
    [(0.5, 30, 10, 0.3), (0.9, 30, 30, 0.5), (0.9, 100, 5, 0.05), (0.97, 60, 15, 0.4), (0.8, 12, 20, 0.2)],
)
def test_intervals_cover_the_truth_where_plain_ones_do_not(share, groups, size, alike):
    rng = np.random.default_rng(2)
    covered = plain = 0
    for _ in range(400):
        flags, names = drawn(rng, share, groups, size, alike)
        low, high = grouped_share_interval(flags, names)
        covered += low <= share <= high
        low, high = wilson_interval(flags.sum(), len(flags))
        plain += low <= share <= high
    assert covered / 400 > 0.91
    assert plain / 400 < (0.93 if alike < 0.1 else 0.8)


def test_means_cover_the_truth():
    rng, covered = np.random.default_rng(3), 0
    names = np.repeat(np.arange(25), 12)
    for _ in range(400):
        values = 2 + rng.normal(size=25)[names] + rng.normal(size=300)
        low, high = grouped_mean_interval(values, names)
        covered += low <= 2 <= high
    assert 0.91 < covered / 400 < 0.985


def test_paired_differences_cover_the_truth():
    rng, covered, plain = np.random.default_rng(4), 0, 0
    for _ in range(400):
        gains = rng.beta(1, 9, 40)  # 0.1 of the inputs are gained, in some groups more
        names = np.repeat(np.arange(40), 10)
        gained = rng.random(400) < gains[names]
        before = np.zeros(400, dtype=bool)
        low, high = grouped_paired_interval(before, gained, names)
        covered += low <= 0.1 <= high
        low, high = paired_difference_interval(before, gained)
        plain += low <= 0.1 <= high
    assert covered / 400 > 0.92
    assert plain < covered


def test_numbers_are_paired_by_their_change():
    before, names = np.arange(6.0), [0, 0, 1, 1, 2, 2]
    after = before + np.array([1, 1, 2, 2, 3, 3])
    low, high = grouped_paired_interval(before, after, names)
    assert (float(low), float(high)) == pytest.approx((2 - 4.3027 * 3**-0.5, 2 + 4.3027 * 3**-0.5), abs=1e-3)


def test_how_far_each_sample_moves_the_area():
    rng = np.random.default_rng(5)
    scores, true = np.round(rng.normal(size=60), 1), rng.random(60) < 0.4
    scores[true] += 0.7
    moved, area = auroc_deviations(scores, true), auroc(scores, true)
    for sample in range(0, 60, 7):  # leaving a sample out moves the area by its placement
        rest = np.arange(60) != sample
        kind = (true == true[sample]).sum()
        assert (area - auroc(scores[rest], true[rest])) * (kind - 1) * 60 / kind == pytest.approx(moved[sample])
    assert moved.sum() == pytest.approx(0, abs=1e-9)


def test_one_group_leaves_all_open():
    low, high = grouped_share_interval([True, False] * 20, ["a"] * 40)
    assert float(high - low) > 0.95
    assert [float(end) for end in grouped_mean_interval([1.0, 2.0], ["a", "a"])] == [-np.inf, np.inf]
    assert effective_size(np.zeros(40), ["a"] * 40) < 1


def test_groups_of_another_length_are_refused():
    with pytest.raises(DataError, match=r"one group per sample, got \(3,\) samples and \(2,\) groups"):
        design_effect([1, 2, 3], ["a", "b"])
