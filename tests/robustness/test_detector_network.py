"""The network of a detector: it learns, is calibrated on held-out inputs, and comes back from arrays."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from weakspot.core.errors import ConfigError, DataError
from weakspot.robustness.detector_network import (
    DetectorNetwork,
    DetectorTraining,
    accuracy_levels,
    fit_network,
    selection_weights,
)
from weakspot.robustness.detector_probes import WeakDetector
from weakspot.statistics import auroc, detection
from weakspot.statistics.calibration import logistic, reliability

QUICK = DetectorTraining(hidden=(32,), epochs=30, folds=4, batch_size=128)


@pytest.fixture(scope="module")
def learnable():
    """Neighbour accuracy that depends on two of five features, with binomial chance."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(1600, 5)).astype(np.float32)
    accuracy = rng.binomial(50, logistic(1.5 + features[:, 0] - 2 * features[:, 1])) / 50
    return features, accuracy


@pytest.fixture(scope="module")
def fitted(learnable):
    return fit_network(*(part[:1000] for part in learnable), 0.75, QUICK)


def test_it_learns_and_holds_on_inputs_it_never_saw(learnable, fitted):
    features, accuracy = (part[1000:] for part in learnable)
    said = fitted.network.probability(features)
    assert auroc(said, accuracy < 0.75) > 0.95
    assert detection(said >= fitted.network.threshold, accuracy < 0.75).f1 > 0.85
    assert reliability(said, accuracy < 0.75).error < 0.06


def test_what_it_says_of_held_out_inputs_is_what_new_ones_get(learnable, fitted):
    features, accuracy = learnable
    honest = auroc(fitted.held_out, accuracy[:1000] <= 0.75)
    new = auroc(fitted.network.probability(features[1000:]), accuracy[1000:] <= 0.75)
    assert honest == pytest.approx(new, abs=0.03)


def test_chance_is_not_learnt():
    """A network that marked its own homework would score high here."""
    rng = np.random.default_rng(4)
    found = fit_network(rng.normal(size=(400, 20)).astype(np.float32), rng.random(400), 0.5, QUICK)
    assert auroc(found.held_out, np.random.default_rng(4).random(400) <= 0.5) < 0.65


def test_the_same_seed_gives_the_same_bits(learnable, fitted):
    again = fit_network(*(part[:1000] for part in learnable), 0.75, QUICK)
    assert (again.held_out == fitted.held_out).all()
    assert all((a == b).all() for a, b in zip(again.network.weights, fitted.network.weights, strict=True))


def test_neighbours_in_a_batch_change_nothing(learnable, fitted):
    features = learnable[0]
    whole = fitted.network.probability(features)
    others = np.random.default_rng(2).permutation(features)
    others[7:9] = features[7:9]
    assert (fitted.network.probability(others)[7:9] == whole[7:9]).all()
    # the place in the block may change the last bit
    np.testing.assert_allclose(fitted.network.probability(features[7:9]), whole[7:9], rtol=1e-6)
    np.testing.assert_allclose(fitted.network.at_once(features[7:9]), whole[7:9], rtol=1e-4)
    assert fitted.network.probability(features[:0]).shape == (0,)


def test_it_comes_back_from_arrays(learnable, fitted):
    arrays = fitted.network.arrays("white_box")
    assert all(values.dtype.kind == "f" for values in arrays.values())
    back = DetectorNetwork.of(arrays, "white_box")
    assert (back.probability(learnable[0]) == fitted.network.probability(learnable[0])).all()
    assert back.threshold == fitted.network.threshold
    with pytest.raises(DataError, match="no detector 'together'"):
        DetectorNetwork.of(arrays, "together")


def test_weak_emphasis_trades_precision_for_recall(learnable):
    features, accuracy = learnable
    rare = accuracy < 0.2
    plain, emphatic = (
        fit_network(
            features[:1000], accuracy[:1000], 0.2, DetectorTraining(hidden=(32,), epochs=30, folds=4, weak_emphasis=m)
        )
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
        np.testing.assert_allclose(selection_weights(n, m), expected)


def test_other_thresholds_are_learnt_beside():
    assert accuracy_levels(0.5).tolist() == [0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]


def test_nothing_to_tell_apart_is_refused():
    with pytest.raises(DataError, match="all 20 training inputs are strong"):
        fit_network(np.zeros((20, 2), dtype=np.float32), np.ones(20), 0.5, QUICK)
    with pytest.raises(ConfigError, match="folds ≥ 2"):
        DetectorTraining(folds=1)


def test_a_device_that_is_not_there_is_refused_before_anything_is_gathered(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="'cuda': expected 'cpu', or 'cuda' where torch finds a GPU"):
        WeakDetector(device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_trains_as_well_and_leaves_its_chance_alone(learnable, fitted):
    features, accuracy = learnable
    before = torch.cuda.get_rng_state()
    found = [fit_network(features[:1000], accuracy[:1000], 0.75, replace(QUICK, device="cuda")) for _ in range(2)]
    assert (torch.cuda.get_rng_state() == before).all()
    assert (found[0].held_out == found[1].held_out).all()
    assert auroc(found[0].held_out, accuracy[:1000] <= 0.75) == pytest.approx(
        auroc(fitted.held_out, accuracy[:1000] <= 0.75), abs=0.02
    )


def test_the_dial_moves_what_is_flagged_unless_the_threshold_is_tuned_again(learnable):
    """m of the paper: by the networks' own decision recall rises with it; the best F1 on held-out inputs undoes it."""
    features, accuracy = learnable
    rare = accuracy[1000:] < 0.2

    def recall(emphasis, own):
        how = DetectorTraining(hidden=(32,), epochs=30, folds=4, weak_emphasis=emphasis, own_decision=own)
        network = fit_network(features[:1000], accuracy[:1000], 0.2, how).network
        return detection(network.at_once(features[1000:]) >= network.threshold, rare).recall

    assert recall(2, True) > recall(0, True) + 0.05
    assert abs(recall(2, False) - recall(0, False)) < recall(2, True) - recall(0, True)
