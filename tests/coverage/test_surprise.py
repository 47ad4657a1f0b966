"""Surprise adequacy against plain references, the published oracle, and cases worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.references import surprise as reference
from weakspot import Plan, Run, Step, Subject, examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import limited
from weakspot.coverage import distance_surprise, likelihood_surprise, metrics_nearest, surprise_buckets
from weakspot.coverage.metrics_nearest import nearest_in_class
from weakspot.coverage.metrics_surprise import likelihood_surprise_of
from weakspot.coverage.room import steps
from weakspot.coverage.surprise_probes import DistanceSurpriseCoverage, LikelihoodSurpriseCoverage
from weakspot.coverage.trace_probes import LayerTraces
from weakspot.data import digits
from weakspot.data.sources import ArraySource


@pytest.fixture(scope="module")
def oracle(shared):
    with np.load(shared / "oracles" / "surprise" / "mnist.npz") as stored:
        return {name: stored[name] for name in stored}


def test_distance_surprise_agrees_with_the_published_scores(oracle):
    found = distance_surprise(oracle["train_traces"], oracle["train_pred"], oracle["test_traces"], oracle["test_pred"])
    assert np.abs(found - oracle["test_dsa"]).max() < 1e-6


def test_likelihood_surprise_agrees_with_the_published_scores(oracle):
    found = likelihood_surprise(
        oracle["train_traces"], oracle["train_pred"], oracle["test_traces"], oracle["test_pred"]
    )
    assert np.abs(found - oracle["test_lsa"]).max() < 0.02


def made_up(neurons, *, whole=False, train=60, test=25, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, (train + test, neurons)) if whole else rng.normal(size=(train + test, neurons))
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, train + test - classes)])
    values = values.astype(np.float32)
    return values[:train], labels[:train], values[train:], labels[train:]


@pytest.mark.parametrize("neurons", [1, 3, 7, 40])
@pytest.mark.parametrize("whole", [False, True])
def test_distance_surprise_agrees_with_the_reference(neurons, whole, monkeypatch):
    monkeypatch.setattr(metrics_nearest, "QUERIES", 4)
    monkeypatch.setattr(metrics_nearest, "REFERENCES", 7)
    train, classes, test, predicted = made_up(neurons, whole=whole and neurons > 3)
    expected = reference.distance_surprise(train.astype(float), classes, test.astype(float), predicted)
    np.testing.assert_allclose(distance_surprise(train, classes, test, predicted), expected, rtol=1e-12)


@given(st.integers(6, 12), st.integers(0, 10**6), st.sampled_from([1e-8, 1.0, 1e12]), st.sampled_from([0.0, 1e4]))
@settings(max_examples=30, deadline=None)
def test_products_find_the_same_rows_as_a_double_loop(neurons, seed, scale, offset):
    """Far from the origin a product in float32 has no digits left; the recheck must make up for it."""
    rng = np.random.default_rng(seed)
    rows, queries = (rng.normal(size=(count, neurons)) * scale + offset for count in (40, 9))
    classes, asked = rng.integers(0, 2, 40), rng.integers(0, 2, 9)
    found = nearest_in_class(rows, classes, queries, asked, same=True)
    distance = ((queries[:, None] - rows) ** 2).sum(2)
    distance[asked[:, None] != classes] = np.inf
    if np.isfinite(distance).any(1).all():
        np.testing.assert_array_equal(found.row, distance.argmin(1))


def test_of_rows_equally_near_the_first_is_found():
    rows = np.zeros((9, 8))
    found = nearest_in_class(rows, np.zeros(9, dtype=int), np.ones((2, 8)), np.zeros(2, dtype=int), same=True)
    assert found.row.tolist() == [0, 0]


@pytest.mark.parametrize("neurons", [2, 9])
def test_an_input_is_not_compared_with_itself(neurons):
    train, classes, *_ = made_up(neurons)
    own = np.arange(20)
    found = distance_surprise(train, classes, train[:20], classes[:20], leave_out=own)
    expected = reference.distance_surprise(
        train.astype(float), classes, train[:20].astype(float), classes[:20], without=own
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (distance_surprise(train, classes, train[:20], classes[:20]) == 0).all()


def test_distance_surprise_where_distances_are_zero_or_missing():
    train, classes = np.array([[0.0], [5.0], [5.0]]), [0, 0, 1]
    found = distance_surprise(train, classes, [[5.0], [5.5], [0.0], [3.0]], [0, 0, 0, 7])
    assert found.tolist() == [1.0, np.inf, 0.0, np.inf]
    with pytest.raises(DataError, match="all training inputs are predicted as class 0: use likelihood-based"):
        distance_surprise(train, [0, 0, 0], train, [0, 0, 0])


@pytest.mark.parametrize("neurons", [1, 4])
def test_likelihood_surprise_agrees_with_scipy(neurons):
    train, classes, test, predicted = made_up(neurons, train=120)
    expected = reference.likelihood_surprise(train.astype(float), classes, test.astype(float), predicted)
    np.testing.assert_allclose(likelihood_surprise(train, classes, test, predicted), expected, rtol=1e-9)
    all_in_one = reference.likelihood_surprise(train.astype(float), np.zeros(120), test.astype(float), np.zeros(25))
    np.testing.assert_allclose(likelihood_surprise(train, None, test, None), all_in_one, rtol=1e-9)


def test_likelihood_surprise_of_far_inputs_is_finite():
    train = np.random.default_rng(0).normal(size=(50, 2))
    found = likelihood_surprise(train, None, [[1e6, 0.0]], None)
    assert np.isfinite(found[0])
    assert found[0] > 1e9


def test_an_input_is_left_out_of_its_own_density():
    train = np.array([[0.0], [1.0], [5.0]])
    found = likelihood_surprise(train, None, train[:1], None, leave_out=[0])
    width = np.sqrt(np.var(train[1:], ddof=1)) * 2 ** (-1 / 5)
    density = np.mean([np.exp(-((0 - x) ** 2) / (2 * width**2)) for x in (1.0, 5.0)]) / (width * np.sqrt(2 * np.pi))
    assert found[0] == pytest.approx(-np.log(density))


@pytest.mark.parametrize(("inputs", "neurons"), [(40, 3), (12, 5), (8, 7), (6, 7), (5, 9), (3, 2)])
def test_a_density_without_an_input_is_that_of_the_others_alone(inputs, neurons):
    rng = np.random.default_rng(inputs)
    train = rng.normal(size=(inputs, neurons)) @ rng.normal(size=(neurons, neurons))
    if inputs == 12:
        train[1:, 2] = 1.5  # without the first input nothing varies there
    found = likelihood_surprise(train, None, train, None, leave_out=np.arange(inputs))
    alone = [likelihood_surprise(np.delete(train, row, 0), None, train[[row]], None)[0] for row in range(inputs)]
    np.testing.assert_allclose(found, alone, rtol=1e-8)


def test_without_one_of_two_inputs_there_is_no_density():
    train = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert np.isinf(likelihood_surprise(train, None, train, None, leave_out=[0, 1])).all()


def test_a_singular_covariance_is_that_of_the_directions_that_vary():
    rng = np.random.default_rng(1)
    flat = rng.normal(size=(80, 2))
    turned = flat @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])  # a plane in three dimensions
    found = likelihood_surprise_of(turned, None, turned[:5], None)
    assert found.densities[0].directions == 2
    assert found.densities[0].singular
    axes = np.linalg.svd(turned - turned.mean(0), full_matrices=False)[2][:2]
    within = likelihood_surprise(turned @ axes.T, None, turned[:5] @ axes.T, None)
    np.testing.assert_allclose(found.scores, within, rtol=1e-9)


def test_fewer_inputs_than_neurons_still_have_a_density():
    train, classes, test, predicted = made_up(30, train=24, classes=2)
    found = likelihood_surprise_of(train, classes, test, predicted)
    assert all(own.directions == own.inputs - 1 for own in found.densities.values())
    assert np.isfinite(found.scores).all()


def test_classes_without_a_density_surprise_without_bounds():
    train, classes = np.array([[0.0], [1.0], [7.0]]), [0, 0, 1]
    found = likelihood_surprise_of(train, classes, [[0.5], [7.0], [3.0]], [0, 1, 2])
    assert np.isfinite(found.scores).tolist() == [True, False, False]
    assert [found.densities[number].directions for number in (0, 1, 2)] == [1, 0, 0]


def test_neurons_that_hardly_vary_are_left_out():
    train = np.random.default_rng(0).normal(size=(40, 2)) * [1.0, 1e-3]
    found = likelihood_surprise_of(train, None, train, None)
    assert found.neurons.tolist() == [0]
    with pytest.raises(DataError, match="no neuron varies by 1e-05 or more"):
        likelihood_surprise(train[:, 1:], None, train[:, 1:], None)


def test_traces_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match=r"\(3, 2\) for training and \(1, 3\)"):
        likelihood_surprise(np.ones((3, 2)), None, np.ones((1, 3)), None)
    with pytest.raises(DataError, match="one predicted class per trace"):
        distance_surprise(np.ones((3, 2)), [0, 1], np.ones((1, 2)), [0])


def test_an_edge_belongs_to_the_bucket_below_it_but_for_rounding():
    edges = np.arange(1, 1001) * 2 / 1000
    assert (np.abs(surprise_buckets(edges, upper=2, buckets=1000) - np.arange(1000)) <= 1).all()
    assert surprise_buckets([np.inf, np.nan, -1.0], upper=2, buckets=10).tolist() == [-1, -1, -1]
    with pytest.raises(ConfigError, match="upper > lower"):
        surprise_buckets([1.0], upper=0, buckets=10)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Both criteria over the embedded digits, with training inputs as baseline, as the room asks for them."""
    subject = Subject(digits.model(), task="classification", classes=digits.CLASSES)
    data = {"train": limited(digits.train(), 400), "test": limited(digits.test(), 90)}
    options = {"criteria": ["lsc", "dsc"], "classes": ["3"], "dsc": {"buckets": 50}, "agreement": False}
    plan = Plan.of(steps(options))
    findings = plan.run(subject, data, Run.create(tmp_path_factory.mktemp("surprise") / "run"))
    by_step = {(step.probe, step.split): finding for step, finding in zip(plan.steps, findings, strict=True)}
    return by_step, {split: examine(subject, source, [LayerTraces()])[0] for split, source in data.items()}


