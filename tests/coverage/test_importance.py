"""Importance and importance-driven coverage against their plain references."""

import numpy as np
import pytest
from torch import nn

from tests.references import coverage as reference
from weakspot import Plan, Run, Step, Subject, examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import Subset, limited
from weakspot.coverage import importance_driven_coverage
from weakspot.coverage.importance_probes import ImportanceDrivenCoverage, NeuronImportance
from weakspot.coverage.neuron_probes import NeuronCoverage
from weakspot.coverage.trace_probes import LayerTraces
from weakspot.data import digits
from weakspot.data.images import enlarged, png, strip
from weakspot.data.sources import ArraySource
from weakspot.laws.battery import Trial, any_batch_size, any_order


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


@pytest.mark.parametrize("where", ["correct", "incorrect"])
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
    with pytest.raises(ConfigError, match="choose one of lrp, lrp_biases_absorb, epsilon_plus_redistributed, gradient"):
        NeuronImportance(method="magic")
    with pytest.raises(ConfigError, match="choose one of all, correct, incorrect"):
        NeuronImportance(where="lucky")


def test_importance_by_class_is_that_of_the_inputs_of_each_class(subject):
    train = limited(digits.train(), 60)
    targets = train.read(np.arange(60)).targets.numpy()
    finding = examine(subject, train, [NeuronImportance(classes_by="target")])[0]
    np.testing.assert_array_equal(finding.arrays["class_inputs"], np.bincount(targets, minlength=10))
    own = examine(subject, Subset(train, np.flatnonzero(targets == 3)), [NeuronImportance()])[0]
    np.testing.assert_allclose(finding.arrays["class_relevance"][3], own.arrays["relevance"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(finding.arrays["class_relevance"].sum(0), finding.arrays["relevance"], rtol=1e-12)


def test_normalised_importance_gives_every_input_the_same_weight(subject):
    train = limited(digits.train(), 20)
    finding = examine(subject, train, [NeuronImportance(method="gradient", priority="normalised")])[0]
    images = train.read(np.arange(20)).inputs
    each = [reference.importance(subject.model, "classifier", image[None]) for image in images]
    expected = sum(one / np.abs(one).sum() for one in each)
    np.testing.assert_allclose(finding.arrays["relevance"], expected, rtol=1e-4, atol=1e-5)


def idc(subject, folder, train, test, **options):
    plan = Plan.of([Step.of(ImportanceDrivenCoverage, **options)])
    *before, finding = plan.run(subject, {"train": train, "test": test}, Run.create(folder / "run"))
    return finding, {found.name: found for found in before}


def test_coverage_is_that_of_the_plain_function(subject, tmp_path):
    train, test = limited(digits.train(), 200), limited(digits.test(), 50)
    finding, before = idc(subject, tmp_path, train, test, neurons=3)
    traces = before["coverage.layer_traces"].arrays["trace"]
    chosen = before["coverage.neuron_importance"].arrays["order"][:3]
    tested = examine(subject, test, [LayerTraces()])[0].arrays["trace"]
    expected = importance_driven_coverage(traces[:, chosen], tested[:, chosen])
    assert finding.summary["coverage"].value == expected.coverage
    assert finding.summary["targets"].value == expected.targets
    np.testing.assert_array_equal(finding.arrays["important"][0], chosen)
    np.testing.assert_array_equal(finding.arrays["combinations"], expected.combinations)
    assert finding.arrays["counts"].sum() == 50
    alike = dict(zip(finding.table["id"].to_pylist(), finding.table["inputs_alike"].to_pylist(), strict=True))
    assert [alike[name] for name in test.ids] == expected.counts[expected.combination_of].tolist()


def test_coverage_by_class_is_the_mean_of_the_classes(subject, tmp_path):
    train, test = limited(digits.train(), 400), limited(digits.test(), 120)
    options = {"neurons": 3, "per_class": True, "classes_by": "target", "clusters": 2}
    finding, before = idc(subject, tmp_path, train, test, **options)
    traces, tested = before["coverage.layer_traces"], examine(subject, test, [LayerTraces()])[0]
    label, values = tested.table["target"].to_numpy(), tested.arrays["trace"]
    expected = []
    for number, relevance in enumerate(before["coverage.neuron_importance"].arrays["class_relevance"]):
        chosen = np.argsort(-relevance, kind="stable")[:3]
        own = importance_driven_coverage(
            traces.arrays["trace"][:, chosen], values[label == number][:, chosen], candidates=[2]
        )
        expected.append(own.coverage)
    np.testing.assert_allclose(finding.arrays["coverage_by_group"], expected)
    assert finding.summary["coverage"].value == pytest.approx(np.mean(expected))
    assert finding.summary["coverage, 3"].value == expected[3]
    assert set(finding.table["class"].to_pylist()) == set(digits.CLASSES)
    apart, _ = idc(subject, tmp_path / "apart", train, test, **options, clusters_per_class=True)
    assert apart.summary["coverage"].value > finding.summary["coverage"].value, "values spread more within their class"


def test_the_training_inputs_cover_every_cluster(subject, tmp_path):
    train = limited(digits.train(), 200)
    finding, _ = idc(subject, tmp_path, train, train, neurons=1, clusters=4)
    assert finding.summary["coverage"].value == finding.summary["coverage_of_training"].value == 1.0
    assert finding.arrays["hole_combination"].shape == (0, 1)
    assert not finding.media


def test_holes_name_training_inputs_that_lie_in_them(subject, tmp_path):
    train, test = limited(digits.train(), 300), limited(digits.test(), 30)
    finding, before = idc(subject, tmp_path, train, test, neurons=4, clusters=2, holes=5, nearest=2)
    traces = before["coverage.layer_traces"]
    place = {name: number for number, name in enumerate(traces.table["id"].to_pylist())}
    borders, chosen = finding.arrays["borders"][0, :, 0], finding.arrays["important"][0]
    reached = {tuple(row) for row in finding.arrays["combinations"].tolist()}
    shown = (traces.arrays["trace"][:, chosen] >= borders).astype(int)
    for hole, training, names, distance in zip(
        *(
            finding.arrays[f"hole_{what}"]
            for what in ("combination", "training_inputs", "nearest_id", "nearest_distance")
        ),
        strict=True,
    ):
        assert tuple(hole.tolist()) not in reached
        assert training == (shown == hole).all(1).sum()
        for name, far in zip(names, distance, strict=True):
            assert (shown[place[name]] == hole).all() == (far == 0)
    assert (np.diff(finding.arrays["hole_training_inputs"]) <= 0).all()
    assert finding.arrays["hole_training_inputs"][0] > 0
    assert finding.media["hole 1"].caption.startswith("No test input covers the combination of clusters ")
    pixels = before["data.pictures-train"].arrays["pixels"]
    shown = [enlarged(np.asarray(pixels[place[name]]), 64) for name in finding.arrays["hole_nearest_id"][0]]
    assert finding.media["hole 1"].png == png(strip(shown))


def test_automatic_neurons_say_why(subject, tmp_path):
    train, test = limited(digits.train(), 300), limited(digits.test(), 30)
    finding, before = idc(subject, tmp_path, train, test, neurons="auto", share=0.2)
    relevance = np.maximum(np.sort(before["coverage.neuron_importance"].arrays["relevance"])[::-1], 0)
    wanted = int(np.argmax(np.cumsum(relevance) >= 0.2 * relevance.sum())) + 1
    assert finding.summary["neurons"].value == wanted
    assert "of the positive relevance (20 % wanted)" in finding.summary["neurons"].about


def test_arrays_for_figures_are_those_of_the_training_data(subject, tmp_path):
    train, test = limited(digits.train(), 100), limited(digits.test(), 20)
    finding, before = idc(subject, tmp_path, train, test, neurons=4)
    traces = np.asarray(before["coverage.layer_traces"].arrays["trace"], dtype=np.float64)
    np.testing.assert_allclose(finding.arrays["activation"], traces.mean(0), rtol=1e-6)
    np.testing.assert_allclose(
        finding.arrays["relevance"], before["coverage.neuron_importance"].arrays["relevance"] / 100
    )
    assert not set(finding.arrays["box_important_neuron"]) & set(finding.arrays["box_random_neuron"])
    for kind in ("important", "random"):
        expected = np.quantile(traces[:, finding.arrays[f"box_{kind}_neuron"]], finding.arrays["box_levels"], axis=0)
        np.testing.assert_allclose(finding.arrays[f"box_{kind}"], expected.T, rtol=1e-6)


def test_a_convolution_can_be_the_subject_layer(svhn_net, svhn, tmp_path):
    images, labels = svhn
    source = ArraySource(images[:200], labels[:200], channels="last")
    subject = Subject(svhn_net, task="classification", classes=10)
    layer = next(name for name, module in reversed(list(svhn_net.named_modules())) if isinstance(module, nn.Conv2d))
    finding, _ = idc(subject, tmp_path, source, source, layers=layer, neurons=5, thumbnail=8)
    assert 0 < finding.summary["coverage"].value <= 1
    assert finding.summary["coverage"].value == pytest.approx(finding.summary["coverage_of_training"].value)


def test_traces_are_the_layer_input(subject):
    source = limited(digits.test(), 9)
    traces = examine(subject, source, [LayerTraces()])[0].arrays["trace"]
    images = source.read(np.arange(9)).inputs
    expected = nn.Sequential(*list(subject.model)[:-1])(images).detach().numpy()
    np.testing.assert_allclose(traces, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("law", [any_batch_size, any_order], ids=lambda law: law.__name__)
@pytest.mark.parametrize(
    "options",
    [
        {"per_class": True, "neurons": "auto", "priority": "normalised"},
        {
            "per_class": True,
            "clusters_per_class": True,
            "classes_by": "target",
            "clustering": "quantiles",
            "neurons": 3,
        },
    ],
    ids=["normalised", "quantiles"],
)
def test_other_options_keep_the_laws_too(law, options):
    law(Trial(ImportanceDrivenCoverage, "classification", options))


def test_bad_options_are_refused(subject, tmp_path):
    rest = {"importance": None, "training": None, "examples": None}
    with pytest.raises(ConfigError, match="neurons is 0: expected 1 or more, or 'auto'"):
        ImportanceDrivenCoverage(neurons=0, **rest)
    with pytest.raises(ConfigError, match="0 < share ≤ 1"):
        ImportanceDrivenCoverage(share=0.0, **rest)
    with pytest.raises(ConfigError, match="needs per_class"):
        ImportanceDrivenCoverage(clusters_per_class=True, **rest)
    with pytest.raises(ConfigError, match="2 to 255 each"):
        ImportanceDrivenCoverage(clusters=1, **rest)
    few = limited(digits.train(), 20)
    with pytest.raises(DataError, match="combines 65 neurons, and the layer has 64: set idc"):
        idc(subject, tmp_path, few, few, neurons=65)


def test_a_layer_that_no_relevance_reaches_has_no_important_neurons(tmp_path):
    class Attending(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.query, self.value, self.last = (nn.Linear(2, 2) for _ in range(4))

        def forward(self, inputs):
            tokens = self.embed(inputs)
            return self.last((self.query(tokens) @ tokens.mT).softmax(-1) @ self.value(tokens)).mean(1)

    data = ArraySource(np.random.default_rng(0).random((12, 3, 2), dtype=np.float32), np.arange(12) % 2)
    attending = Subject(Attending(), classes=("a", "b"), scores="logits")
    with pytest.raises(DataError, match=r"no relevance reaches any neuron .* method: gradient"):
        idc(attending, tmp_path / "lrp", data, data, layers="query", neurons=2, thumbnail=0)
    assert idc(attending, tmp_path / "gradient", data, data, layers="query", method="gradient", neurons=2, thumbnail=0)
