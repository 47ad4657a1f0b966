import numpy as np
import pytest
from sklearn.cluster import HDBSCAN

from tests.references import causes as reference
from weakspot.causes.analysis import ErrorImages, study_root_causes
from weakspot.causes.clusters import ClusterRecipe, best_layer, cluster_layer, layer_score, root_cause_clusters
from weakspot.causes.distances import HeatMapRows, heat_map_distances, square
from weakspot.causes.landmarks import landmarks, nearest_clusters
from weakspot.causes.stability import best_jaccard, cluster_stability
from weakspot.causes.tree import dense_clusters
from weakspot.core.errors import ConfigError


def test_dense_groups_are_those_of_hdbscan_and_the_others_are_alone():
    rng = np.random.default_rng(0)
    maps = np.concatenate([three_blobs(), rng.uniform(-200, 200, (5, 9))])
    between = np.sqrt(np.square(maps[:, None] - maps).sum(2))
    labels = dense_clusters(between)
    sizes = np.sort(np.bincount(labels))[::-1]
    assert sizes[:3].tolist() == [20, 20, 20] and set(sizes[3:].tolist()) == {1} and labels[0] == 0
    expected = HDBSCAN(min_cluster_size=5, copy=True).fit(maps).labels_
    same = expected[:, None] == expected
    grouped = expected >= 0
    assert ((labels[:, None] == labels) == same)[np.ix_(grouped, grouped)].all()
    thirty = np.repeat(np.arange(30) * 50.0, 12)[:, None] + rng.normal(0, 1, (360, 3))
    assert dense_clusters(np.sqrt(np.square(thirty[:, None] - thirty).sum(2))).max() == 29
    recipe = ClusterRecipe(linkage="density")
    study = study_root_causes(error_images(three_blobs()), recipe, replicates=5)
    assert sorted(len(each) for each in study.clusters) == [20, 20, 20]
    assert all(each.stability > 0.9 for each in study.clusters)
    with pytest.raises(ConfigError, match="density finds how many clusters there are"):
        ClusterRecipe(linkage="density", clusters=3)


def three_blobs(each=20, far=8.0, seed=0):
    rng = np.random.default_rng(seed)
    maps = np.concatenate([rng.normal(centre, 1, (each, 9)) for centre in (0, far, 2 * far)])
    return np.concatenate([maps, np.full((1, 9), 500.0)])  # one that is like no other


def error_images(maps, *others, most=10_000):
    ids = np.array([f"image-{number:04d}" for number in range(len(maps))])
    chosen = landmarks(ids.tolist(), most)
    layers = [maps, *others]
    return ErrorImages(
        ids=ids,
        kinds=np.array(["a → b"] * len(maps)),
        layers=tuple(f"layer{number}" for number in range(len(layers))),
        distances=tuple(heat_map_distances(layer[chosen]) for layer in layers),
        landmarks=chosen,
        heat_maps={number: HeatMapRows.of(layer) for number, layer in enumerate(layers)},
    )


def test_clusters_have_medoid_members_by_distance_and_spread():
    maps = three_blobs()
    distances = square(heat_map_distances(maps))
    labels = cluster_layer(heat_map_distances(maps), ClusterRecipe(clusters=4)).labels
    clusters = root_cause_clusters(distances, labels)
    assert [len(cluster) for cluster in clusters] == [20, 20, 20]
    everywhere = distances[np.triu_indices(61, 1)].mean()
    for cluster in clusters:
        members = cluster.members.tolist()
        assert cluster.medoid == reference.medoid(distances.tolist(), sorted(members))
        assert cluster.distances.tolist() == sorted(distances[cluster.medoid][members])
        pairs = [distances[a, b] for a in members for b in members if a < b]
        assert cluster.spread == pytest.approx(np.mean(pairs) / everywhere)


def test_the_image_that_is_like_no_other_is_alone():
    study = study_root_causes(error_images(three_blobs()), ClusterRecipe(clusters=4), replicates=0)
    assert study.numbers.tolist() == [1] * 20 + [2] * 20 + [3] * 20 + [0]
    assert np.isnan(study.medoid_distances[60])


def test_the_score_compares_layers_whatever_the_size_of_their_numbers():
    tight, loose = three_blobs(far=30.0), three_blobs(far=0.5, seed=1)
    images = error_images(1000 * tight, 0.001 * loose)
    study = study_root_causes(images, ClusterRecipe(clusters=4), replicates=0)
    assert study.best == 0
    scaled = [cluster_layer(heat_map_distances(factor * tight)).score for factor in (1, 1000)]
    assert scaled[0] == pytest.approx(scaled[1], rel=1e-5)


