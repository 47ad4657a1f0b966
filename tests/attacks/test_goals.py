"""Which answers are left, and which class is wanted."""

import numpy as np
import pytest
import torch

from weakspot.attacks.goals import Goal, away_from, toward_classes
from weakspot.core.errors import ConfigError

OUTPUTS = torch.tensor([[3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
ANSWERS = torch.tensor([0, 0])


def wanted(toward, **how):
    return toward_classes(toward, OUTPUTS, ANSWERS, ["a", "b"], seed=0, **how).tolist()


def test_the_class_that_is_wanted():
    assert wanted(2) == [2, 2]
    assert wanted("runner_up") == [1, 3]  # the most likely but the one to leave
    assert wanted("least_likely") == [3, 1]
    with pytest.raises(ConfigError, match="classes 0 … 3"):
        wanted(4)


def test_random_classes_are_spread_over_all_others():
    ids, answers = [str(i) for i in range(3000)], torch.full((3000,), 2)
    drawn = toward_classes("random", torch.zeros(3000, 4), answers, ids, seed=1)
    counts = np.bincount(drawn.numpy(), minlength=4)
    assert counts[2] == 0 and counts[[0, 1, 3]].min() > 900
    again = toward_classes("random", torch.zeros(2, 4), answers[:2], ids[7:9], seed=1)
    assert torch.equal(again, drawn[7:9])


def test_what_is_left():
    targets = torch.tensor([1, 1])
    assert away_from(OUTPUTS, targets, "target", "classification", None).tolist() == [1, 1]
    assert away_from(OUTPUTS, targets, "prediction", "classification", None).tolist() == [0, 3]


def test_when_a_goal_is_reached():
    assert Goal(torch.tensor([0, 0])).reached(OUTPUTS, "classification", None).tolist() == [False, True]
    assert Goal(torch.tensor([0, 0]), True).reached(OUTPUTS, "classification", None).tolist() == [True, False]
    labels = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])
    assert Goal(labels).reached(OUTPUTS - 0.5, "multilabel", "logits").tolist() == [False, True]
    assert Goal(OUTPUTS).reached(OUTPUTS, "regression", None) is None