@pytest.mark.parametrize(
    ("probe", "score"),
    [(DistanceSurpriseCoverage, distance_surprise), (LikelihoodSurpriseCoverage, likelihood_surprise)],
)
def test_probes_agree_with_the_plain_functions(found, probe, score):
    by_step, traces = found
    finding = by_step[probe, "test"]
    parts = [(own.arrays["trace"], own.table["prediction"].to_numpy()) for own in (traces["train"], traces["test"])]
    expected = dict(zip(traces["test"].table["id"].to_pylist(), score(*parts[0], *parts[1]), strict=True))
    names, surprise = (finding.table[name].to_pylist() for name in ("id", "surprise"))
    np.testing.assert_allclose(surprise, [expected[name] for name in names], rtol=1e-6)
    bucket = finding.table["bucket"].to_numpy()
    reached = np.unique(bucket[bucket >= 0])
    assert finding.summary["coverage"].value == len(reached) / len(finding.arrays["counts"])
    assert finding.summary["inputs"].value == 90
    threes = finding.table["prediction"].to_numpy() == 3
    own = len(np.unique(bucket[threes & (bucket >= 0)])) / len(finding.arrays["counts"])
    assert finding.summary["coverage, predicted 3"].value == own == finding.arrays["class_coverage"][3]


def test_the_baseline_compares_no_training_input_with_itself(found):
    by_step, _ = found
    baseline = by_step[DistanceSurpriseCoverage, "train.like.test"]
    assert (baseline.table["surprise"].to_numpy() > 0).all()
    told = by_step[DistanceSurpriseCoverage, "test"].summary["coverage_of_training"].value
    assert told == baseline.summary["coverage"].value


