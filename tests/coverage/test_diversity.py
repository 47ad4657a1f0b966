"""Diverse selection: against a plain greedy loop, with near copies, and what is refused."""

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.coverage import diverse_order


def plain_greedy(unsure, features, wanted):
    """By the definition, all pairs in a loop: most unsure first, then unsure × distance to the nearest chosen."""
    unit = [np.array(row) / np.linalg.norm(row) for row in features]
    chosen = [max(range(len(unsure)), key=lambda place: (unsure[place], -place))]
    while len(chosen) < wanted:
        gains = {
            place: unsure[place] * min(np.linalg.norm(unit[place] - unit[other]) for other in chosen)
            for place in range(len(unsure))
            if place not in chosen
        }
        chosen.append(max(gains, key=gains.get))
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_plain_greedy_order(seed):
    rng = np.random.default_rng(seed)
    unsure, features = rng.random(20), rng.normal(size=(20, 4))
    found = diverse_order(unsure, features, budget=8)
    assert found[:8].tolist() == plain_greedy(unsure, features, 8)
    assert sorted(found.tolist()) == list(range(20))


def test_what_is_not_chosen_follows_by_uncertainty():
    unsure = np.array([0.9, 0.1, 0.5, 0.3])
    assert diverse_order(unsure, np.eye(4), budget=1).tolist() == [0, 2, 3, 1]


def test_copies_of_one_image_do_not_come_first():
    unsure, features = np.array([0.9] * 5 + [0.6, 0.5]), np.array([[1.0, 0.0]] * 5 + [[0.0, 1.0], [-1.0, 0.0]])
    assert set(diverse_order(unsure, features, budget=3)[:3].tolist()) == {0, 5, 6}


def test_ties_go_by_rank():
    assert diverse_order([0.5, 0.5], np.eye(2), budget=1, rank=[1, 0]).tolist() == [1, 0]


def test_features_of_other_inputs_are_refused():
    with pytest.raises(DataError, match="expected features of 2 inputs"):
        diverse_order([0.5, 0.5], np.eye(3))
