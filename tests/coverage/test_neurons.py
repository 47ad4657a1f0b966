"""Neuron coverage and k-multisection coverage against their plain references."""

import numpy as np
import pytest
import torch

from tests.references import coverage as reference
from weakspot import Plan, Run, Step, Subject, examine
from weakspot.core.sections import section_numbers
from weakspot.core.source import Subset, limited
from weakspot.coverage.neuron_probes import ActivationRanges, KMultisection, NeuronCoverage
from weakspot.data import digits
from weakspot.data.sources import ArraySource

LAYERS = ("conv1", "conv2", "hidden", "classifier")
MODULES = {"output": LAYERS, "activated": ("relu1", "relu2", "relu3", "classifier")}
"""The modules whose outputs are the layers' values on either side of the activation."""
LABELS = {"output": LAYERS, "activated": ("conv1 (activated)", "conv2 (activated)", "hidden (activated)", "classifier")}


def images_of(source):
    return source.read(np.arange(len(source.ids))).inputs.double()


@pytest.mark.parametrize("side", MODULES)
@pytest.mark.parametrize("threshold", [0.1, 0.25, 0.5])
def test_neuron_coverage_agrees_with_the_reference(net, subject, test, threshold, side):
    finding = examine(subject, test, [NeuronCoverage(threshold=threshold, side=side)])[0]
    expected = reference.neuron_counts(net, MODULES[side], images_of(test), threshold)
    assert 0 < (expected > 0).mean() < 1
    np.testing.assert_array_equal(finding.arrays["counts"], expected)
    assert finding.summary["coverage"].value == (expected > 0).mean()
    assert finding.table["layer"].to_pylist() == list(LABELS[side])
    assert finding.table["neurons"].to_pylist() == [16, 32, 64, 10]


def test_neurons_are_taken_after_their_activation(subject, test):
    default, activated = examine(subject, test, [NeuronCoverage(), NeuronCoverage(side="activated")])
    np.testing.assert_array_equal(default.arrays["counts"], activated.arrays["counts"])


@pytest.mark.parametrize("side", MODULES)
def test_k_multisection_agrees_with_the_reference(net, subject, train, test, side, tmp_path):
    plan = Plan.of([Step.of(KMultisection, sections=6, side=side)])
    *_, finding = plan.run(subject, {"train": train, "test": test}, Run.create(tmp_path / "run"))
    expected = reference.section_counts(net, MODULES[side], images_of(train), images_of(test), 6)
    np.testing.assert_array_equal(finding.arrays["counts"], expected)
    assert finding.summary["targets"].value == expected.size


def test_saturation_curve_is_the_mean_over_all_subsets(subject):
    few = limited(digits.test(), 7)
    finding = examine(subject, few, [NeuronCoverage(threshold=0.4)])[0]
    covers = np.array([_covers(subject, few, position) for position in range(7)])
    for size, value in zip(finding.arrays["curve_size"], finding.arrays["curve_coverage"], strict=True):
        assert value == pytest.approx(reference.saturation(covers, int(size)), abs=1e-12)


def test_one_input_tells_nothing_of_the_unseen(subject):
    unseen = examine(subject, limited(digits.test(), 1), [NeuronCoverage()])[0].summary["unseen"]
    assert unseen.value is None and unseen.low is None and "fewer than two inputs" in unseen.about


def _covers(subject, source, position):
    return examine(subject, Subset(source, [position]), [NeuronCoverage(threshold=0.4)])[0].arrays["counts"] > 0


def test_values_outside_the_training_range_belong_to_no_section(subject, train, test, tmp_path):
    brighter = ArraySource(images_of(test).float() * 3, np.zeros(23, dtype=int))
    plan = Plan.of([Step.of(KMultisection, sections=6)])
    *_, finding = plan.run(subject, {"train": train, "test": brighter}, Run.create(tmp_path / "run"))
    assert finding.arrays["counts"].sum() < 23 * 122


def test_sections_of_a_hand_made_case():
    values = torch.tensor([[-0.1, 5.0], [0.0, 5.0], [0.49, 4.9], [0.5, 5.1], [1.0, 5.0], [1.01, 5.0]])
    low, high = torch.tensor([0.0, 5.0]), torch.tensor([1.0, 5.0])
    assert section_numbers(values, low, high, 2).tolist() == [[0, 1], [1, 1], [1, 0], [2, 3], [2, 1], [3, 1]]


def test_a_constant_neuron_is_counted(tmp_path):
    net = digits.model()
    with torch.no_grad():
        net.hidden.weight[3] = 0
    ranges = examine(Subject(net), limited(digits.train(), 20), [ActivationRanges(layers="hidden", side="output")])[0]
    assert ranges.summary["constant"].value == 1


def test_real_net_agrees_with_the_reference(svhn_net, svhn):
    images, labels = svhn
    source = ArraySource(images[:24], labels[:24], channels="last")
    finding = examine(Subject(svhn_net), source, [NeuronCoverage(threshold=0.5, side="output")])[0]
    layers = finding.table["layer"].to_pylist()
    expected = reference.neuron_counts(svhn_net, layers, source.read(np.arange(24)).inputs, 0.5)
    assert (finding.arrays["counts"] != expected).mean() < 0.002  # float32 at the very threshold
