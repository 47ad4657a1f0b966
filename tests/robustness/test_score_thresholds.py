"""Score thresholds of detectors, by hand and by trying every one."""

import numpy as np
import pytest

from weakspot.robustness import best_f1_threshold, lowest_weak_threshold, quantile_threshold
from weakspot.statistics import detection


def test_thresholds_by_hand():
    scores, weak = np.array([5.0, 4.0, 3.0, 2.0, 1.0]), np.array([True, False, True, False, False])
    assert best_f1_threshold(scores, weak) == 3.0
    assert lowest_weak_threshold(scores, weak) == 3.0
    assert (scores >= quantile_threshold(scores, weak)).sum() == 2


def test_the_papers_rule_warns_where_it_flags_everything():
    with pytest.warns(UserWarning, match="flags every input as weak"):
        assert lowest_weak_threshold([-1.0, -0.5, -1.0], [True, True, False]) == -1.0


def test_best_f1_by_trying_every_threshold():
    rng = np.random.default_rng(8)
    scores, weak = rng.integers(0, 30, 200).astype(float), rng.random(200) < 0.3
    best = max(np.unique(scores), key=lambda cut: detection(scores >= cut, weak).f1)
    found = best_f1_threshold(scores, weak)
    assert detection(scores >= found, weak).f1 == detection(scores >= best, weak).f1
