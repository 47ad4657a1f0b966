"""DeepRobust's own white box and the points of its curves, on made data."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch


@pytest.fixture
def white_box(script, monkeypatch):
    module = script("robustness_white_box")
    monkeypatch.setattr(module, "HIDDEN", (16, 8))
    monkeypatch.setattr(module, "BATCH", 20)
    return module


def made_case(rng, images=200):
    """Weak where the first feature is positive: 40 of 51 answers right, or 20."""
    features = {split: rng.normal(size=(images, 4)).astype(np.float32) for split in ("train", "test")}
    said = {
        split: np.where(np.arange(51) < np.where(values[:, :1] > 0, 20, 40), 1, 0) for split, values in features.items()
    }
    labels = {split: np.ones(images, dtype=np.int64) for split in features}
    return SimpleNamespace(features=features, said=said, labels=labels, device="cpu", seed=0, net="made")


def test_weights_have_the_variance_of_the_released_code_and_alone_decay(white_box):
    network = white_box.white_box(4, "cpu")
    sizes = [tuple(layer.weight.shape) for layer in network if isinstance(layer, torch.nn.Linear)]
    assert sizes == [(16, 4), (8, 16), (2, 8)]
    for layer in network[::2]:
        bound = (3 / layer.in_features) ** 0.5
        assert 0.5 * bound < layer.weight.detach().abs().max() <= bound
        assert not layer.bias.detach().any()
    decays, others = white_box.optimiser_of(network).param_groups
    assert (decays["weight_decay"], others["weight_decay"]) == (2e-4, 0.0)
    assert {part.ndim for part in decays["params"]} == {2} and {part.ndim for part in others["params"]} == {1}


def test_the_epoch_with_the_lowest_training_error_is_kept(white_box, monkeypatch):
    errors, seen = iter([0.4, 0.1, 0.3]), []
    monkeypatch.setattr(white_box, "EPOCHS", 3)

    def one_epoch(network, *_):
        with torch.no_grad():
            network[0].bias.add_(1)
        seen.append({name: part.clone() for name, part in network.state_dict().items()})
        return next(errors)

    monkeypatch.setattr(white_box, "one_epoch", one_epoch)
    case = made_case(np.random.default_rng(0))
    kept, last, how = white_box.trained(case, 0.5, False)
    assert (how["chosen_epoch"], how["training_error"], how["training_images"]) == (2, 0.1, 200)
    for probability, state in ((kept, seen[1]), (last, seen[2])):
        network = white_box.white_box(4, "cpu")
        network.load_state_dict(state)
        with torch.no_grad():
            expected = network(torch.from_numpy(case.features["test"])).softmax(1)[:, 1]
        assert probability == pytest.approx(expected.numpy(), abs=1e-6)


@pytest.mark.parametrize("half", [False, True])
def test_it_learns_what_can_be_learnt(white_box, monkeypatch, half):
    monkeypatch.setattr(white_box, "EPOCHS", 60)
    case = made_case(np.random.default_rng(1))
    row = white_box.row(case, 0.5, half)
    assert row["f1"] > 0.9 and row["tp"] + row["fp"] > 50
    assert row["weak_share"] == pytest.approx(float((case.features["test"][:, 0] > 0).mean()))


def test_a_roc_curve_is_the_share_found_at_each_share_of_false_alarms(script):
    curves = script("robustness_curves")
    score, truth = np.array([4.0, 3, 3, 2, 1, 0]), np.array([True, True, False, True, False, False])
    found = dict(zip(curves.GRID.round(3).tolist(), curves.roc(score, truth), strict=True))
    assert found[0.0] == pytest.approx(1 / 3)  # one true one lies above all false ones
    assert found[1.0] == 1 and found[0.5] == 1  # all true ones lie above the second false one


def test_errors_found_by_share_of_the_pairs(script):
    found = script("classes_curves").found_by_share(np.array([3.0, 1, 2, 0]), np.array([True, False, False, True]))
    assert found[[0, 10, 20, 30, 40]] == pytest.approx([0, 0.5, 0.5, 0.5, 1])
