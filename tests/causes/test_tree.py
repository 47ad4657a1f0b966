import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from tests.references import causes as reference
from weakspot.causes.clusters import ClusterRecipe, cluster_layer
from weakspot.causes.distances import square
from weakspot.causes.knees import chosen_clusters, gradient, knee
from weakspot.causes.tree import cluster_scores, cut_tree, distances_of_distances, merge_tree


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(4)
    return np.concatenate([rng.normal(centre, 1, (12, 6)) for centre in (0, 4, 9, 30)])


@pytest.mark.parametrize("linkage", ["ward", "average", "complete", "weighted", "single"])
def test_scores_of_all_numbers_of_clusters_agree_with_those_counted_from_scratch(points, linkage):
    condensed = pdist(points)
    tree = merge_tree(condensed, linkage=linkage)
    counts, scores = cluster_scores(square(condensed), tree, most=30)
    assert counts.tolist() == list(range(2, 31))
    for clusters, score in zip(counts, scores, strict=True):
        labels = fcluster(tree, clusters, "maxclust")
        assert adjusted_rand_score(labels, cut_tree(tree, clusters)) == 1
        assert score == pytest.approx(reference.score(square(condensed).tolist(), labels), rel=1e-12)


def test_equal_images_are_cut_into_as_many_clusters_as_asked():
    tree = merge_tree(np.zeros(6))
    assert [cut_tree(tree, clusters).max() + 1 for clusters in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_the_released_algorithm(points):
    distances = square(pdist(points))
    scores, clusters, labels = reference.released_clusters(distances.tolist(), most=40)
    found = cluster_layer(pdist(points), ClusterRecipe(compare="distances", bend="gradient", most_clusters=40))
    assert np.allclose(found.scores, scores, rtol=1e-6)
    assert found.clusters == clusters
    assert adjusted_rand_score(found.labels, labels) == 1


def test_distances_of_distances_by_hand():
    compared, scored = distances_of_distances(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 4.0], [2.0, 4.0, 0.0]]))
    assert scored[0].tolist() == [0, 0.5, 1]
    assert scored[1, 2] == scored[2, 1] == 1
    assert compared[0] == pytest.approx(np.linalg.norm([0 - 0.25, 0.5 - 0, 1 - 1]))


def test_knee_agrees_with_kneed():
    from kneed import KneeLocator

    rng = np.random.default_rng(5)
    agreed = 0
    for _ in range(200):
        x = np.arange(2, 2 + rng.integers(4, 150))
        y = 1 / x ** rng.uniform(0.3, 2) + rng.normal(0, rng.choice([0, 0.001, 0.01]), len(x))
        expected = KneeLocator(x, y, curve="convex", direction="decreasing").knee
        if expected is not None:
            assert x[knee(x, -y)] == expected
            agreed += 1
    assert agreed > 150


def test_knee_of_two_lines_is_where_they_meet():
    y = np.concatenate([np.arange(0, 10, 2.0), 8 + 0.1 * np.arange(1, 30)])
    assert knee(np.arange(len(y)), y) == 4


def test_a_flat_or_short_curve_has_no_knee_and_the_fewest_clusters_are_taken():
    assert knee(np.arange(9), np.ones(9)) == 0
    assert chosen_clusters(np.array([2, 3]), np.array([1.0, 0.5])) == 2


def test_gradient_agrees_with_the_plain_version():
    values = np.random.default_rng(6).normal(size=20)
    assert np.allclose(gradient(values), reference.fourth_order_gradient(values.tolist()))
