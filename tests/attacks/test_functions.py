"""The attacks as functions, against slow references written from the papers and cases worked out by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.references import attacks as reference
from weakspot.attacks import bim, carlini_wagner, distortion, fgsm, jsma
from weakspot.attacks.jsma import best_pairs, steepest_pairs
from weakspot.attacks.losses import binary_cross_entropy, squared_error

BOUNDS = (0.0, 1.0)


@pytest.fixture
def answers(tiny_net, tiny_images):
    return tiny_net(tiny_images).argmax(1)


def linear(*rows):
    net = nn.Linear(len(rows[0]), len(rows), bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(rows))
    return net


def test_fgsm_by_hand():
    net = linear([1.0, -2.0, 0.0], [0.0, 0.0, 0.0])
    changed = fgsm(net, torch.tensor([[0.5, 0.95, 0.3]]), torch.tensor([0]), epsilon=0.1, bounds=BOUNDS)
    assert changed.tolist() == [pytest.approx([0.4, 1.0, 0.3])]  # less of what speaks for it, more against, clipped


def test_fgsm_toward_a_class_goes_the_other_way():
    net, x = linear([1.0, -2.0, 0.0], [0.0, 0.0, 0.0]), torch.tensor([[0.5, 0.5, 0.3]])
    changed = fgsm(net, x, torch.tensor([0]), epsilon=0.1, bounds=BOUNDS, targeted=True)
    assert changed.tolist() == [pytest.approx([0.6, 0.4, 0.3])]


def test_fgsm_agrees_with_the_reference(tiny_net, tiny_images, answers):
    found = fgsm(tiny_net, tiny_images, answers, epsilon=0.07, bounds=BOUNDS)
    for x, label, changed in zip(tiny_images, answers, found, strict=True):
        torch.testing.assert_close(changed, reference.fgsm(tiny_net, x, int(label), 0.07, *BOUNDS))


def test_bim_agrees_with_the_reference(tiny_net, tiny_images, answers):
    found = bim(tiny_net, tiny_images, answers, epsilon=0.05, step=0.02, iterations=4, bounds=BOUNDS)
    for x, label, changed in zip(tiny_images, answers, found, strict=True):
        torch.testing.assert_close(changed, reference.bim(tiny_net, x, int(label), 0.05, 0.02, 4, *BOUNDS))
    assert (found - tiny_images).abs().max() <= 0.05 + 1e-6


def test_bim_may_stop_where_the_answer_has_turned(tiny_net, tiny_images, answers):
    how = {"epsilon": 0.3, "step": 0.03, "iterations": 10, "bounds": BOUNDS}
    seen = []

    def counted(x):
        seen.append(len(x))
        return tiny_net(x)

    on, stopped = (bim(counted, tiny_images, answers, stop_early=early, **how) for early in (False, True))
    turned = [tiny_net(made).argmax(1) != answers for made in (on, stopped)]
    assert turned[1].sum() >= turned[0].sum() > 0
    far, near = (distortion(tiny_images, made)["l2"] for made in (on, stopped))
    assert (near <= far + 1e-6).all() and near.mean() < far.mean()
    assert sum(seen[10:]) < sum(seen[:10]) == 90
    assert torch.equal(bim(tiny_net, tiny_images, (answers + 1) % 3, stop_early=True, **how), tiny_images)


def test_the_sign_methods_climb_other_losses_too():
    net, x = linear([1.0, -1.0]), torch.tensor([[0.5, 0.5]])
    numbers = fgsm(net, x, torch.tensor([[-1.0]]), epsilon=0.1, bounds=BOUNDS, loss=squared_error)
    assert numbers.tolist() == [pytest.approx([0.6, 0.4])]  # 0 is above −1, so further up
    labels = fgsm(net, x, torch.tensor([[1]]), epsilon=0.1, bounds=BOUNDS, loss=binary_cross_entropy)
    assert labels.tolist() == [pytest.approx([0.4, 0.6])]


@pytest.mark.parametrize("theta", [0.3, 1.0])
def test_jsma_agrees_with_the_search_over_all_pairs(tiny_net, tiny_images, answers, theta):
    targets = (answers + 1) % 3
    found = jsma(tiny_net, tiny_images, targets, theta=theta, gamma=0.4, bounds=BOUNDS)
    for x, target, changed in zip(tiny_images, targets, found, strict=True):
        torch.testing.assert_close(changed, reference.jsma(tiny_net, x, int(target), theta, 0.4, *BOUNDS))
    assert (found != tiny_images).any() and (tiny_net(found).argmax(1) == targets).any()


def test_jsma_on_probabilities_needs_the_wanted_class_alone(tiny_net, tiny_images, answers):
    """They sum to 1, so the others lose what it gains: the search over all pairs of all classes finds the same."""
    targets, softmax = (answers + 1) % 3, nn.Sequential(tiny_net, nn.Softmax(1))
    how = {"theta": 0.3, "gamma": 0.4, "bounds": BOUNDS}
    found = jsma(lambda x: tiny_net(x).log_softmax(1), tiny_images, targets, others=False, **how)
    for x, target, changed in zip(tiny_images, targets, found, strict=True):
        torch.testing.assert_close(changed, reference.jsma(softmax, x, int(target), 0.3, 0.4, *BOUNDS))
    assert not torch.equal(found, jsma(tiny_net, tiny_images, targets, **how))


@pytest.mark.parametrize("others", [True, False])
def test_jsma_takes_away_as_it_adds_to_the_negative(tiny_net, tiny_images, answers, others):
    targets, how = (answers + 1) % 3, {"gamma": 0.4, "bounds": BOUNDS, "others": others}
    less = jsma(tiny_net, tiny_images, targets, theta=-0.3, **how)
    more = jsma(lambda x: tiny_net(1 - x), 1 - tiny_images, targets, theta=0.3, **how)
    torch.testing.assert_close(less, 1 - more)
    assert (less < tiny_images).any() and not (less > tiny_images).any()


def test_jsma_by_hand():
    """Pixels 0 and 1 speak for class 1 and against class 0, pixel 2 for both, pixel 3 for none."""
    net = linear([-2.0, -1.0, 3.0, 0.0], [2.0, 1.0, 1.0, 0.0])
    how = {"gamma": 1.0, "bounds": BOUNDS}
    more = jsma(net, torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.tensor([1]), theta=0.5, **how)
    assert more.tolist() == [[0.5, 0.5, 1.0, 1.0]]
    less = jsma(net, torch.tensor([[1.0, 1.0, 0.0, 0.0]]), torch.tensor([0]), theta=-0.5, **how)
    assert less.tolist() == [[0.0, 0.0, 0.0, 0.0]]  # two steps of the same pair


def test_jsma_stops_after_its_share_of_the_pixels():
    net, x = linear([-1.0] * 10, [1.0] * 9 + [0.5]), torch.zeros(1, 10)
    far = nn.Sequential(net, Shifted(torch.tensor([100.0, 0.0])))
    changed = jsma(far, x, torch.tensor([1]), theta=1.0, gamma=0.5, bounds=BOUNDS)
    assert int((changed != x).sum()) == 4  # ⌊10 · 0.5 / 2⌋ = 2 steps of two pixels


def test_a_share_that_rounds_below_a_whole_step_counts_it():
    far = nn.Sequential(linear([-1.0] * 100, [1.0] * 100), Shifted(torch.tensor([1000.0, 0.0])))
    changed = jsma(far, torch.zeros(1, 100), torch.tensor([1]), theta=1.0, gamma=0.58, bounds=BOUNDS)
    assert int(changed.sum()) == 58  # though 100 · 0.58 / 2 is 28.999… in floating point


def test_jsma_leaves_a_sample_alone_that_no_pair_helps():
    far = nn.Sequential(linear([1.0, 1.0], [1.0, 1.0]), Shifted(torch.tensor([5.0, 0.0])))
    x = torch.full((1, 2), 0.5)
    assert torch.equal(jsma(far, x, torch.tensor([1]), theta=0.1, gamma=1.0, bounds=BOUNDS), x)


def test_jsma_away_from_a_class(tiny_net, tiny_images, answers):
    found = jsma(tiny_net, tiny_images, answers, theta=1.0, gamma=0.5, bounds=BOUNDS, targeted=False)
    assert (tiny_net(found).argmax(1) != answers).float().mean() > 0.5


class Shifted(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, values):
        return values + self.by


@pytest.mark.parametrize("seed", range(5))
def test_the_best_pair_is_that_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    whole = seed % 2  # many ties
    draw = (lambda: rng.integers(-3, 4, (6, 15)).astype(float)) if whole else (lambda: rng.normal(size=(6, 15)))
    own, others, free = draw(), draw(), rng.random((6, 15)) < 0.7
    first, second, found = best_pairs(torch.tensor(own), torch.tensor(others), torch.tensor(free))
    for row in range(6):
        products = {
            (p, q): (own[row, p] + own[row, q]) * (others[row, p] + others[row, q])
            for p in range(15)
            for q in range(p)
            if free[row, p] and free[row, q] and own[row, p] + own[row, q] > 0 and others[row, p] + others[row, q] > 0
        }
        assert bool(found[row]) == bool(products)
        if products:
            chosen = (int(max(first[row], second[row])), int(min(first[row], second[row])))
            assert products[chosen] == pytest.approx(max(products.values()))


@pytest.mark.parametrize("seed", range(3))
def test_the_steepest_pair_is_the_best_where_both_sums_are_one(seed):
    rng = np.random.default_rng(seed)
    own = torch.from_numpy(rng.normal(size=(20, 9)) - 1)  # some rows have no two that are positive together
    free = torch.from_numpy(rng.random((20, 9)) < 0.4)
    *pixels, found = steepest_pairs(own, free)
    *expected, there = best_pairs(own, own, free)
    assert torch.equal(found, there) and found.any() and not found.all()
    assert torch.equal(torch.stack(pixels).sort(0).values[:, found], torch.stack(expected).sort(0).values[:, found])


def test_carlini_wagner_agrees_with_the_reference(tiny_net, tiny_images, answers):
    how = {"search_steps": 5, "iterations": 30, "learning_rate": 0.1, "initial_constant": 0.5}
    found = carlini_wagner(tiny_net, tiny_images, answers, bounds=BOUNDS, abort_early=False, **how)
    for x, label, changed in zip(tiny_images, answers, found, strict=True):
        expected = reference.carlini_wagner(tiny_net, x, int(label), *BOUNDS, **how)
        torch.testing.assert_close(changed, expected, atol=2e-4, rtol=1e-3)
    assert (tiny_net(found).argmax(1) != answers).all()


def test_carlini_wagner_finds_the_nearest_point_of_a_plane():
    """Of a linear net the nearest change is known: the distance to the plane where both logits are equal."""
    net, x = linear([3.0, 0.0, 0.0], [0.0, 4.0, 0.0]), torch.tensor([[0.6, 0.2, 0.5]])
    changed = carlini_wagner(net, x, torch.tensor([0]), bounds=BOUNDS, iterations=300, learning_rate=0.01)
    distance = (3 * 0.6 - 4 * 0.2) / 5
    assert float(distortion(x, changed)["l2"]) == pytest.approx(distance, rel=0.02)
    assert int(net(changed).argmax()) == 1


def test_carlini_wagner_keeps_the_margin_that_is_asked_for(tiny_net, tiny_images, answers):
    found = carlini_wagner(tiny_net, tiny_images, answers, bounds=BOUNDS, confidence=0.2, learning_rate=0.1)
    logits = tiny_net(found)
    own = logits.gather(1, answers[:, None])[:, 0]
    other = logits.scatter(1, answers[:, None], -torch.inf).max(1).values
    changed = (found != tiny_images).flatten(1).any(1)
    assert changed.any() and (other - own)[changed].min() >= 0.2 - 1e-5


def test_carlini_wagner_toward_a_class(tiny_net, tiny_images, answers):
    targets = (answers + 2) % 3
    found = carlini_wagner(tiny_net, tiny_images, targets, bounds=BOUNDS, targeted=True, learning_rate=0.1)
    assert (tiny_net(found).argmax(1) == targets).all()


def test_carlini_wagner_leaves_alone_what_is_wrong_already(tiny_net, tiny_images, answers):
    assert torch.equal(carlini_wagner(tiny_net, tiny_images, (answers + 1) % 3, bounds=BOUNDS), tiny_images)


def test_early_abort_costs_little(tiny_net, tiny_images, answers):
    """Descents that no longer fall are left: fewer passes, and nearly the same distance."""
    passes = {}
    distances = {}
    for early in (True, False):
        seen = []

        def counted(x, seen=seen):
            seen.append(len(x))
            return tiny_net(x)

        found = carlini_wagner(counted, tiny_images, answers, bounds=BOUNDS, learning_rate=0.1, abort_early=early)
        passes[early], distances[early] = sum(seen), distortion(tiny_images, found)["l2"].mean()
    assert passes[True] < 0.9 * passes[False]
    assert distances[True] <= 1.05 * distances[False]


def test_starting_each_constant_where_the_last_ended_helps_with_few_iterations(tiny_net, tiny_images, answers):
    how = {"bounds": BOUNDS, "iterations": 4, "learning_rate": 0.05, "abort_early": False}
    turned = {
        restart: (tiny_net(carlini_wagner(tiny_net, tiny_images, answers, restart=restart, **how)).argmax(1) != answers)
        for restart in (True, False)
    }
    assert turned[False].sum() > turned[True].sum()


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-0.5, 2.0), (0.0, 255.0)])
def test_every_attack_keeps_to_the_bounds_and_leaves_the_original(tiny_net, bounds):
    low, high = bounds
    x = low + (high - low) * torch.rand(5, 2, 4, 4, generator=torch.Generator().manual_seed(0))
    kept, width, scaled = x.clone(), high - low, lambda given: tiny_net((given - low) / (high - low))
    answers = scaled(x).argmax(1)
    made = [
        fgsm(scaled, x, answers, epsilon=0.4 * width, bounds=bounds),
        bim(scaled, x, answers, epsilon=0.4 * width, step=0.2 * width, iterations=3, bounds=bounds),
        jsma(scaled, x, (answers + 1) % 3, theta=width, gamma=0.5, bounds=bounds),
        carlini_wagner(scaled, x, answers, bounds=bounds, iterations=20, search_steps=2, learning_rate=1.0),
    ]
    assert torch.equal(x, kept)
    for changed in made:
        assert changed.min() >= low and changed.max() <= high
        assert (changed != x).any()


def test_distortion_by_hand():
    found = distortion(torch.zeros(2, 1, 2, 2), torch.tensor([[[[0.0, 3.0], [-4.0, 0.0]]], [[[0.0, 0.0], [0.0, 0.0]]]]))
    assert {name: values.tolist() for name, values in found.items()} == {"l0": [2, 0], "l2": [5, 0], "linf": [4, 0]}
