"""A Finding over samples that belong together: which intervals it has, and what it says of the groups."""

import numpy as np
import pytest
from torch import nn

from tests.core.helpers import numbered
from weakspot import Estimate, Probe, Rows
from weakspot.compare import compare_findings
from weakspot.core.driver import examine
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.groups import sample_groups
from weakspot.core.outputs import Outputs, number, sample_id, share
from weakspot.core.subject import Subject
from weakspot.data.sources import Grouped
from weakspot.estimates import share_of
from weakspot.robustness.detector_network import DetectorTraining, _folds
from weakspot.statistics.clustered import grouped_mean_interval, grouped_paired_interval, grouped_share_interval


class Marks(Probe):
    """Marks every third sample, and says how many there are in four ways."""

    outputs = Outputs(
        summary={
            "marked": share("marked", mean_of="mark"),
            "others": share("not marked", mean_of="not mark"),
            "mean": number("mean of the places", mean_of="place"),
            "loose": share("marked, by no column"),
            "own": share("marked, with an interval of its own"),
        },
        columns={"id": sample_id(), "mark": share("marked", optional=True), "place": number("its place")},
    )
    by_group = ("own",)
    samples = Rows()

    def observe(self, seen):
        self.samples.append(seen.ids, place=seen.batch.positions.astype(float))

    def finish(self):
        rows = self.samples.read()
        mark = rows["place"] % 3 == 0
        summary = {"marked": share_of(mark), "others": share_of(~mark), "loose": share_of(mark, "by no column")}
        mean = Estimate(float(rows["place"].mean()), 0.0, 1.0, 0.9)
        own = {"own": share_of(mark, groups=self.setting.groups_of(rows.ids))}
        return self.finding(
            summary={**summary, "mean": mean, **own}, table={"id": rows.ids, "mark": mark, "place": rows["place"]}
        )


NAMES = np.array([f"film {place // 4}" for place in range(24)])


def marks(source):
    how = ExecutionOptions(batch_size=5, shard_size=10, workers=0)
    [finding] = examine(Subject(nn.Flatten()), source, [Marks()], execution=how)
    return finding


@pytest.fixture
def grouped():
    return marks(Grouped(numbered(24), NAMES))


def test_means_of_columns_go_by_group(grouped):
    mark, place = np.arange(24) % 3 == 0, np.arange(24.0)
    for name, expected in (
        ("marked", grouped_share_interval(mark, NAMES)),
        ("others", grouped_share_interval(~mark, NAMES)),
        ("own", grouped_share_interval(mark, NAMES)),
        ("mean", grouped_mean_interval(place, NAMES, confidence=0.9)),
    ):
        one = grouped.summary[name]
        assert (one.low, one.high) == pytest.approx(tuple(map(float, expected))), name
    assert grouped.summary["mean"].confidence == 0.9


def test_other_intervals_are_left_out_and_said(grouped):
    loose = grouped.summary["loose"]
    assert (loose.low, loose.high, loose.confidence) == (None, None, None)
    assert loose.about == "by no column; no interval: it would take samples that belong together for independent"


def test_the_finding_says_how_many_groups_and_which(grouped):
    assert grouped.summary["sample_groups"].value == 6
    assert grouped.provenance["groups"] == {"column": "group", "groups": 6}
    assert sample_groups(grouped) == dict(zip(numbered(24).ids, NAMES.tolist(), strict=True))


def test_without_groups_nothing_is_added():
    plain = marks(numbered(24))
    assert plain.summary.keys() == Marks.outputs.summary.keys()
    assert plain.table.column_names == ["id", "mark", "place"]
    assert "groups" not in plain.provenance and plain.outputs == Marks.outputs
    assert plain.summary["marked"] == share_of(np.arange(24) % 3 == 0, "marked")


def test_runs_are_compared_by_group(grouped):
    by_name = {one.name: one for one in compare_findings(grouped, grouped)}
    assert by_name["mark"].how == "paired over 24 inputs of 6 groups"
    mark = np.arange(24) % 3 == 0
    expected = grouped_paired_interval(mark, mark, NAMES)
    assert (by_name["mark"].low, by_name["mark"].high) == pytest.approx(tuple(map(float, expected)))


def test_folds_part_no_group():
    training = DetectorTraining(hidden=(4,), epochs=1, folds=3, weak_emphasis=0, seed=1, device="cpu")
    folds = _folds(24, training, NAMES)
    assert all(len(set(folds[name == NAMES])) == 1 for name in NAMES)
    assert set(folds) == {0, 1, 2}
