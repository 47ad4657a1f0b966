"""Clusters of one-dimensional values and their indices, against plain references and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.cluster import KMeans

from tests.references import importance as reference
from weakspot.core.errors import ConfigError, DataError
from weakspot.coverage import calinski_harabasz_1d, davies_bouldin_1d, optimal_clusters_1d, silhouette_1d

LABELLED = st.lists(
    st.tuples(st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3, width=32)), st.integers(0, 4)),
    min_size=3,
    max_size=40,
)
VALUES = st.lists(st.one_of(st.integers(-4, 4).map(float), st.floats(-50, 50, width=32)), min_size=5, max_size=30)


@given(LABELLED)
@settings(max_examples=200, deadline=None)
def test_silhouette_agrees_with_sklearn_for_any_labels(pairs):
    values, labels = map(np.array, zip(*pairs, strict=True))
    if 2 <= len(np.unique(labels)) < len(values):
        expected = metrics.silhouette_score(values[:, None], labels, metric="manhattan")
        assert silhouette_1d(values, labels) == pytest.approx(expected, abs=1e-9)
        assert silhouette_1d(values, labels) == pytest.approx(reference.silhouette(values, labels.tolist()), abs=1e-9)


def test_silhouette_of_singletons_and_ties():
    assert silhouette_1d([1.0, 2.0, 9.0], [0, 1, 2]) == 0.0
    assert silhouette_1d([5.0, 5.0, 5.0, 5.0], [0, 0, 1, 1]) == 0.0, "all equal: A = B = 0"
    assert silhouette_1d([5.0, 5.0, 8.0, 8.0], [0, 0, 1, 1]) == 1.0, "nothing within, something between"
    assert silhouette_1d([0.0, 1.0, 10.0], [7, 7, -2]) == pytest.approx((9 / 10 + 8 / 9 + 0) / 3)


def test_silhouette_far_from_zero_loses_no_digits():
    values, labels = np.array([0.0, 1, 2, 10, 11, 13]), [0, 0, 0, 1, 1, 1]
    assert silhouette_1d(values + 1e9, labels) == pytest.approx(silhouette_1d(values, labels), rel=1e-12)


def test_silhouette_of_many_values_agrees_with_sklearn():
    rng = np.random.default_rng(5)
    values, labels = np.maximum(rng.normal(0, 2, 1500), 0), rng.integers(0, 3, 1500)
    expected = metrics.silhouette_score(values[:, None], labels, metric="manhattan")
    assert silhouette_1d(values, labels) == pytest.approx(expected, abs=1e-12)


@given(VALUES, st.integers(2, 5))
@settings(max_examples=100, deadline=None)
def test_no_other_k_means_has_less_inertia(values, clusters):
    values = np.round(values, 6)  # values that differ by rounding alone are one to either
    if len(np.unique(values)) >= clusters:
        found = optimal_clusters_1d(values, [clusters])
        theirs = KMeans(clusters, n_init=3, random_state=0).fit(values[:, None]).inertia_
        spread = ((values - values.mean()) ** 2).sum()
        assert found.count == clusters
        assert found.inertia <= theirs + 1e-12 * spread
        assert found.inertia == pytest.approx(
            ((values - found.centres[found.labels(values)]) ** 2).sum(), abs=1e-9 * (1 + spread)
        )


@pytest.mark.parametrize("clusters", [2, 3, 4])
@pytest.mark.parametrize("count", [6, 8, 9, 13])
def test_clusters_are_the_best_of_all_splits(clusters, count):
    rng = np.random.default_rng(count)
    values = rng.normal(size=count) + rng.integers(0, 3, count) * 4
    found = optimal_clusters_1d(values, [clusters])
    np.testing.assert_allclose(found.centres, reference.best_centres(values, clusters))


@pytest.mark.parametrize(
    ("index", "score"),
    [
        ("silhouette", metrics.silhouette_score),
        ("calinski_harabasz", metrics.calinski_harabasz_score),
        ("davies_bouldin", lambda values, labels: -metrics.davies_bouldin_score(values, labels)),
    ],
)
@pytest.mark.parametrize("clustering", ["kmeans", "quantiles"])
def test_the_number_of_clusters_is_the_best_by_the_index(index, score, clustering):
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(0, 1, 60), rng.normal(9, 1, 60), rng.normal(30, 2, 60)])
    each = {k: optimal_clusters_1d(values, [k], clustering=clustering) for k in (2, 3, 4)}
    scores = {k: score(values[:, None], own.labels(values)) for k, own in each.items()}
    found = optimal_clusters_1d(values, clustering=clustering, index=index)
    assert found.scores == pytest.approx(scores, rel=1e-6)
    assert found.count == max(scores, key=scores.get)


@given(LABELLED)
@settings(max_examples=100, deadline=None)
def test_other_indices_agree_with_sklearn(pairs):
    values, labels = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    values = values + np.arange(len(values)) * 0.1  # sklearn's answers for spreads of 0 are conventions of its own
    if 2 <= len(np.unique(labels)) < len(values):
        expected = metrics.calinski_harabasz_score(values[:, None], labels)
        assert calinski_harabasz_1d(values, labels) == pytest.approx(expected, rel=1e-6, abs=1e-9)
        means = [values[labels == label].mean() for label in np.unique(labels)]
        if np.min(np.diff(np.sort(means))) > 1e-6:
            expected = metrics.davies_bouldin_score(values[:, None], labels)
            assert davies_bouldin_1d(values, labels) == pytest.approx(expected, rel=1e-3)  # sklearn's distances round


def test_quantiles_hold_equally_many_values():
    found = optimal_clusters_1d(np.arange(12.0), [3], clustering="quantiles")
    assert np.bincount(found.labels(np.arange(12.0))).tolist() == [4, 4, 4]


def test_quantiles_of_mostly_equal_values_are_still_two_clusters():
    found = optimal_clusters_1d([0.0] * 90 + [1.0, 2.0], [2, 3, 4], clustering="quantiles")
    assert found.borders.tolist() == [1.0]


def test_values_that_leave_no_choice():
    assert optimal_clusters_1d([3.0, 3.0, 3.0]).count == 1
    assert optimal_clusters_1d([2.0, 1.0, 2.0], [3]).centres.tolist() == [1.0, 2.0]
    assert optimal_clusters_1d([2.0, 1.0, 2.0], [2, 3]).scores.keys() == {2}


def test_clusters_without_any_spread_are_the_best_there_are():
    found = optimal_clusters_1d([0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0], [4, 3], index="calinski_harabasz")
    assert found.scores[4] == float("inf")
    assert found.count == 4


def test_what_cannot_be_is_refused():
    with pytest.raises(DataError, match="1 that are infinite or not a number"):
        optimal_clusters_1d([1.0, float("inf"), 2.0])
    with pytest.raises(DataError, match="finite values, got none"):
        optimal_clusters_1d([])
    with pytest.raises(ConfigError, match="2 to 255 each"):
        optimal_clusters_1d([1.0, 2.0], [1, 2])
    with pytest.raises(ConfigError, match="choose one of kmeans, quantiles"):
        optimal_clusters_1d([1.0, 2.0], clustering="magic")
    with pytest.raises(ConfigError, match="choose one of silhouette"):
        optimal_clusters_1d([1.0, 2.0], index="magic")
    with pytest.raises(DataError, match="two labels or more, got 1"):
        silhouette_1d([1.0, 2.0], [0, 0])
    with pytest.raises(DataError, match="one label per value"):
        silhouette_1d([1.0, 2.0], [0, 0, 1])
