"""PGD and the attacks of AutoAttack: against slow references, on nets whose answer is known, and in any batch."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from tests.references import balls as slow
from weakspot import Subject
from weakspot.attacks import AutoAttack, AutoPgd, Fab, Pgd, Square, attack_batch, attack_from
from weakspot.attacks.balls import inside, size, start_on, start_within
from weakspot.attacks.boundary import fab, to_hyperplane
from weakspot.attacks.losses import cross_entropy
from weakspot.attacks.margins import difference_of_logits, margin, toward
from weakspot.attacks.projected_gradient import auto_pgd, pgd
from weakspot.attacks.square import side_of, square_attack, two_bumps
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.observation import Batch
from weakspot.core.stateless_random import draw_keys

IDS = [f"s{number}" for number in range(9)]
KEYS = draw_keys(IDS, 0)
norms = pytest.mark.parametrize("norm", ["linf", "l2"])


@pytest.fixture
def answers(tiny_net, tiny_images):
    """The classes that the tiny net gives."""
    return tiny_net(tiny_images).argmax(1)


def linear(*rows):
    """Logits are dot products with these rows of the flattened image."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(len(rows[0]), len(rows), bias=False)).double()
    with torch.no_grad():
        net[1].weight.copy_(torch.from_numpy(np.array(rows, dtype=np.float64)))
    return net