def test_the_raw_score_takes_the_layer_with_the_smallest_numbers():
    tight, loose = three_blobs(far=30.0), three_blobs(far=0.5, seed=1)
    images = error_images(1000 * tight, 0.001 * loose)
    recipe = ClusterRecipe(clusters=4, best_by="raw")
    study = study_root_causes(images, recipe, replicates=0)
    full = [square(distances) for distances in images.distances]
    labels = [layer.labels for layer in study.layers]
    plain = [
        sum(
            own.sum() / 61 * between[np.ix_(own, own)][~np.eye(own.sum(), dtype=bool)].mean()
            for own in (layer == k for k in range(4))
            if own.sum() > 1
        )
        / 4
        for between, layer in zip(full, labels, strict=True)
    ]
    assert study.best == int(np.argmin(plain)) == 1
    assert [layer.raw_score for layer in study.layers] == pytest.approx(plain)


def test_layer_score_by_hand():
    distances = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    assert layer_score(distances, np.array([0, 0, 1])) == pytest.approx((2 / 3 * 1) / 2 / (10 / 3))


def test_a_layer_that_leaves_every_image_alone_is_not_the_best():
    split = cluster_layer(heat_map_distances(three_blobs()), ClusterRecipe(clusters=61))
    joined = cluster_layer(heat_map_distances(three_blobs()))
    assert split.score == 0
    assert best_layer([split, joined]) == 1


def test_real_clusters_are_stable_and_a_cut_through_a_cloud_is_not():
    maps = np.concatenate([three_blobs()[:60], np.random.default_rng(9).normal(40, 1, (60, 9))])
    study = study_root_causes(error_images(maps), ClusterRecipe(clusters=7), replicates=40)
    stability = {len(cluster): cluster.stability for cluster in study.clusters}
    assert stability[20] > 0.9
    assert min(stability.values()) < 0.6


def test_stability_by_hand():
    drawn = []

    def again(distances):
        drawn.append(len(distances))
        return np.zeros(len(distances), dtype=np.int64)  # always one cluster

    labels = np.repeat([0, 1], [30, 10])
    found = cluster_stability(np.zeros((40, 40)), labels, again, replicates=200, seed=1)
    assert np.mean(drawn) == pytest.approx(40 * (1 - np.exp(-1)), rel=0.03)
    assert found == pytest.approx([0.75, 0.25], abs=0.02)


def test_best_jaccard_agrees_with_sets():
    rng = np.random.default_rng(10)
    one, other = rng.integers(4, size=50), rng.integers(5, size=50)
    sets = [[np.flatnonzero(labels == label) for label in range(labels.max() + 1)] for labels in (one, other)]
    expected = [max(reference.jaccard(a.tolist(), b.tolist()) for b in sets[1]) for a in sets[0]]
    assert np.allclose(best_jaccard(one, other, 4), expected)


@pytest.mark.parametrize(("count", "clusters"), [(1, 0), (2, 1), (3, 1)])
def test_few_images(count, clusters):
    study = study_root_causes(error_images(three_blobs()[:count]), replicates=5)
    assert len(study.clusters) == clusters


def test_many_images_join_the_nearest_cluster():
    maps = three_blobs(each=60)[:180]
    exact = study_root_causes(error_images(maps), ClusterRecipe(clusters=3), replicates=0)
    sampled = study_root_causes(error_images(maps, most=40), ClusterRecipe(clusters=3), replicates=0)
    assert sampled.numbers.tolist() == exact.numbers.tolist()
    for cluster in sampled.clusters:
        expected = np.linalg.norm(maps[cluster.members] - maps[cluster.medoid], axis=1)
        assert np.allclose(cluster.distances, expected, atol=1e-5)
        assert cluster.distances.tolist() == sorted(cluster.distances)


def test_a_sample_is_drawn_by_the_ids_alone():
    ids = [f"image-{number}" for number in range(50)]
    chosen = {ids[place] for place in landmarks(ids, 10)}
    assert chosen == {ids[::-1][place] for place in landmarks(ids[::-1], 10)}
    assert len(chosen) == 10


def test_nearest_mean_by_hand():
    maps = HeatMapRows.of(np.array([[0.0], [2.0], [10.0], [5.4], [5.6]]))
    assert nearest_clusters(maps, np.array([0, 1, 2]), np.array([0, 0, 1])).tolist() == [0, 0, 1, 0, 1]


def test_impossible_numbers_of_clusters_are_refused():
    with pytest.raises(ConfigError, match="most_clusters ≥ 2"):
        ClusterRecipe(most_clusters=1)
