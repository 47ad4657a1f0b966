"""Combinations of clusters: which are reached, how many neurons are enough, what is missing and what shows it."""

import numpy as np
import pytest

from tests.references import importance as reference
from weakspot.core.errors import DataError
from weakspot.coverage import (
    enough_neurons,
    importance_driven_coverage,
    missing_combinations,
    nearest_inputs,
    optimal_clusters_1d,
)
from weakspot.coverage.metrics_combinations import reached_combinations


@pytest.mark.parametrize("clusters", [2, 3])
def test_coverage_agrees_with_counting_every_combination(clusters):
    rng = np.random.default_rng(clusters)
    train, test = rng.normal(size=(12, 3)), rng.normal(size=(9, 3))
    found = importance_driven_coverage(train, test, candidates=[clusters])
    assert found.coverage == reference.combinations_reached(train, test, clusters)
    assert found.targets == clusters**3
    assert found.counts.sum() == 9


def test_more_inputs_never_cover_less_and_order_does_not_matter():
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(200, 4)), rng.normal(size=(40, 4))
    each = [importance_driven_coverage(train, test[:size]).coverage for size in (1, 10, 40)]
    assert each == sorted(each)
    backwards = importance_driven_coverage(train[::-1], test[::-1])
    np.testing.assert_array_equal(backwards.combinations, importance_driven_coverage(train, test).combinations)


def test_any_number_of_neurons():
    values = np.random.default_rng(1).normal(size=(50, 90))
    found = importance_driven_coverage(values, values, candidates=[4])
    assert found.targets == 4**90
    assert found.coverage == pytest.approx(50 / 4**90)


def test_zeros_can_be_left_out_before_clustering():
    train = np.array([[0.0]] * 50 + [[1.0], [1.1], [9.0], [9.1]])
    kept = importance_driven_coverage(train, train, candidates=[2]).clusters[0]
    assert kept.borders[0] == pytest.approx((2.1 / 52 + 9.05) / 2)
    without = importance_driven_coverage(train, train, candidates=[2], drop_zeros=True).clusters[0]
    np.testing.assert_allclose(without.centres, [1.05, 9.05])
    assert without.labels([0.0]).tolist() == [0], "a zero belongs to the nearest cluster"
    dead = np.zeros((5, 1))
    assert importance_driven_coverage(dead, dead, drop_zeros=True).targets == 1


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match=r"same neurons.*\(3, 2\) and \(3, 1\)"):
        importance_driven_coverage(np.ones((3, 2)), np.ones((3, 1)))


def test_enough_neurons_are_limited_by_share_and_by_inputs():
    relevance = np.array([5.0, 3.0, 1.0, 1.0, -4.0])
    each = enough_neurons(relevance, [2, 2, 2, 2, 2], 10_000, share=0.8, inputs_each=10)
    assert (each.count, each.reason) == (2, "the 2 most important carry 80 % of the positive relevance (80 % wanted)")
    assert enough_neurons(relevance, [2, 2, 2, 2, 2], 10_000, share=1.0, inputs_each=10).count == 4
    few = enough_neurons(relevance, [3, 3, 3, 3, 3], 100, share=1.0, inputs_each=10)
    assert few.count == 2
    assert few.reason.endswith("one more would leave fewer than 10 of 100 training inputs per combination")
    assert enough_neurons(np.array([-1.0, -2.0]), [2, 2], 100, share=0.5, inputs_each=10).count == 1
    assert enough_neurons(relevance, iter([2]), 1, share=0.5, inputs_each=10).count == 1, "there is always one"


def test_missing_combinations_are_those_of_training_first():
    low, high = 0.0, 10.0
    train = np.array([[low, low]] * 5 + [[high, high]] * 4 + [[low, high]] * 2)
    found = reached_combinations(np.array([[low, low]]), [optimal_clusters_1d(column, [2]) for column in train.T])
    shown = reached_combinations(train, found.clusters)
    holes = missing_combinations(found, shown, 10)
    assert holes.combinations.tolist() == [[1, 1], [0, 1], [1, 0]]
    assert holes.training.tolist() == [4, 2, 0]
    assert missing_combinations(found, shown, 1).combinations.tolist() == [[1, 1]]


def test_nothing_is_missing_where_all_is_reached():
    values = np.array([[0.0], [1.0]])
    found = importance_driven_coverage(values, values, candidates=[2])
    assert missing_combinations(found, found, 5).combinations.shape == (0, 1)


def test_nearest_inputs_lie_inside_if_any_does():
    clusters = [optimal_clusters_1d([0.0, 1.0, 10.0, 11.0], [2])] * 2
    values = np.array([[0.0, 0.0], [11.0, 5.0], [10.4, 0.2], [11.0, 11.0], [10.6, 0.4]])
    rows, distance = nearest_inputs(np.array([1, 0]), clusters, values, count=4)
    assert rows.tolist() == [4, 2, 1, 0], "nearest to the centres 10.5 and 0.5, then what lies outside"
    assert distance[:3].tolist() == [0.0, 0.0, 0.0]
    assert distance[3] == pytest.approx(5.5 / values[:, 0].std())
