"""Metrics of detectors and distances of classes where inputs belong together: copies add no certainty."""

import numpy as np
import pytest

from weakspot.classes.metrics_bootstrap import bootstrap_distance
from weakspot.classes.metrics_groups import accuracy_gaps, group_accuracy
from weakspot.core.finding import Finding, table_of
from weakspot.core.groups import COLUMN
from weakspot.core.outputs import Outputs, ValueSpec, correct, prediction, sample_id, target
from weakspot.estimates import auroc_estimate
from weakspot.repair import compared
from weakspot.robustness.metrics_detection import MethodOutput, detection_metrics

TIMES = 6


def drawn(size=80, seed=0):
    rng = np.random.default_rng(seed)
    weak = rng.random(size) < 0.4
    return rng.normal(size=size) + weak, weak


def widths(metrics):
    return {name: float(interval.high - interval.low) for name, (_, interval) in metrics.items()}


def test_metrics_of_detectors():
    scores, weak = drawn()
    once = widths(detection_metrics(MethodOutput("together", scores, scores > 0.5), weak))
    copied, weak = np.repeat(scores, TIMES), np.repeat(weak, TIMES)
    output, films = MethodOutput("together", copied, copied > 0.5), np.repeat(np.arange(80), TIMES)
    plain, grouped = (widths(detection_metrics(output, weak, groups)) for groups in (None, films))
    for name in ("f1", "precision", "recall", "auroc"):
        assert plain[name] < 0.6 * once[name]
        assert grouped[name] == pytest.approx(once[name], rel=0.15), name
    assert np.isnan(grouped["average_precision"])


def test_areas_under_curves():
    scores, weak = drawn()
    once = auroc_estimate(scores, weak)
    grouped = auroc_estimate(np.repeat(scores, TIMES), np.repeat(weak, TIMES), groups=np.repeat(np.arange(80), TIMES))
    assert grouped.value == pytest.approx(once.value)
    assert grouped.high - grouped.low == pytest.approx(once.high - once.low, rel=0.15)


def test_differences_between_groups_of_images():
    rng = np.random.default_rng(1)
    right, sites = rng.random(120) < 0.7, rng.choice(["a", "b", "c"], 120)
    once = accuracy_gaps(group_accuracy(right, sites))
    copies, films = (np.repeat(right, TIMES), np.repeat(sites, TIMES)), np.repeat(np.arange(120), TIMES)
    plain, grouped = accuracy_gaps(group_accuracy(*copies)), accuracy_gaps(group_accuracy(*copies, films))
    assert grouped.difference == pytest.approx(once.difference) and grouped.pairs.tolist() == once.pairs.tolist()
    assert grouped.high - grouped.low == pytest.approx(once.high - once.low, rel=0.1)
    assert (plain.high - plain.low < 0.6 * (once.high - once.low)).all()


def test_distances_of_classes_draw_whole_groups():
    from scipy.sparse import csr_array

    rng = np.random.default_rng(2)
    active = rng.random((40, 64)) < np.where(np.arange(40)[:, None] % 2, 0.3, 0.5)
    members = np.eye(2, dtype=bool)[np.arange(40) % 2]

    def error(times, belongs=None):
        bits = np.packbits(np.repeat(active, times, axis=0), axis=1)
        kinds = csr_array(np.repeat(members, times, axis=0).astype(np.float32))
        return float(bootstrap_distance(bits, kinds, neurons=64, seed=0, replicates=200, belongs=belongs).error[0])

    films = np.repeat(np.arange(40), TIMES)
    assert error(TIMES) < 0.6 * error(1)
    assert error(TIMES, films) == pytest.approx(error(1), rel=0.25)


def test_two_models_are_compared_by_group():
    rng = np.random.default_rng(3)
    old, new = np.repeat(rng.random(40) < 0.5, TIMES), np.repeat(rng.random(40) < 0.6, TIMES)
    columns = {"id": sample_id(), "correct": correct(), "target": target(), "prediction": prediction()}
    named = {**columns, COLUMN: ValueSpec("what it belongs to", "text", role="group")}

    def finding(right, *, grouped):
        films = {COLUMN: np.repeat(np.arange(40), TIMES).astype(str)} if grouped else {}
        table = {"id": [f"{n:03d}" for n in range(240)], "correct": right, "target": right, "prediction": right}
        outputs = Outputs(columns=named if grouped else columns)
        return Finding("repair.predictions", table=table_of({**table, **films}), outputs=outputs)

    plain, grouped = (
        compared(finding(old, grouped=given), finding(new, grouped=given)).summary for given in (False, True)
    )
    assert grouped["difference"].value == plain["difference"].value
    width = grouped["difference"].high - grouped["difference"].low
    assert width > 2 * (plain["difference"].high - plain["difference"].low)
    assert grouped["p_value"].value is None and plain["p_value"].value is not None
