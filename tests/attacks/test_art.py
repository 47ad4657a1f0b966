"""Beside the adversarial robustness toolbox (ART): the same sets, or better ones at an equal budget."""

import tempfile

import numpy as np
import pytest
import torch

from weakspot import Subject
from weakspot.attacks import ForeignAttack, attack_batch, bim, carlini_wagner, distortion, fgsm, jsma
from weakspot.attacks.balls import size
from weakspot.core.environment import environment
from weakspot.core.errors import DataError

# ART writes a configuration into the home folder on its first import, and breaks where two processes do so at once
with tempfile.TemporaryDirectory() as home, environment("HOME", home):
    evasion = pytest.importorskip("art.attacks.evasion", reason="adversarial-robustness-toolbox is not installed")
BOUNDS = (0.0, 1.0)


@pytest.fixture(scope="module")
def art_classifier():
    from art.estimators.classification import PyTorchClassifier

    def made(net, shape):
        return PyTorchClassifier(net, torch.nn.CrossEntropyLoss(), shape, 10, clip_values=BOUNDS, device_type="cpu")

    return made


@pytest.fixture(params=["digits", "svhn"])
def case(request, art_classifier):
    """A net, images, labels and ART's view of the net."""
    if request.param == "digits":
        net, source = request.getfixturevalue("digit_net"), request.getfixturevalue("some_digits")
        batch = source.read(np.arange(37))
        images, labels = batch.inputs, batch.targets
    else:
        net = request.getfixturevalue("svhn_net")
        pixels, classes = request.getfixturevalue("svhn")
        images = torch.from_numpy(pixels[:8]).permute(0, 3, 1, 2).float().div(255).contiguous()
        labels = torch.from_numpy(classes[:8]).long()
    return net.eval(), images, labels, art_classifier(net, images.shape[1:])


def test_fgsm_is_arts(case):
    net, images, labels, classifier = case
    expected = evasion.FastGradientMethod(classifier, eps=0.1).generate(images.numpy(), labels.numpy())
    found = fgsm(net, images, labels, epsilon=0.1, bounds=BOUNDS)
    assert np.isclose(found.numpy(), expected, atol=1e-5).mean() > 0.999  # a slope of nearly 0 may round either way


def test_bim_is_arts(case):
    net, images, labels, classifier = case
    attack = evasion.BasicIterativeMethod(classifier, eps=0.05, eps_step=0.01, max_iter=5, verbose=False)
    expected = torch.from_numpy(attack.generate(images.numpy(), labels.numpy()))
    found = bim(net, images, labels, epsilon=0.05, step=0.01, iterations=5, bounds=BOUNDS)
    assert np.isclose(found.numpy(), expected.numpy(), atol=1e-5).mean() > 0.95  # roundings grow from step to step
    assert wrong(net, found, labels) >= wrong(net, expected, labels)
    assert distortion(images, found)["linf"].max() <= 0.05 + 1e-6


def test_carlini_wagner_turns_as_many_as_art_at_no_larger_distance(digit_net, some_digits, art_classifier):
    """Ten values of c and ten steps for each, ART's defaults; ART also searches along every step, we do not."""
    batch = some_digits.read(np.arange(12))
    classifier = art_classifier(digit_net.eval(), batch.inputs.shape[1:])
    attack = evasion.CarliniL2Method(classifier, batch_size=12, verbose=False)
    expected = torch.from_numpy(attack.generate(batch.inputs.numpy(), batch.targets.numpy()))
    found = carlini_wagner(
        digit_net, batch.inputs, batch.targets, bounds=BOUNDS, search_steps=10, iterations=10, learning_rate=0.1,
        initial_constant=0.01, restart=False, abort_early=False,
    )  # fmt: skip
    assert wrong(digit_net, found, batch.targets) >= wrong(digit_net, expected, batch.targets)
    turned = (digit_net(expected).argmax(1) != batch.targets) & (digit_net(found).argmax(1) != batch.targets)
    ours, arts = (distortion(batch.inputs, made)["l2"][turned].mean() for made in (found, expected))
    assert ours <= arts


def test_jsma_on_one_logit_is_arts(digit_net, some_digits, art_classifier):
    """ART counts pixels, not steps, and may take one step more: what needs fewer comes out the same."""
    batch = some_digits.read(np.arange(37))
    x, targets, how = batch.inputs, (batch.targets + 1) % 10, {"theta": 1.0, "gamma": 0.3, "bounds": BOUNDS}
    attack = evasion.SaliencyMapMethod(
        art_classifier(digit_net.eval(), x.shape[1:]), theta=1.0, gamma=0.3, batch_size=37, verbose=False
    )
    expected = torch.from_numpy(attack.generate(x.numpy(), targets.numpy()))
    found = jsma(digit_net, x, targets, others=False, **how)
    reached = digit_net(found).argmax(1) == targets
    assert reached.sum() > 18 and torch.equal(found[reached], expected[reached])


def test_attacks_of_art_go_through_the_adapter(digit_net, some_digits):
    from art.estimators.classification import PyTorchClassifier

    def arts(model, images, classes):
        classifier = PyTorchClassifier(model, torch.nn.CrossEntropyLoss(), images.shape[1:], 10, clip_values=(0.0, 1.0))
        attack = evasion.ProjectedGradientDescent(classifier, eps=0.1, eps_step=0.02, max_iter=10, verbose=False)
        return torch.from_numpy(attack.generate(images.numpy(), classes.numpy()))

    subject = Subject(digit_net, classes=10, scores="logits", bounds=(0, 1))
    batch = some_digits.read(np.arange(20))
    changed, did = attack_batch(subject, ForeignAttack(epsilon=0.1, call=arts), batch)
    assert did["success"].sum() > 3 and size(changed - batch.inputs, "linf").max() <= 0.1 + 1e-4
    with pytest.raises(DataError, match=r"moved an input by 0\.1.* in linf.*expected at most 0\.05"):
        attack_batch(subject, ForeignAttack(epsilon=0.05, call=arts), batch)


def wrong(net, images, labels):
    with torch.no_grad():
        return int((net(images).argmax(1) != labels).sum())
