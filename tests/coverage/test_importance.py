"""Importance and importance-driven coverage against their plain references."""

import numpy as np
import pytest
from torch import nn

from tests.references import coverage as reference
from weakspot import Plan, Run, Step, Subject, examine
from weakspot.core.errors import ConfigError
from weakspot.core.source import Subset, limited
from weakspot.coverage.importance import (
    ImportanceDrivenCoverage,
    LayerTraces,
    NeuronImportance,
    cluster_centres,
    combinations,
)
from weakspot.coverage.neurons import NeuronCoverage
from weakspot.data import digits


@pytest.fixture(scope="module")
def subject():
    return Subject(digits.model(), classes=digits.CLASSES)


def test_gradient_importance_agrees_with_the_reference(subject):
    train = limited(digits.train(), 30)
    finding = examine(subject, train, [NeuronImportance(method="gradient")])[0]
    expected = reference.importance(subject.model, "classifier", train.read(np.arange(30)).inputs)
    np.testing.assert_allclose(finding.arrays["relevance"], expected, rtol=1e-4, atol=1e-4)
    assert (np.diff(finding.arrays["relevance"][finding.arrays["order"]]) <= 0).all()


def test_importance_of_a_convolution_sums_over_positions(subject):
    train = limited(digits.train(), 12)
    probe = NeuronImportance(layers="pool", method="gradient")
    by_channel = examine(subject, train, [probe])[0].arrays["relevance"]
    flat = reference.importance(subject.model, "hidden", train.read(np.arange(12)).inputs)
    np.testing.assert_allclose(by_channel, flat.reshape(32, 16).sum(1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("method", "redistributed"), [("lrp", True), ("lrp_biases_absorb", False)])
def test_importance_by_relevance_agrees_with_the_formula(subject, method, redistributed):
    train = limited(digits.train(), 30)
    finding = examine(subject, train, [NeuronImportance(method=method)])[0]
    expected = reference.last_layer_relevance(
        subject.model, "classifier", train.read(np.arange(30)).inputs, redistributed=redistributed
    )
    np.testing.assert_allclose(finding.arrays["relevance"], expected, rtol=1e-4, atol=1e-4)


def test_relevance_with_redistributed_biases_is_conserved(subject):
    train = limited(digits.train(), 30)
    relevance = examine(subject, train, [NeuronImportance()])[0].arrays["relevance"]
    logits = subject.model(train.read(np.arange(30)).inputs).detach().amax(1)
    assert relevance.sum() == pytest.approx(float(logits.double().sum()), rel=1e-5)


@pytest.mark.parametrize("where", ["correct", "wrong"])
def test_importance_of_some_inputs_is_that_of_a_subset(subject, where):
    test = digits.test()
    batch = test.read(np.arange(599))
    right = (subject.model(batch.inputs).argmax(1) == batch.targets).numpy()
    chosen = np.flatnonzero(right == (where == "correct"))
    some = examine(subject, test, [NeuronImportance(where=where)])[0]
    subset = examine(subject, Subset(test, chosen), [NeuronImportance()])[0]
    assert some.summary["inputs"].value == len(chosen) > 0
    np.testing.assert_allclose(some.arrays["relevance"], subset.arrays["relevance"], rtol=1e-4, atol=1e-3)


def test_relevance_and_taps_share_one_pass(subject):
    source = limited(digits.test(), 20)
    alone = [examine(subject, source, [probe])[0] for probe in (NeuronImportance(), NeuronCoverage(threshold=0.4))]
    together = examine(subject, source, [NeuronImportance(), NeuronCoverage(threshold=0.4)])
    for one, other in zip(alone, together, strict=True):
        assert one.digest == other.digest


def test_unknown_methods_are_refused():
    with pytest.raises(ConfigError, match="choose one of lrp, lrp_biases_absorb, gradient"):
        NeuronImportance(method="magic")
    with pytest.raises(ConfigError, match="choose one of all, correct, wrong"):
        NeuronImportance(where="lucky")


def test_clusters_are_the_best_of_all_splits():
    rng = np.random.default_rng(3)
    for clusters in (2, 3, 4):
        values = rng.normal(size=11) + rng.integers(0, 3, 11) * 4
        np.testing.assert_allclose(cluster_centres(values, clusters), reference.best_clusters(values, clusters))


def test_fewer_values_than_clusters_are_their_own_centres():
    assert cluster_centres(np.array([2.0, 1.0, 2.0]), 3).tolist() == [1.0, 2.0]


def test_combinations_count_in_mixed_radix():
    centres = [np.array([0.0, 1.0]), np.array([0.0, 1.0, 2.0])]
    values = np.array([[0.1, 0.2], [0.9, 0.2], [0.9, 1.9], [0.1, 1.1]])
    assert combinations(values, centres).tolist() == [0, 3, 5, 1]


def test_coverage_counts_each_input_once(subject, tmp_path):
    train, test = limited(digits.train(), 200), limited(digits.test(), 50)
    plan = Plan.of([Step.of(ImportanceDrivenCoverage, neurons=3, clusters=2)])
    importance, training, finding = plan.run(subject, {"train": train, "test": test}, Run.create(tmp_path / "run"))
    assert finding.arrays["counts"].sum() == 50
    assert len(finding.arrays["counts"]) == 8
    assert finding.summary["coverage"].value == (finding.arrays["counts"] > 0).mean()
    assert training.arrays["trace"].shape == (200, 64)
    np.testing.assert_array_equal(finding.arrays["important"], importance.arrays["order"][:3])


def test_the_training_inputs_cover_every_cluster(subject, tmp_path):
    train = limited(digits.train(), 200)
    plan = Plan.of([Step.of(ImportanceDrivenCoverage, neurons=1, clusters=4)])
    *_, finding = plan.run(subject, {"train": train, "test": train}, Run.create(tmp_path / "run"))
    assert finding.summary["coverage"].value == 1.0


def test_traces_are_the_layer_input(subject):
    source = limited(digits.test(), 9)
    traces = examine(subject, source, [LayerTraces()])[0].arrays["trace"]
    images = source.read(np.arange(9)).inputs
    expected = nn.Sequential(*list(subject.model)[:-1])(images).detach().numpy()
    np.testing.assert_allclose(traces, expected, rtol=1e-5, atol=1e-6)


def test_bad_options_are_refused():
    with pytest.raises(ConfigError, match="neurons ≥ 1 and clusters ≥ 2, got 0"):
        Step.of(ImportanceDrivenCoverage, neurons=0, importance=None, training=None).build({})
    with pytest.raises(ConfigError, match="20 neurons with 3 clusters each have more than 100,000,000"):
        Step.of(ImportanceDrivenCoverage, neurons=20, importance=None, training=None).build({})