@norms
def test_points_are_pulled_into_ball_and_box(norm):
    centres = torch.rand(50, 3, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    points = centres + torch.randn(50, 3, 4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = inside(points, centres, 0.3, norm)
    for point, centre, made in zip(points, centres, found, strict=True):
        torch.testing.assert_close(made, slow.project(point, centre, 0.3, norm))
    keys = draw_keys([f"s{number}" for number in range(50)], 3)
    for start in (start_on, start_within):
        begun = start(centres, keys, 0.3, norm)
        assert size(begun - centres, norm).max() <= 0.3 + 1e-6 and begun.min() >= 0 and begun.max() <= 1


@norms
def test_pgd_agrees_with_the_reference(tiny_net, tiny_images, answers, norm):
    net, images = copy.deepcopy(tiny_net).double(), tiny_images.double()
    epsilon = {"linf": 0.05, "l2": 0.4}[norm]
    found = pgd(
        net, images, answers, KEYS, epsilon=epsilon, norm=norm, step=epsilon / 4, iterations=7, loss=cross_entropy
    )
    starts = start_within(images, KEYS, epsilon, norm)
    for x, start, label, made in zip(images, starts, answers.tolist(), found, strict=True):
        expected = slow.pgd(net, x, start, label, epsilon, norm, epsilon / 4, 7, cross_entropy)
        torch.testing.assert_close(made, expected)


@norms
@pytest.mark.parametrize("loss", [cross_entropy, difference_of_logits])
def test_auto_pgd_agrees_with_the_reference(tiny_net, tiny_images, answers, norm, loss):
    net, images = copy.deepcopy(tiny_net).double(), tiny_images.double()
    epsilon, halvings = {"linf": 0.02, "l2": 0.12}[norm], 0
    found = auto_pgd(
        net, images, answers, KEYS, epsilon=epsilon, norm=norm, iterations=40, loss_of_rows=lambda rows: loss
    )
    starts = start_on(images, KEYS, epsilon, norm)
    for x, start, label, made in zip(images, starts, answers.tolist(), found, strict=True):
        expected, halved = slow.auto_pgd(net, x, start, label, epsilon, norm, 40, loss)
        torch.testing.assert_close(made, expected, atol=1e-7, rtol=1e-6)
        halvings += len(halved)
    assert halvings > 5


def test_the_losses_by_hand():
    logits = torch.tensor([[4.0, 1.0, 3.0, 0.0, 2.0]])
    assert margin(logits, torch.tensor([0])).tolist() == [1.0] and margin(logits, torch.tensor([1])).tolist() == [-3.0]
    assert difference_of_logits(logits, torch.tensor([0])).tolist() == pytest.approx([-1 / (4 - 2)])
    assert toward(torch.tensor([1]))(logits, torch.tensor([0])).tolist() == pytest.approx([-3 / (4 - 1.5)])
    two = torch.tensor([[1.0, 0.25]])
    assert toward(torch.tensor([1]))(two, torch.tensor([0])).tolist() == [-0.75]


@norms
@pytest.mark.parametrize("seed", range(12))
def test_the_step_to_a_plane_is_the_smallest_there_is(norm, seed):
    rng = np.random.default_rng(seed)
    point, slopes = rng.random(7), rng.normal(size=7) * (rng.random(7) < 0.8)
    rise = rng.normal() * 0.7
    given = [torch.from_numpy(np.asarray(part))[None] for part in (point, slopes, rise)]
    made = to_hyperplane(*given, norm)[0].numpy()
    assert (point + made).min() >= -1e-9 and (point + made).max() <= 1 + 1e-9
    expected = slow.nearest_on_plane(point, slopes, rise, norm)
    if expected is None:  # the box does not allow so much: as far as it goes
        assert np.allclose(point + made, np.where(slopes == 0, point, slopes * rise > 0), atol=1e-6)
    else:
        assert slopes @ made == pytest.approx(rise, abs=1e-6)
        found = np.abs(made).max() if norm == "linf" else np.linalg.norm(made)
        assert found == pytest.approx(expected, abs=1e-5)


@norms
def test_fab_finds_the_nearest_point_of_a_plane(norm):
    """Of a linear net the distance to the other class is known: 1.4 / ‖w‖ with the norm that belongs to it."""
    net, x = linear([3.0, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]), torch.tensor([[0.6, 0.1, 0.5, 0.5]]).double()
    distance = (3 * 0.6 - 4 * 0.1) / (7 if norm == "linf" else 5)
    how = {"norm": norm, "iterations": 30}
    answers = torch.tensor([0]), torch.tensor([1])
    found = fab(net, x, *answers, epsilon=distance * 1.02, **how)
    assert distance < float(size(found - x, norm)) <= distance * 1.02 and int(net(found).argmax()) == 1
    assert torch.equal(fab(net, x, *answers, epsilon=distance * 0.99, **how), x)


@norms
@pytest.mark.parametrize("attack", ["auto_pgd", "fab", "auto_attack"])
def test_a_linear_net_is_turned_just_where_it_can_be(norm, attack):
    """Accuracy under attack follows from the distances to the border, which is exact for a linear net."""
    rng = np.random.default_rng(0)
    net = linear(rng.normal(size=16), rng.normal(size=16))
    images = torch.from_numpy(0.25 + 0.5 * rng.random((40, 1, 4, 4)))
    logits = net(images).detach()
    labels, away = logits.argmax(1), net[1].weight.detach()[0] - net[1].weight.detach()[1]
    gap = (logits[:, 0] - logits[:, 1]).abs()
    distance = gap / (away.abs().sum() if norm == "linf" else away.norm())
    epsilon = float(distance.sort().values[15:17].mean())
    subject = Subject(net, classes=2, scores="logits", bounds=(0, 1))
    options = {"attack": attack, "epsilon": epsilon, "norm": norm}
    batch = Batch(tuple(f"s{number}" for number in range(40)), np.arange(40), images, labels)
    changed, did = attack_batch(subject, attack_from(options), batch)
    assert torch.equal(did["success"], distance < epsilon) and int(did["success"].sum()) == 16
    assert size(changed - images, norm).max() <= epsilon * (1 + 1e-6)


@norms
def test_square_turns_what_it_can_and_stays_in_the_ball(tiny_net, tiny_images, answers, norm):
    epsilon = {"linf": 0.1, "l2": 0.8}[norm]
    seen = []

    def counted(x):
        seen.append(len(x))
        with torch.no_grad():
            return tiny_net(x)

    found = square_attack(counted, tiny_images, answers, KEYS, epsilon=epsilon, norm=norm, queries=150)
    assert size(found - tiny_images, norm).max() <= epsilon * (1 + 1e-5)
    assert found.min() >= 0 and found.max() <= 1
    after, before = (margin(tiny_net(images), answers) for images in (found, tiny_images))
    assert (after <= before + 1e-6).all() and (after <= 0).sum() > 2
    assert len(seen) <= 151 and seen[-1] < 9  # what is turned leaves


def test_squares_shrink_as_published():
    """The shares of the area are 0.8, halved after 10, 50, 200, 500, 1000, 2000, 4000, 6000 and 8000 queries."""
    shares = [side_of(query, torch.Size((1, 3, 32, 32))) ** 2 / 1024 for query in (0, 10, 11, 51, 1001, 8001)]
    assert shares == pytest.approx([0.8, 0.8, 0.4, 0.2, 0.8 / 32, 0.8 / 512])


@pytest.mark.parametrize("side", [1, 3, 6, 7])
def test_bumps_have_norm_one_and_two_signs(side):
    bumps = two_bumps(side)
    assert float(bumps.norm()) == pytest.approx(1)
    assert side == 1 or (bumps.min() < 0 < bumps.max())


@norms
@pytest.mark.parametrize(
    "attack",
    [
        lambda **ball: Pgd(**ball, iterations=5, restarts=2),
        lambda **ball: AutoPgd(**ball, iterations=10),
        lambda **ball: AutoPgd(**ball, iterations=10, loss="targeted_dlr"),
        lambda **ball: Fab(**ball, iterations=10),
        lambda **ball: Square(**ball, queries=40),
    ],
)
def test_an_attack_makes_the_same_of_a_sample_in_any_batch(tiny_net, tiny_images, answers, norm, attack):
    low, high = -1.0, 3.0
    images = tiny_images.double() * 4 - 1
    scaled = nn.Sequential(Scaled(), copy.deepcopy(tiny_net).double())
    subject = Subject(scaled, classes=3, scores="logits", bounds=(low, high))
    made = attack(epsilon=4 * {"linf": 0.05, "l2": 0.4}[norm], norm=norm)
    whole = Batch(tuple(IDS), np.arange(9), images, answers)
    together, did = attack_batch(subject, made, whole)
    assert together.min() >= low and together.max() <= high
    assert size(together - images, norm).max() <= made.epsilon * (1 + 1e-6)
    for row in (0, 4, 8):
        rows = np.arange(9) == row
        alone, _ = attack_batch(subject, made, whole.select(rows))
        torch.testing.assert_close(alone[0], together[row], atol=1e-9, rtol=0)
    assert int(did["success"].sum()) > 0


class Scaled(nn.Module):
    """From −1 … 3 to 0 … 1."""

    def forward(self, images):
        return (images + 1) / 4


def test_a_black_box_is_attacked_by_square_alone(tiny_net, tiny_images, answers):
    def black_box(images):
        with torch.no_grad():
            return tiny_net(images)

    subject = Subject(black_box, classes=3, scores="logits", bounds=(0, 1))
    batch = Batch(tuple(IDS), np.arange(9), tiny_images, answers)
    _, did = attack_batch(subject, Square(epsilon=0.1, queries=100), batch)
    assert did["success"].any()
    with pytest.raises(SubjectError, match=r"AutoAttack needs the inside of.*use Square, which needs nothing but"):
        attack_batch(subject, AutoAttack(epsilon=0.1), batch)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pgd(epsilon=0), "Pgd: epsilon is 0, expected more than 0"),
        (lambda: Fab(epsilon=1, norm="l1"), "Fab: norm is 'l1', choose one of linf, l2"),
        (lambda: Square(epsilon=1, queries=0), "Square: queries is 0, expected a whole number from 1"),
        (lambda: Pgd(epsilon=1, step=-1), "Pgd: step is -1, expected more than 0"),
        (lambda: attack_from({"attack": "auto_attack"}), "auto_attack needs epsilon"),
    ],
)
def test_what_cannot_be_meant_is_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