def regression():
    rng = np.random.default_rng(3)
    data = {split: ArraySource(rng.normal(size=(60, 5)).astype(np.float32)) for split in ("train", "test")}
    return Subject(nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1)), task="regression"), data


def test_a_regression_has_one_density_and_no_distance_surprise(tmp_path):
    subject, data = regression()
    finding = Plan.of([Step.of(LikelihoodSurpriseCoverage)]).run(subject, data, Run.create(tmp_path / "run"))[-1]
    assert finding.arrays["density_class"].tolist() == [0]
    assert finding.arrays["density_inputs"].tolist() == [60]
    assert "prediction" not in finding.table.column_names
    with pytest.raises(ConfigError, match=r"distance_surprise_coverage examines classification.*task is regression"):
        Plan.of([Step.of(DistanceSurpriseCoverage)]).run(subject, data, Run.create(tmp_path / "other"))


def test_several_layers_stand_side_by_side(tmp_path):
    subject = Subject(digits.model(), task="classification", classes=digits.CLASSES)
    data = {"train": limited(digits.train(), 150), "test": limited(digits.test(), 20)}
    plan = Plan.of([Step.of(DistanceSurpriseCoverage, layers=["hidden", "conv2"])])
    training, finding = plan.run(subject, data, Run.create(tmp_path / "run"))
    assert training.arrays["trace"].shape == (150, 64 + 32)
    assert np.isfinite(finding.table["surprise"].to_numpy()).all()
