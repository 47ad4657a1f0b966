"""Boundary, strong-activation and top-k coverage against their plain references; classes and the training baseline."""

from hashlib import shake_128

import numpy as np
import pytest
import torch

from tests.references import criteria as reference
from weakspot import Plan, Run, Subject, examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import Subset, limited
from weakspot.coverage.metrics_top_neurons import inputs_per_pattern, leading_neurons, pattern_words
from weakspot.coverage.neuron_probes import ActivationRanges, KMultisection, NeuronCoverage, TopNeurons
from weakspot.coverage.room import steps
from weakspot.data import digits
from weakspot.data.sources import ArraySource

ACTIVATED = ("relu1", "relu2", "relu3", "classifier")
"""The modules after the layers: what the criteria read by default."""


def values_of(net, source):
    return reference.layer_values(net, ACTIVATED, source.read(np.arange(len(source.ids))).inputs.double())


def test_boundary_and_strong_coverage_agree_with_the_reference(net, subject, train, test):
    ranges = examine(subject, train, [ActivationRanges()])[0]
    finding = examine(subject, test, [KMultisection(sections=6, ranges=ranges)])[0]
    expected = reference.beyond_counts(values_of(net, train), values_of(net, test))
    assert 0 < (expected > 0).mean() < 1
    np.testing.assert_array_equal(finding.arrays["beyond"], expected)
    assert finding.summary["boundary_coverage"].value == (expected > 0).mean()
    assert finding.summary["strong_coverage"].value == (expected[:, 1] > 0).mean()
    assert finding.arrays["curve_strong_coverage"][-1] == pytest.approx((expected[:, 1] > 0).mean())


@pytest.mark.parametrize("top", [1, 3])
def test_top_neurons_and_patterns_agree_with_the_reference(net, subject, test, top):
    finding = examine(subject, test, [TopNeurons(top=top)])[0]
    counts, alike = reference.top_counts(values_of(net, test), top)
    np.testing.assert_array_equal(finding.arrays["counts"], counts)
    assert finding.summary["coverage"].value == (counts > 0).mean()
    assert finding.arrays["inputs_per_pattern"].tolist() == alike
    assert finding.summary["patterns"].value == len(alike)


def test_patterns_are_shared_where_a_layer_is_small(net, subject, test):
    finding = examine(subject, test, [TopNeurons(top=1, layers="classifier")])[0]
    _, alike = reference.top_counts([layers[-1:] for layers in values_of(net, test)], 1)
    assert max(alike) > 1
    assert finding.arrays["inputs_per_pattern"].tolist() == alike
    assert finding.summary["patterns"].value + finding.summary["patterns_unseen"].value <= 10


def test_ties_go_to_the_lower_number():
    values = torch.tensor([[0.0, 0.0, 0.0, 0.0], [2.0, 1.0, 2.0, 2.0]])
    assert leading_neurons(values, [4], 2).int().tolist() == [[1, 1, 0, 0], [1, 0, 1, 0]]


def test_leading_neurons_agree_with_a_sort():
    values = torch.from_numpy(np.random.default_rng(0).integers(0, 4, (50, 17)).astype(np.float32))
    found = leading_neurons(values, [9, 2, 6], 3).numpy()
    for row, own in zip(found, values.numpy(), strict=True):
        expected = reference.leading(np.split(own, [9, 11]), 3)
        marked = {(layer, n) for layer, part in enumerate(np.split(row, [9, 11])) for n in np.flatnonzero(part)}
        assert marked == expected


def test_nan_has_no_place_in_an_order():
    with pytest.raises(DataError, match="NaN"):
        leading_neurons(torch.tensor([[1.0, float("nan")]]), [2], 1)


def test_patterns_are_told_apart_by_their_hash():
    leads = torch.tensor([[1, 0, 1], [1, 0, 1], [0, 1, 1]], dtype=torch.bool)
    assert inputs_per_pattern(pattern_words(leads).numpy()).tolist() == [2, 1]


def test_the_hash_of_a_pattern_is_the_sum_of_its_neurons_words():
    drawn = shake_128(b"weakspot").digest(16 * 3)
    words = [[int.from_bytes(drawn[8 * (3 * w + n) :][:8], "little") for n in range(3)] for w in range(2)]
    expected = [(own[0] + own[2]) % 2**64 for own in words]
    found = pattern_words(torch.tensor([[True, False, True]]))[0]
    assert [int(word) % 2**64 for word in found] == expected


def test_layers_of_one_width_are_compared_apart():
    values = torch.tensor([[5.0, 4.0, 1.0, 2.0, 9.0, 3.0, 3.0]])
    assert leading_neurons(values, [2, 3, 2], 1).int().tolist() == [[1, 0, 0, 0, 1, 1, 0]]


