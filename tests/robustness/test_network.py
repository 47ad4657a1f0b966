"""The network of a detector: it learns what can be learnt, is honest about it, and comes back from arrays."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from weakspot.core.errors import ConfigError, DataError
from weakspot.robustness.detectors import WeakDetector
from weakspot.robustness.network import Learning, Network, fit, levels_beside, selection
from weakspot.robustness.queries import answer_shares, query_features
from weakspot.robustness.thresholds import best_f1_threshold, lowest_weak_threshold, quantile_threshold
from weakspot.statistics import auroc, detection
from weakspot.statistics.calibration import logistic, reliability

QUICK = Learning(hidden=(32,), epochs=30, folds=4, batch_size=128)


@pytest.fixture(scope="module")
def learnable():
    """Neighbour accuracy that depends on two of five features, with binomial chance."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(1600, 5)).astype(np.float32)
    accuracy = rng.binomial(50, logistic(1.5 + features[:, 0] - 2 * features[:, 1])) / 50
    return features, accuracy


@pytest.fixture(scope="module")
def fitted(learnable):
    return fit(*(part[:1000] for part in learnable), 0.75, QUICK)


def test_it_learns_and_holds_on_inputs_it_never_saw(learnable, fitted):
    features, accuracy = (part[1000:] for part in learnable)
    said = fitted.network.probability(features)
    assert auroc(said, accuracy <= 0.75) > 0.95
    assert detection(said >= fitted.network.threshold, accuracy <= 0.75).f1 > 0.85
    assert reliability(said, accuracy <= 0.75).error < 0.06


def test_what_it_says_of_held_out_inputs_is_what_new_ones_get(learnable, fitted):
    features, accuracy = learnable
    honest = auroc(fitted.held_out, accuracy[:1000] <= 0.75)
    new = auroc(fitted.network.probability(features[1000:]), accuracy[1000:] <= 0.75)
    assert honest == pytest.approx(new, abs=0.03)


def test_chance_is_not_learnt():
    """A network that marked its own homework would score high here."""
    rng = np.random.default_rng(4)
    found = fit(rng.normal(size=(400, 20)).astype(np.float32), rng.random(400), 0.5, QUICK)
    assert auroc(found.held_out, np.random.default_rng(4).random(400) <= 0.5) < 0.65


def test_the_same_seed_gives_the_same_bits(learnable, fitted):
    again = fit(*(part[:1000] for part in learnable), 0.75, QUICK)
    assert (again.held_out == fitted.held_out).all()
    assert all((a == b).all() for a, b in zip(again.network.weights, fitted.network.weights, strict=True))


def test_neighbours_in_a_batch_change_nothing(learnable, fitted):
    features = learnable[0]
    whole = fitted.network.probability(features)
    assert (fitted.network.probability(features[7:9]) == whole[7:9]).all()
    np.testing.assert_allclose(fitted.network.at_once(features[7:9]), whole[7:9], rtol=1e-4)
    assert fitted.network.probability(features[:0]).shape == (0,)


def test_it_comes_back_from_arrays(learnable, fitted):
    arrays = fitted.network.arrays("white_box")
    assert all(values.dtype.kind == "f" for values in arrays.values())
    back = Network.of(arrays, "white_box")
    assert (back.probability(learnable[0]) == fitted.network.probability(learnable[0])).all()
    assert back.threshold == fitted.network.threshold
    with pytest.raises(DataError, match="no detector 'together'"):
        Network.of(arrays, "together")


def test_weak_emphasis_trades_precision_for_recall(learnable):
    features, accuracy = learnable
    rare = accuracy <= 0.2
    plain, emphatic = (
        fit(features[:1000], accuracy[:1000], 0.2, Learning(hidden=(32,), epochs=30, folds=4, weak_emphasis=m))
        for m in (0, 2)
    )
    raw = [found.network.at_once(features[1000:]) for found in (plain, emphatic)]
    uncalibrated = [p > logistic(found.network.calibration[1]) for p, found in zip(raw, (plain, emphatic), strict=True)]
    recalls = [detection(flagged, rare[1000:]).recall for flagged in uncalibrated]
    assert recalls[1] > recalls[0]


def test_selection_is_the_papers():
    n = np.array([0.0, 0.3, 1.0])
    for m in (0, 1, 2):
        expected = [(1 + (1 - each) ** m * 100**m) / (1 + 100**m) for each in n]
        np.testing.assert_allclose(selection(n, m), expected)


def test_other_cutoffs_are_learnt_beside():
    assert levels_beside(0.5).tolist() == [0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]


def test_nothing_to_tell_apart_is_refused():
    with pytest.raises(DataError, match="all 20 training inputs are strong"):
        fit(np.zeros((20, 2), dtype=np.float32), np.ones(20), 0.5, QUICK)
    with pytest.raises(ConfigError, match="folds ≥ 2"):
        Learning(folds=1)


def test_a_device_that_is_not_there_is_refused_before_anything_is_gathered(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="'cuda': expected 'cpu', or 'cuda' where torch finds a GPU"):
        WeakDetector(device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_trains_as_well_and_leaves_its_chance_alone(learnable, fitted):
    features, accuracy = learnable
    before = torch.cuda.get_rng_state()
    found = [fit(features[:1000], accuracy[:1000], 0.75, replace(QUICK, device="cuda")) for _ in range(2)]
    assert (torch.cuda.get_rng_state() == before).all()
    assert (found[0].held_out == found[1].held_out).all()
    assert auroc(found[0].held_out, accuracy[:1000] <= 0.75) == pytest.approx(
        auroc(fitted.held_out, accuracy[:1000] <= 0.75), abs=0.02
    )


def test_thresholds_by_hand():
    scores, weak = np.array([5.0, 4.0, 3.0, 2.0, 1.0]), np.array([True, False, True, False, False])
    assert best_f1_threshold(scores, weak) == 3.0
    assert lowest_weak_threshold(scores, weak) == 3.0
    assert (scores >= quantile_threshold(scores, weak)).sum() == 2


def test_the_papers_rule_warns_where_it_flags_everything():
    with pytest.warns(UserWarning, match="calls every input weak"):
        assert lowest_weak_threshold([-1.0, -0.5, -1.0], [True, True, False]) == -1.0


def test_best_f1_by_trying_every_threshold():
    rng = np.random.default_rng(8)
    scores, weak = rng.integers(0, 30, 200).astype(float), rng.random(200) < 0.3
    best = max(np.unique(scores), key=lambda cut: detection(scores >= cut, weak).f1)
    found = best_f1_threshold(scores, weak)
    assert detection(scores >= found, weak).f1 == detection(scores >= best, weak).f1


def test_query_features_do_not_depend_on_the_order_of_the_queries():
    rng = np.random.default_rng(6)
    p = rng.dirichlet(np.ones(4), size=(7, 9))
    np.testing.assert_allclose(query_features(p), query_features(p[:, rng.permutation(9)]), rtol=1e-5)
    assert query_features(p).dtype == np.float32
    assert answer_shares(p.argmax(2), 4).sum(1) == pytest.approx(1)
    assert query_features(rng.dirichlet(np.ones(2), size=(3, 5))).shape[0] == 3  # fewer classes than are ranked


def test_query_features_refuse_other_shapes():
    with pytest.raises(DataError, match=r"\(inputs, queries, classes\)"):
        query_features(np.zeros((3, 4)))
