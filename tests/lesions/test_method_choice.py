"""Which method is taken, and what its area is worth on patients that had no part in the choice."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from weakspot.lesions.method_choice import choose_method
from weakspot.lesions.methods import METHODS, node_mean_features, without_edges
from weakspot.lesions.trees import DEPTH, RATE, TREES, fit_trees


def held_out(rng, skill, *, patients=60, lesions=6):
    """Scores of methods that tell false from true lesions as well as `skill` says, in standard deviations."""
    owner = np.repeat(np.arange(patients), lesions).astype(str)
    wrong = rng.random(len(owner)) < 0.4
    return {name: by * wrong + rng.normal(size=len(owner)) for name, by in skill.items()}, wrong, owner


def test_trees_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 5)).astype(np.float32)
    wrong = features[:, 0] * features[:, 1] + 0.3 * rng.normal(size=200) > 0
    trees = fit_trees(features, wrong, seed=3)
    peer = GradientBoostingClassifier(n_estimators=TREES, max_depth=DEPTH, learning_rate=RATE, random_state=3)
    expected = peer.fit(features, wrong).decision_function(features)
    np.testing.assert_allclose(trees.outputs(features), expected, rtol=1e-10, atol=1e-10)


def test_a_clearly_better_method_is_taken():
    scores, wrong, owner = held_out(np.random.default_rng(0), {"size": 0.2, "entropy_size": 0.5, "boosted_trees": 2.5})
    choice = choose_method(scores, wrong, owner)
    assert choice.method == "boosted_trees" and choice.best_untrained == "size"
    areas = {name: roc_auc_score(wrong, values) for name, values in scores.items()}
    assert choice.evaluation.area == pytest.approx(areas)


def test_of_methods_as_good_as_each_other_the_simplest_is_taken():
    rng = np.random.default_rng(1)
    scores, wrong, owner = held_out(rng, {"entropy_mean": 1.5})
    scores["gcn_classification"] = scores["entropy_mean"] + 1e-3 * rng.normal(size=len(wrong)) + 1e-3 * wrong
    assert roc_auc_score(wrong, scores["gcn_classification"]) > roc_auc_score(wrong, scores["entropy_mean"])
    assert choose_method(scores, wrong, owner).method == "entropy_mean"


def test_with_few_patients_nothing_that_needs_training_is_taken():
    scores, wrong, owner = held_out(np.random.default_rng(2), {"size": 0.5, "boosted_trees": 3.0}, patients=4)
    choice = choose_method(scores, wrong, owner)
    assert choice.method == "size" and choice.area is None and "it takes 5 patients" in choice.evaluation.few


def test_the_corrected_area_does_not_flatter_where_no_method_knows_anything():
    """Of thirteen methods that guess, the best looks better than chance; the corrected area does not."""
    flattering, corrected, covered = [], [], 0
    for seed in range(20):
        scores, wrong, owner = held_out(np.random.default_rng(seed), dict.fromkeys(METHODS[:13], 0.0), patients=25)
        choice = choose_method(scores, wrong, owner)
        flattering.append(max(choice.evaluation.area.values()))
        corrected.append(choice.area)
        covered += choice.interval.low <= 0.5 <= choice.interval.high
    assert np.mean(flattering) > 0.56
    assert abs(np.mean(corrected) - 0.5) < 0.02
    assert covered >= 18


def test_a_graph_without_edges_is_its_nodes_alone(lesions):
    graph = without_edges(lesions.graphs[0])
    nodes = len(graph.features)
    assert graph.row_ends.tolist() == list(range(1, nodes + 1)) and graph.columns.tolist() == list(range(nodes))
    assert graph.weights.tolist() == [1.0] * nodes


def test_node_means_are_means_over_the_nodes_of_a_lesion(lesions):
    expected = [
        lesions.features[slice(*ends)].mean(0)
        for ends in np.column_stack([lesions.nodes.starts[:-1], lesions.nodes.starts[1:]])
    ]
    np.testing.assert_allclose(node_mean_features(lesions), expected, rtol=1e-5)


@pytest.fixture(scope="module")
def lesions():
    from tests.lesions import toy
    from weakspot import examine
    from weakspot.lesions import Lesions
    from weakspot.lesions.lesion_set import LesionSet

    return LesionSet.of(examine(toy.subject(), toy.source(2), [Lesions(looks=2)])[0])
