"""The published figures of DeepInspect, from the authors' own matrices."""

import numpy as np
import pytest

from weakspot.classes import (
    average_bias,
    average_confusion_disparity,
    bias_errors,
    confusion_errors,
    pair_confusion,
    pair_values,
    suspicious,
    type1_confusion,
    type2_confusion,
)
from weakspot.statistics import cost_effectiveness, spearman


@pytest.mark.parametrize(
    ("name", "cutoff", "true_positives", "false_positives", "precision", "recall"),
    [
        ("coco", "std", 138, 256, 0.35, 0.775),
        ("coco", "top 1%", 31, 0, 1, 0.174),
        ("cifar100", "std", 206, 584, 0.261, 0.718),
        ("cifar100", "top 1%", 39, 10, 0.796, 0.136),
    ],
)
def test_confusion_errors_of_table_3(
    oracle, name: str, cutoff: str, true_positives: int, false_positives: int, precision: float, recall: float
) -> None:
    published = oracle(name)
    found = confusion_errors(published.distance, published.confusion, cutoff=cutoff)
    assert (found.true_positives, found.false_positives) == (true_positives, false_positives)
    assert (found.precision, found.recall) == (pytest.approx(precision, abs=6e-4), pytest.approx(recall, abs=6e-4))


@pytest.mark.parametrize(
    ("name", "leak", "errors", "top", "correlation"),
    [
        ("coco", True, (248, 279), (24, 8), 0.76),  # Table IV: 249/278
        ("cifar100", True, (310, 542), (29, 21), 0.62),  # Table IV: 310/543
        ("coco", False, (241, 304), (22, 10), 0.73),
        ("cifar100", False, (280, 566), (18, 32), 0.55),
    ],
)
def test_bias_errors_of_table_4_with_and_without_the_leak(
    oracle, name: str, leak: bool, errors: tuple[int, int], top: tuple[int, int], correlation: float
) -> None:
    published = oracle(name)
    score = average_bias(published.distance, confusion=published.confusion if leak else None)
    disparity = average_confusion_disparity(published.confusion)
    for cutoff, expected in (("std", errors), ("top 1%", top)):
        found = bias_errors(score, disparity, cutoff=cutoff)
        assert (found.true_positives, found.false_positives) == expected
    assert spearman(pair_values(score), pair_values(disparity)) == pytest.approx(correlation, abs=5e-3)


def test_published_correlation_and_number_of_confused_pairs(oracle) -> None:
    published = oracle("coco")
    truth = pair_values(pair_confusion(published.confusion))
    assert spearman(pair_values(published.distance), truth) == pytest.approx(-0.55, abs=5e-3)
    assert suspicious(truth).sum() == 178  # section IV-B


def test_published_cost_effectiveness_of_bias(oracle) -> None:
    published = oracle("coco")
    score = average_bias(published.distance, confusion=published.confusion)
    truth = suspicious(pair_values(average_confusion_disparity(published.confusion)))
    curve = cost_effectiveness(pair_values(score), truth)
    assert curve.gain == pytest.approx(0.76, abs=5e-3)  # the best of "from 37% to 76%"
    assert curve.shortfall == pytest.approx(0.0711, abs=1e-4)  # "only 7.11%" behind the optimal curve


@pytest.mark.parametrize("name", ["coco", "cifar100"])
def test_published_gain_of_confusion_lies_in_the_published_range(oracle, name: str) -> None:
    published = oracle(name)
    truth = suspicious(pair_values(pair_confusion(published.confusion)))
    assert 0.616 <= cost_effectiveness(-pair_values(published.distance), truth).gain <= 0.857


def test_published_confusion_comes_out_of_the_published_labels(oracle) -> None:
    coco, cifar = oracle("coco"), oracle("cifar100")
    np.testing.assert_array_equal(type2_confusion(coco.labels, coco.predicted), coco.confusion)
    np.testing.assert_array_equal(type1_confusion(coco.labels, coco.predicted), coco.type1)
    np.testing.assert_array_equal(type1_confusion(cifar.labels, cifar.predicted), cifar.type1)
