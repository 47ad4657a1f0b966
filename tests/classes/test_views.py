"""Fairness between groups, separation of classes, and the list of images to look at next."""

import numpy as np
import pytest
from scipy.stats import kruskal

from weakspot.classes import (
    accuracy_gaps,
    class_members,
    class_separation,
    group_accuracy,
    images_to_label,
    neuron_coverage,
)
from weakspot.classes.analysis import Ranking
from weakspot.classes.finding_parts import ranking_summary
from weakspot.core.errors import DataError
from weakspot.statistics import Detection, cohens_d, difference_interval, effect_size_class, wilson_interval


def test_accuracy_of_groups() -> None:
    accuracy = group_accuracy([1, 1, 0, 1, 0], ["b", "b", "b", "a", "a"])
    assert accuracy.groups == ("a", "b")
    assert accuracy.accuracy.tolist() == [0.5, 2 / 3]
    np.testing.assert_array_equal(accuracy.interval(), wilson_interval([1, 2], [2, 3]))


def test_gaps_are_sorted_named_from_the_better_group_and_corrected_for_their_number() -> None:
    accuracy = group_accuracy(np.repeat([1, 0, 1, 0, 1, 0], [90, 10, 50, 50, 85, 15]), np.repeat(["a", "b", "c"], 100))
    gaps = accuracy_gaps(accuracy, confidence=0.94)
    assert gaps.pairs.tolist() == [[0, 1], [2, 1], [0, 2]]
    assert gaps.difference == pytest.approx([0.4, 0.35, 0.05])
    low, high = difference_interval([90, 85, 90], [100] * 3, [50, 50, 85], [100] * 3, confidence=0.98)
    assert gaps.low == pytest.approx(low)
    assert gaps.high == pytest.approx(high)
    assert gaps.sure.tolist() == [True, True, False]


def test_precision_and_recall_of_pairs_have_an_interval_and_say_what_it_takes_for_granted() -> None:
    score, truth = np.array([9.0, 1, 2, 3, 2, 1]), np.array([8.0, 1, 7, 1, 1, 1])
    found = Detection(true_positives=1, false_positives=0, false_negatives=1, true_negatives=4)
    nothing = Detection(true_positives=0, false_positives=0, false_negatives=2, true_negatives=4)
    told = ranking_summary("confusion", Ranking(score, truth, found, nothing))
    for name, pairs in (("precision", 1), ("recall", 2)):
        estimate = told[f"confusion_{name}"]
        assert estimate.value == 1 / pairs and "as if pairs were independent" in estimate.about
        assert (estimate.low, estimate.high) == pytest.approx(wilson_interval(1, pairs))
    assert "confusion_order" not in told
    backwards = ranking_summary("confusion", Ranking(-score, truth, found, nothing))
    assert backwards["confusion_gain"].value < 0 and backwards["confusion_order"].value == "worse than a random one"
    assert told["confusion_top_precision"].value is None and told["confusion_top_precision"].low is None


def test_chance_makes_no_gap_among_many_groups() -> None:
    generator, alarms = np.random.default_rng(0), 0
    for _ in range(60):
        alarms += accuracy_gaps(group_accuracy(generator.random(1000) < 0.8, np.arange(1000) % 20)).sure.any()
    assert alarms <= 6


def test_separation_agrees_with_scipy_and_the_pairwise_effects() -> None:
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 4, 300)
    values = generator.normal(size=300) + 0.3 * labels
    groups = [values[labels == number] for number in range(4)]
    result = class_separation(values, class_members(labels, 5))
    assert result.test.p_value == pytest.approx(kruskal(*groups).pvalue)
    names = [effect_size_class(cohens_d(groups[a], groups[b])).item() for a in range(4) for b in range(a)]
    assert result.effect_sizes == {name: names.count(name) / 6 for name in result.effect_sizes}


def test_an_image_of_several_classes_counts_in_each() -> None:
    members = class_members([[1, 1], [1, 0], [0, 1], [1, 1]], 2)
    coverage = neuron_coverage(np.packbits([[1, 0], [1, 1], [1, 0], [0, 0]], axis=1), neurons=2)
    expected = kruskal([0.5, 1, 0], [0.5, 0.5, 0])
    assert class_separation(coverage, members).test.statistic == pytest.approx(expected.statistic)


def test_images_alternate_between_pairs_and_directions() -> None:
    predicted = np.array([0, 0, 0, 1, 2])
    scores = np.zeros((5, 3))
    scores[:3, 1] = [0.1, 0.3, 0.2]
    scores[:3, 2] = [0.1, 0.3, 0.4]
    chosen = images_to_label([[0, 1], [0, 2]], scores, class_members(predicted, 3), budget=10)
    # 0→1: image 1; 1→0: image 3; 0→2: image 2; 2→0: image 4; then 0→1 again: image 0
    assert [tuple(each) for each in chosen] == [(1, 0, 1), (3, 1, 0), (2, 0, 2), (4, 2, 0), (0, 0, 1)]
    assert chosen[:2] == images_to_label([[0, 1], [0, 2]], scores, class_members(predicted, 3), budget=2)
    assert images_to_label(np.empty((0, 2)), scores, class_members(predicted, 3), budget=10) == []


def test_equal_scores_are_settled_by_rank() -> None:
    scores, predicted = np.zeros((3, 2)), class_members([0, 0, 0], 2)
    chosen = images_to_label([[0, 1]], scores, predicted, budget=3, rank=np.array([2, 0, 1]))
    assert [each.image for each in chosen] == [1, 2, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: group_accuracy([True], ["a", "b"]), "one group per image"),
        (lambda: accuracy_gaps(group_accuracy([True], ["a"])), "two or more groups to compare, got 1"),
        (lambda: class_separation([1.0], class_members([0, 1], 2)), "each of 2 images, got shape .1,."),
        (
            lambda: images_to_label([[0, 1]], np.zeros((2, 3)), class_members([0, 1], 2), budget=1),
            "scores of shape .2, 2.",
        ),
    ],
)
def test_says_what_is_wrong(call, message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()
