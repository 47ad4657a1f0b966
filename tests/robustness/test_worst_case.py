"""The worst case: against stored predictions, early stopping, and a plain count."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.gate.samples import judged, make_run
from tests.robustness.conftest import NETS
from weakspot import examine
from weakspot.compare import compare_findings
from weakspot.core.errors import ConfigError
from weakspot.core.source import limited
from weakspot.data import digits
from weakspot.looks import Rotate, Shift
from weakspot.robustness import ClassRobustness, NeighbourAccuracy
from weakspot.robustness.worst_case import correct_in_a_row, worst_case_curve
from weakspot.statistics import wilson_interval

OPTIONS = {"variation": Rotate(20) & Shift(1), "looks": 12, "seed": 3}


@pytest.fixture(scope="module")
def source():
    return limited(digits.test(), 60)


@pytest.fixture(scope="module")
def all_looks(subject, source):
    return examine(subject, source, [NeighbourAccuracy(**OPTIONS, early_stopping="never")])[0]


def test_without_early_stopping_all_looks_must_be_correct(all_looks):
    table, summary = all_looks.table.to_pydict(), all_looks.summary
    assert table["correct_in_all"] == [share == 1 for share in table["neighbour_accuracy"]]
    assert summary["worst_of"].value == 13
    assert 0 < summary["worst_case_accuracy"].value < summary["neighbour_accuracy"].value
    low, high = wilson_interval(sum(table["correct_in_all"]), 60)
    assert (summary["worst_case_accuracy"].low, summary["worst_case_accuracy"].high) == (low, high)


@pytest.mark.parametrize("early_stopping", ["certain", "predictive", "wald"])
def test_early_stopping_cuts_the_curve_and_changes_no_point_of_it(subject, source, all_looks, early_stopping):
    probe = NeighbourAccuracy(**OPTIONS, early_stopping=early_stopping)
    stopped = examine(subject, source, [probe])[0]
    known = int(stopped.summary["worst_of"].value)
    assert 1 < known < 13
    for name in ("worst_case", "worst_case_low", "worst_case_high"):
        assert np.array_equal(stopped.arrays[name], all_looks.arrays[name][:known])
    assert stopped.summary["worst_case_accuracy"].value == all_looks.arrays["worst_case"][known - 1]


def test_the_number_of_looks_is_an_option(subject, source, all_looks):
    probe = NeighbourAccuracy(**OPTIONS, worst_of=5)
    finding = examine(subject, source, [probe])[0]
    assert finding.summary["worst_case_accuracy"].value == all_looks.arrays["worst_case"][4]
    for refused in (0, 11):
        with pytest.raises(ConfigError, match=f"worst_of is {refused}: expected 1 to 10.*'never' takes all looks"):
            NeighbourAccuracy(**OPTIONS, worst_of=refused)


def test_the_worst_case_of_each_class_adds_up_to_that_of_all(subject, source, all_looks):
    finding = examine(subject, source, [ClassRobustness(**OPTIONS)])[0]
    table = finding.table.to_pydict()
    correct = np.dot(table["worst_case_accuracy"], table["inputs"])
    assert correct == pytest.approx(all_looks.summary["worst_case_accuracy"].value * 60)
    lowest = int(np.argmin(table["worst_case_accuracy"]))
    assert finding.summary["worst_case_class"].value == table["class"][lowest]
    assert finding.summary["worst_case_accuracy"].low == table["worst_case_low"][lowest]


def test_two_models_are_compared_by_it_input_by_input(subject, source, all_looks):
    model = nn.Sequential(subject.model, nn.Linear(10, 10))
    with torch.no_grad():  # always the same class
        model[1].bias.copy_(1000.0 * (torch.arange(10) == 1))
    other = examine(subject.with_model(model), source, [NeighbourAccuracy(**OPTIONS, early_stopping="never")])[0]
    found = {one.name: one for one in compare_findings(all_looks, other)}["correct_in_all"]
    assert found.before == all_looks.summary["worst_case_accuracy"].value
    assert found.after == other.summary["worst_case_accuracy"].value != found.before
    assert found.how == "paired over 60 inputs" and found.higher_is_better


def test_the_gate_judges_it_by_the_end_of_its_interval(tmp_path, all_looks):
    made = all_looks.provenance
    run = make_run(tmp_path / "run", all_looks, fingerprint=made["subject"], data=made["data"])
    low = all_looks.summary["worst_case_accuracy"].low
    rule = "finding: robustness.neighbour_accuracy, number: worst_case_accuracy, at_least:"
    assert judged(tmp_path, run, f"{rule} {low - 0.001}").passed
    assert not judged(tmp_path, run, f"{rule} {low + 0.001}").passed


def test_stored_predictions_give_what_was_measured(stored, svhn_labels):
    """ResNet-32 on SVHN: 95.7 % of the images, 84.9 % of neighbours, 47.4 % in all of 11 looks, 25.8 % in all of 51."""
    correct = stored(NETS[0])[1] == svhn_labels[1][:, None]
    curve = worst_case_curve(correct_in_a_row(correct), 51)
    assert NETS[0] == "ResN-svhn" and curve["worst_case_looks"][10] == 11
    assert (curve["worst_case"][[0, 10, 50]] * 100).round(1).tolist() == [95.7, 47.4, 25.8]
    assert round(100 * correct[:, 1:].mean(), 1) == 84.9
    assert curve["worst_case"].tolist() == [correct[:, :k].all(1).mean() for k in range(1, 52)]
