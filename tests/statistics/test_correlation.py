"""Intervals of correlations and ROC areas: do they cover the truth as often as they say?"""

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.statistics import auroc, auroc_interval, correlation_interval, spearman


def test_the_interval_of_a_correlation_covers_the_truth():
    generator = np.random.default_rng(0)
    truth = 6 / np.pi * np.arcsin(0.6 / 2)  # Spearman's, of a normal pair with Pearson's 0.6
    inside = []
    for _ in range(600):
        first = generator.normal(size=60)
        second = 0.6 * first + 0.8 * generator.normal(size=60)
        low, high = correlation_interval(spearman(first, second), 60)
        inside.append(low < truth < high)
    assert 0.92 < np.mean(inside) < 0.98


def test_few_pairs_leave_everything_open():
    assert [float(end) for end in correlation_interval(0.9, 3)] == [-1, 1]
    assert [float(end) for end in correlation_interval(1.0, 30)] == [1, 1]


def test_the_interval_of_an_area_covers_the_truth():
    generator = np.random.default_rng(1)
    truth, inside = 0.7602, []  # P(N(1, 1) > N(0, 1)) = Φ(1/√2)
    for _ in range(600):
        scores = np.concatenate([generator.normal(1, 1, 40), generator.normal(size=120)])
        low, high = auroc_interval(auroc(scores, np.arange(160) < 40), 40, 120)
        inside.append(low < truth < high)
    assert 0.91 < np.mean(inside) < 0.98


def test_an_area_needs_both_kinds():
    with pytest.raises(DataError, match="some of both kinds"):
        auroc_interval(0.5, 0, 3)
