"""Positions by class and prediction: a hand-computed case, and a slow plain version."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from tests.references.segmentation import agreement, iou, mean_iou
from weakspot import Subject, examine
from weakspot.classes import PixelConfusion
from weakspot.classes.room import steps
from weakspot.core.errors import ConfigError


class Painted(nn.Module):
    """Predicts at each position the class that the input names."""

    def forward(self, images):
        return torch.nn.functional.one_hot(images[:, 0].long(), 3).movedim(-1, 1).float()


def found(predicted, targets, classes=("sky", "road", "car")):
    inputs = np.asarray(predicted, np.float32)[:, None]
    (finding,) = examine(
        Subject(Painted(), task="segmentation", classes=list(classes)),
        (inputs, np.asarray(targets)),
        [PixelConfusion()],
    )
    return finding


def test_a_case_by_hand():
    """Of 4 positions of road, 1 is predicted as sky and 2 as car, which is nowhere in the targets."""
    finding = found([[[0, 0, 1]], [[2, 2, 0]]], [[[0, 0, 1]], [[1, 1, 1]]])
    assert finding.arrays["confusion"].tolist() == [[2, 0, 0], [1, 1, 2], [0, 0, 0]]
    assert finding.arrays["class_iou"].tolist() == [2 / 3, 1 / 4, 0]
    assert finding.arrays["class_recall"][:2].tolist() == [1, 1 / 4] and np.isnan(finding.arrays["class_recall"][2])
    assert finding.arrays["class_precision"].tolist() == [2 / 3, 1, 0]
    assert finding.arrays["class_inputs"].tolist() == [1, 2, 0]
    assert finding.table.to_pylist() == [
        {"class": "road", "predicted": "car", "share": 0.5, "positions": 2, "inputs": 1},
        {"class": "road", "predicted": "sky", "share": 0.25, "positions": 1, "inputs": 1},
    ]
    numbers = finding.summary
    assert (numbers["worst_class"].value, numbers["worst_iou"].value) == ("car", 0)
    assert numbers["most_confused"].value == "road are predicted as car" and numbers["most_confused_share"].value == 0.5
    assert numbers["mean_iou"].value == pytest.approx((1 + 0) / 2)
    assert numbers["pixel_accuracy"].value == pytest.approx((1 + 0) / 2)


def test_it_is_the_plain_version():
    rng = np.random.default_rng(1)
    predicted, targets = rng.integers(0, 3, (2, 9, 4, 5))
    finding = found(predicted, targets)
    counted = Counter(zip(targets.flatten().tolist(), predicted.flatten().tolist(), strict=True))
    assert finding.arrays["confusion"].tolist() == [[counted[a, b] for b in range(3)] for a in range(3)]
    for kind in range(3):
        assert finding.arrays["class_iou"][kind] == pytest.approx(iou(predicted.tolist(), targets.tolist(), kind))
    both = list(zip(predicted.tolist(), targets.tolist(), strict=True))
    assert finding.summary["mean_iou"].value == pytest.approx(np.mean([mean_iou(*pair, 3) for pair in both]))
    assert finding.summary["pixel_accuracy"].value == pytest.approx(np.mean([agreement(*pair) for pair in both]))
    assert finding.summary["mean_iou"].low < finding.summary["mean_iou"].value < finding.summary["mean_iou"].high


def test_without_an_error_no_pair_is_confused():
    finding = found([[[0, 1]]], [[[0, 1]]])
    assert finding.summary["most_confused"].value is None and finding.table.num_rows == 0
    assert finding.summary["mean_iou"].low is None  # of one input


def test_it_takes_no_options_of_other_rankings():
    assert [step.probe for step in steps({"by": "pixels"})] == [PixelConfusion]
    with pytest.raises(ConfigError, match="groups means nothing where classes are compared by pixels"):
        steps({"by": "pixels", "groups": "site"})
