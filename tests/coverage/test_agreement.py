"""Agreement of the criteria: against scipy, against subsets examined one by one, and on a real net."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from weakspot import Plan, Run, Subject, examine
from weakspot.core.errors import ConfigError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.source import Subset, limited
from weakspot.coverage.agreement_probes import CriteriaAgreement
from weakspot.coverage.metrics_agreement import drawn_inputs, random_subsets, spearman_matrix
from weakspot.coverage.neuron_probes import ActivationRanges, KMultisection, NeuronCoverage, TopNeurons
from weakspot.coverage.room import steps
from weakspot.data import digits
from weakspot.data.sources import ArraySource


@pytest.fixture(scope="module")
def subject():
    return Subject(digits.model(), classes=10, scores="logits")


@pytest.fixture(scope="module")
def ranges(subject):
    return examine(subject, limited(digits.train(), 40), [ActivationRanges()])[0]


def test_the_matrix_is_spearmans():
    values = np.random.default_rng(0).integers(0, 5, (40, 3)).astype(float)
    columns = {str(place): column for place, column in enumerate(values.T)}
    np.testing.assert_allclose(spearman_matrix(columns), spearmanr(values).statistic, atol=1e-12)


def test_subsets_are_measured_as_if_each_were_examined(subject, ranges):
    source = limited(digits.test(), 40)
    probe = CriteriaAgreement(threshold=0.4, sections=8, top=2, subsets=5, size=6, seed=3, ranges=ranges)
    finding = examine(subject, source, [probe])[0]
    own = [NeuronCoverage(threshold=0.4), KMultisection(sections=8, ranges=ranges), TopNeurons(top=2)]
    measured = []
    for places in random_subsets(40, 6, 5, 3):
        nc, sections, top = (each.summary for each in examine(subject, Subset(source, places), own))
        beyond = [sections["boundary_coverage"], sections["strong_coverage"]]
        measured.append([each.value for each in (nc["coverage"], sections["coverage"], *beyond, top["coverage"])])
    assert finding.table["measure"].to_pylist()[:5] == ["nc", "kmnc", "nbc", "snac", "tknc"]
    np.testing.assert_allclose(finding.table["mean"].to_numpy()[:5], np.mean(measured, axis=0))


def test_errors_and_confusions_are_those_of_the_subsets(subject, ranges):
    source = digits.test()
    finding = examine(subject, source, [CriteriaAgreement(sections=8, subsets=20, size=200, ranges=ranges)])[0]
    batch = source.read(np.arange(len(source.ids)))
    predicted, truth = subject.model(batch.inputs).argmax(1).numpy(), batch.targets.numpy()
    assert finding.summary["errors"].value == (predicted != truth).sum()
    drawn = random_subsets(len(source.ids), 200, 20, 0)
    errors = [(predicted != truth)[places].sum() for places in drawn]
    kinds = [len({(truth[i], predicted[i]) for i in places if truth[i] != predicted[i]}) for places in drawn]
    mean = dict(zip(finding.table["measure"].to_pylist(), finding.table["mean"].to_pylist(), strict=True))
    assert (mean["errors"], mean["confusions"]) == (np.mean(errors), np.mean(kinds))


def test_scores_of_confidence_are_called_by_what_more_of_them_means(subject, ranges):
    told = examine(subject, digits.test(), [CriteriaAgreement(sections=8, subsets=5, ranges=ranges)])[0].summary
    assert "has more uncertainty by max_softmax than" in told["max_softmax_by_input"].about
    assert told["max_softmax_by_input"].value > 0.5
    assert "has more nc than" in told["nc_by_input"].about


def test_criteria_with_a_target_per_input_take_part(subject, tmp_path):
    data = {"train": limited(digits.train(), 200), "test": limited(digits.test(), 40)}
    asked = steps({"criteria": ["nc", "idc", "dsc", "lsc"], "agreement": {"sections": 8, "subsets": 9}})
    *_, finding = Plan.of(asked).run(subject, data, Run.create(tmp_path / "run"))
    assert finding.name == "coverage.criteria_agreement"
    measured = dict(zip(finding.table["measure"].to_pylist(), finding.table["mean"].to_pylist(), strict=True))
    assert all(0 < measured[name] < 1 for name in ("idc", "dsc", "lsc"))


def test_of_many_inputs_some_are_drawn_in_whatever_order_they_come(subject, ranges):
    source, options = digits.test(), {"sections": 8, "subsets": 20, "most_inputs": 50, "ranges": ranges}
    finding = examine(subject, source, [CriteriaAgreement(**options)])[0]
    backwards = Subset(source, range(len(source.ids))[::-1])
    again = examine(subject, backwards, [CriteriaAgreement(**options)])[0]
    np.testing.assert_allclose(again.table["mean"].to_numpy(), finding.table["mean"].to_numpy(), rtol=1e-5)
    assert finding.summary["inputs"].value == 50
    assert finding.summary["inputs"].about == f"samples examined, drawn at random from {len(source.ids)} (most_inputs)"
    drawn = drawn_inputs(source.ids, 50, 0)
    alone = Subset.named(source, sorted(drawn))
    same = examine(subject, alone, [CriteriaAgreement(**{**options, "most_inputs": None})])[0]
    np.testing.assert_allclose(same.table["mean"].to_numpy(), finding.table["mean"].to_numpy(), rtol=1e-5)
    assert finding.summary["subsets"].about == "random subsets of 5 inputs each"


def test_only_the_drawn_inputs_are_looked_at(subject, ranges):
    probe = CriteriaAgreement(sections=8, subsets=5, most_inputs=7, ranges=ranges)
    looked_at = []
    model = subject.model
    hook = model.register_forward_pre_hook(lambda module, inputs: looked_at.append(len(inputs[0])))
    try:
        examine(subject, limited(digits.test(), 200), [probe], execution=ExecutionOptions(batch_size=200))
    finally:
        hook.remove()
    assert 7 in looked_at and 200 not in looked_at


def test_bad_options_are_refused(subject, ranges):
    with pytest.raises(ConfigError, match="subsets ≥ 4"):
        CriteriaAgreement(subsets=1, ranges=ranges)
    with pytest.raises(ConfigError, match="most_inputs is 1: expected 2 or more, or null"):
        CriteriaAgreement(most_inputs=1, ranges=ranges)
    with pytest.raises(ConfigError, match="size is 50, and there are 10 inputs"):
        examine(subject, limited(digits.test(), 10), [CriteriaAgreement(size=50, ranges=ranges)])


def test_a_real_net_from_end_to_end(svhn_net, svhn, tmp_path):
    images, labels = svhn
    parts = {"train": slice(0, 120), "test": slice(120, 240), "pool": slice(240, 400)}
    data = {name: ArraySource(images[own], labels[own], channels="last") for name, own in parts.items()}
    criteria = ["nc", "kmnc", "nbc", "snac", "tknc", "tknp"]
    asked = steps({"criteria": criteria, "kmnc": {"sections": 50}, "select": {"from": "pool"}, "confidence": True})
    run = Run.create(tmp_path / "run")
    Plan.of(asked).run(Subject(svhn_net, classes=10, scores="logits"), data, run)
    for name in ("neuron_coverage", "k_multisection", "top_neurons"):
        own = run[f"coverage.{name}"].summary
        assert own["coverage_of_half"].value <= own["coverage"].value <= 1
        assert own["coverage_of_training"].value > 0
    ranked, measured = run["coverage.next_inputs-pool"], run["coverage.criteria_agreement"]
    assert ranked.summary["apfd_deep_gini"].value > ranked.summary["apfd_random"].high
    assert run["coverage.confidence"].summary["auroc_max_softmax"].value > 0.8
    assert measured.arrays["spearman_subsets"].shape == (12, 12)
