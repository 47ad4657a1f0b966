"""Blocks of time: no frame of one part is next to one of another, and no label knows of another block."""

import numpy as np
import pytest


@pytest.fixture
def steering_nets(script):
    return script("steering_nets")


def test_parts_keep_their_distance(steering_nets):
    _, part = steering_nets.parts(4053)
    used = np.flatnonzero(part != "")
    changes = np.flatnonzero(part[used][1:] != part[used][:-1])
    assert len(changes) and (np.diff(used)[changes] > 2 * steering_nets.GAP).all()
    assert {name: int((part == name).sum()) for name in ("validation", "test")} == {"validation": 640, "test": 640}


def test_every_block_is_of_one_part(steering_nets):
    block, part = steering_nets.parts(4053)
    assert all(len(set(part[block == number]) - {""}) == 1 for number in np.unique(block))


def test_labels_are_smoothed_within_their_block(steering_nets):
    block, part = steering_nets.parts(400)
    steering = np.where(block == 1, 1.0, 0.0)
    steering[50] = 1.0
    drive = steering_nets.Drive(np.zeros((400, 1)), steering, block, part)
    smooth = drive.labels(10)
    assert np.allclose(smooth[block == 1], 1)
    assert np.allclose(smooth[block >= 2], 0)
    assert 0 < smooth[50] < 0.1 and smooth[:100].sum() == pytest.approx(1, rel=0.01)


def test_a_constant_scores_nothing(steering_nets):
    truth = np.array([0.0, 1.0, 2.0])
    assert steering_nets.r_squared(np.ones(3), truth, 1.0) == 0
    assert steering_nets.r_squared(truth, truth, 1.0) == 1