@pytest.mark.parametrize("probe", [NeuronCoverage(threshold=0.4, classes=["3", "8"]), TopNeurons(classes=["3", "8"])])
def test_classes_asked_for_are_those_of_a_subset(subject, probe):
    source = limited(digits.test(), 150)
    predicted = subject.model(source.read(np.arange(150)).inputs.double()).argmax(1).numpy()
    finding = examine(subject, source, [probe])[0]
    alone = type(probe)(**{**probe.parameters(), "classes": (), "baseline": None})
    for place, name in enumerate(["3", "8"]):
        own = examine(subject, Subset(source, np.flatnonzero(predicted == int(name))), [alone])[0]
        np.testing.assert_array_equal(finding.arrays["class_counts"][place], own.arrays["counts"])
        assert finding.summary[f"coverage, predicted {name}"].value == own.summary["coverage"].value
        assert finding.arrays["class_inputs"][place] == own.summary["inputs"].value > 0
        assert finding.table[f"coverage, predicted {name}"].to_pylist() == own.table["coverage"].to_pylist()
        if isinstance(probe, TopNeurons):
            assert finding.summary[f"patterns, predicted {name}"].value == own.summary["patterns"].value


def test_sections_of_a_class_are_those_of_a_subset(subject, train):
    source = limited(digits.test(), 100)
    ranges = examine(subject, train, [ActivationRanges()])[0]
    predicted = subject.model(source.read(np.arange(100)).inputs.double()).argmax(1).numpy()
    finding = examine(subject, source, [KMultisection(sections=9, ranges=ranges, classes=["5"])])[0]
    subset = Subset(source, np.flatnonzero(predicted == 5))
    own = examine(subject, subset, [KMultisection(sections=9, ranges=ranges)])[0]
    np.testing.assert_array_equal(finding.arrays["class_counts"][0], own.arrays["counts"])


def test_classes_that_are_not_there_are_refused(subject, test):
    with pytest.raises(ConfigError, match="no class is called 'cat': there are 0, 1, 2"):
        examine(subject, test, [NeuronCoverage(classes=["cat"])])
    numbers = Subject(subject.model, task="regression", preprocess=lambda images: images.double())
    with pytest.raises(ConfigError, match="a regression subject has none"):
        examine(numbers, test, [NeuronCoverage(classes=["3"])])


def test_three_criteria_are_one_step_with_one_state():
    asked = steps({"criteria": ["kmnc", "nbc", "snac"], "kmnc": {"sections": 50}, "agreement": False})
    assert [(step.probe, step.options["sections"]) for step in asked] == [(KMultisection, 50)]
    assert len(steps({"criteria": ["tknc", "tknp"]})) == 1


def test_training_inputs_stand_beside_as_many_test_inputs(subject, train, test, tmp_path):
    plan = Plan.of(steps({"criteria": ["nc", "kmnc", "tknp"], "kmnc": {"sections": 6}, "agreement": False}))
    run = Run.create(tmp_path / "run")
    plan.run(subject, {"train": train, "test": test}, run)
    drawn = limited(train, 23)
    known = {"fingerprint": drawn.fingerprint(), "samples": 23, "made": "23 of 40, drawn at random"}
    assert run.manifest()["data"]["train.like.test"] == known
    own = examine(subject, drawn, [NeuronCoverage(), TopNeurons()])
    assert run["coverage.neuron_coverage"].summary["coverage_of_training"].value == own[0].summary["coverage"].value
    assert run["coverage.top_neurons"].summary["patterns_of_training"].value == own[1].summary["patterns"].value
    beside = run["coverage.k_multisection"].summary
    assert 0 < beside["coverage_of_training"].value < 1
    assert "boundary_coverage_of_training" not in beside, "the ranges are those of the training data: it is 0"


def test_without_training_data_neuron_coverage_needs_none(subject, test, tmp_path):
    plan = Plan.of(steps({"criteria": ["nc", "tknc"]}))
    findings = plan.run(subject, {"test": test}, Run.create(tmp_path / "run"))
    assert [finding.name for finding in findings] == ["coverage.neuron_coverage", "coverage.top_neurons"]
    assert "coverage_of_training" not in findings[0].summary
    with pytest.raises(ConfigError, match="needs the split 'train', and the data have only 'test'"):
        Plan.of(steps({"criteria": ["nc"], "baseline": True})).check({"test": test})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nbc": {"sections": 5}}, "nbc is read off the counts of kmnc"),
        ({"criterion": "nc"}, "knows no criterion or option 'criterion'"),
        ({"criteria": {"nc": 1}}, "expected a list of names"),
        ({"criteria": ["nc", "kmnc"], "nc": {"layers": "penultimate"}}, "look at different layers"),
        ({"criteria": ["tknc"], "tknc": {"top": 0}}, "top is 0: expected 1 or more"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        steps(options)


def test_a_constant_layer_is_covered_by_its_first_neurons():
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 2))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    finding = examine(Subject(net), ArraySource(np.ones((4, 3), dtype=np.float32)), [TopNeurons(top=2)])[0]
    assert finding.arrays["counts"].tolist() == [4, 4, 0, 0, 0, 4, 4]
