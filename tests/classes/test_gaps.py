"""Gaps of groups: against a plain count, a planted intersection, and how often chance looks like a gap."""

import numpy as np
import pytest

from weakspot import ExecutionOptions, Subject, examine
from weakspot.classes import GroupGaps
from weakspot.classes.group_probes import GroupFairness
from weakspot.classes.metrics_gaps import MEASURES, group_gaps, intersections
from weakspot.classes.outputs import ROOM
from weakspot.classes.room import steps
from weakspot.core.errors import ConfigError
from weakspot.data.sources import ArraySource
from weakspot.formatting import points
from weakspot.slices import Trait
from weakspot.statistics import difference_interval

QUICK = ExecutionOptions(batch_size=64, shard_size=512, workers=0)


def plain_rates(inside, predicted, target, label):
    """Accuracy, true positive rate and false positive rate of one side, by a loop over the inputs."""
    counts = {name: [0, 0] for name in MEASURES}
    for here, said, true in zip(inside, predicted, target, strict=True):
        if here:
            counts["accuracy"][0] += said == true
            counts["accuracy"][1] += 1
            kind = "true positive rate" if true == label else "false positive rate"
            counts[kind][0] += said == label
            counts[kind][1] += 1
    return counts


def drawn(rng, inputs=300, classes=3):
    target = rng.integers(0, classes, inputs)
    predicted = np.where(rng.random(inputs) < 0.2, rng.integers(0, classes, inputs), target)
    return predicted, target


def test_gaps_are_those_of_a_plain_count():
    rng = np.random.default_rng(0)
    predicted, target = drawn(rng)
    members = rng.random((4, 300)) < 0.4
    gaps = group_gaps(members, predicted, target, 3, least=5)
    assert len(gaps.group) == 4 * 7
    for row in range(len(gaps.group)):
        inside, name = members[gaps.group[row]], MEASURES[gaps.measure[row]]
        own, other = (plain_rates(side, predicted, target, gaps.label[row])[name] for side in (inside, ~inside))
        assert (gaps.hits[row], gaps.trials[row]) == tuple(own)
        assert (gaps.other_hits[row], gaps.other_trials[row]) == tuple(other)
        worse = own[0] / own[1] - other[0] / other[1]
        worse = worse if name == "false positive rate" else -worse
        assert gaps.difference[row] == pytest.approx(worse)
        assert gaps.low[row] < worse < gaps.high[row]


def test_the_intervals_know_of_all_looks():
    rng = np.random.default_rng(1)
    predicted, target = drawn(rng)
    gaps = group_gaps(rng.random((5, 300)) < 0.5, predicted, target, 3, least=5)
    row = int(np.flatnonzero(gaps.measure == 2)[0])
    pair = gaps.hits[row], gaps.trials[row], gaps.other_hits[row], gaps.other_trials[row]
    low, high = difference_interval(*pair, confidence=1 - 0.05 / 35)
    assert (gaps.low[row], gaps.high[row]) == pytest.approx((float(low), float(high)))


def test_frames_of_a_film_do_not_count_as_many():
    """Every input five times: with the films known, the intervals are about those of one frame each, not narrower."""
    rng = np.random.default_rng(5)
    predicted, target = drawn(rng, 200)
    members = (np.arange(200) % 2 == 0)[None]
    frames = [np.repeat(values, 5, axis=-1) for values in (members, predicted, target)]
    once = group_gaps(members, predicted, target, 3, least=5)
    blind = group_gaps(*frames, 3, least=5)
    known = group_gaps(*frames, 3, least=5, belongs=np.repeat(np.arange(200), 5))
    width, of_blind, of_known = (gaps.high - gaps.low for gaps in (once, blind, known))
    assert (of_blind < 0.6 * width).all()
    assert (of_known > 0.95 * width).all()
    np.testing.assert_allclose(known.difference, once.difference)


def test_chance_is_called_a_gap_as_rarely_as_promised():
    """300 data sets in which groups mean nothing: at most 5 % may show any gap, with 3 standard errors to spare."""
    rng = np.random.default_rng(2)
    shown = 0
    for _ in range(300):
        predicted, target = drawn(rng, 400)
        columns = [Trait(name, rng.choice(["a", "b", "c"], 400)) for name in ("one", "two")]
        groups = intersections(columns, depth=2, least=20)
        gaps = group_gaps(groups.members, predicted, target, 3, least=20)
        shown += bool(((gaps.low > 0) | (gaps.high < 0)).any())
    assert shown <= 300 * 0.05 + 3 * np.sqrt(300 * 0.05 * 0.95)


def test_groups_by_columns_alone_and_together():
    sex, age = Trait("sex", np.repeat(["f", "m"], 60)), Trait("age", np.tile(np.arange(60.0), 2))
    groups = intersections([sex, age], depth=2, least=10)
    assert len(groups.rules) == 2 + 3 + 6
    assert groups.members[:2].sum(1).tolist() == [60, 60]
    assert groups.members[2:5].sum(0).tolist() == [1] * 120
    assert groups.rules[-1].text.startswith("sex = m and age ≥")
    assert intersections([sex, age], depth=2, least=30).members.sum(1).min() >= 30


@pytest.fixture(scope="module")
def planted():
    """1,200 inputs that a model answers by what they hold; of those both dark and wet a third is labelled otherwise."""
    rng = np.random.default_rng(3)
    inputs = np.zeros((1200, 3), dtype=np.float32)
    said = rng.integers(0, 3, 1200)
    inputs[np.arange(1200), said] = 1
    light, road = rng.choice(["dark", "light"], 1200), rng.choice(["wet", "dry"], 1200)
    wrong = rng.random(1200) < np.where((light == "dark") & (road == "wet"), 0.4, 0.05)
    source = ArraySource(inputs, np.where(wrong, (said + 1) % 3, said), metadata={"light": light, "road": road})
    return Subject(lambda batch: batch, classes=("a", "b", "c"), scores="logits"), source


def test_a_planted_intersection_is_the_worst_group(planted):
    finding = examine(*planted, [GroupGaps()], execution=QUICK)[0]
    assert finding.summary["worst_group"].value == "light = dark and road = wet"
    assert finding.summary["worst_group_accuracy"].value == pytest.approx(0.6, abs=0.08)
    rows = [row for row in finding.table.to_pylist() if row["measure"] == "accuracy"]
    assert rows[0]["group"] == "light = dark and road = wet"
    assert rows[0]["sure"] and rows[0]["low"] > 0.2
    assert finding.summary["looks"].value == 8 * 7
    assert finding.outputs.problems(finding) == []


def test_the_report_names_it_among_the_worst(planted):
    finding = examine(*planted, [GroupGaps()], execution=QUICK)[0]
    (worst,) = ROOM.worst([finding], "classification")
    assert worst.title == "Accuracy is worse where light = dark and road = wet"
    row = finding.table.to_pylist()[0]
    ends = " to ".join(points(row[end]) for end in ("low", "high"))
    assert worst.text.endswith(f": a gap of {ends} percentage points (simultaneous interval).")
    assert 0 < worst.share < 0.2


def test_the_order_of_the_columns_asked_for_counts(planted):
    finding = examine(*planted, [GroupGaps(columns=("road",), depth=1)], execution=QUICK)[0]
    assert {row["group"] for row in finding.table.to_pylist()} == {"road = wet", "road = dry"}


def test_a_column_that_is_not_there_is_refused(planted):
    with pytest.raises(ConfigError, match="no column 'sex'; there is 'light', 'road'"):
        examine(*planted, [GroupGaps(columns=("sex",))], execution=QUICK)


def test_too_few_of_each_group_leave_nothing_to_say(planted):
    finding = examine(*planted, [GroupGaps(least=700)], execution=QUICK)[0]
    assert finding.summary["groups"].value == 0
    assert finding.table is None


def test_the_room_tells_one_column_from_several():
    assert [step.probe for step in steps({"by": "outputs", "groups": ["sex", "age"]})][1] is GroupGaps
    assert steps({"by": "outputs", "groups": {"columns": ["sex"], "least": 5}})[1].options["least"] == 5
    assert [step.probe for step in steps({"groups": "sex"})][1] is GroupFairness
    for wrong in (7, ["sex", 3], {"rows": 1}):
        with pytest.raises(ConfigError):
            steps({"by": "outputs", "groups": wrong})


@pytest.mark.parametrize(
    ("option", "message"), [({"depth": 0}, "depth is 0"), ({"confidence": 95.0}, "between 0 and 1")]
)
def test_options_are_checked_before_the_pass(option, message):
    with pytest.raises(ConfigError, match=message):
        GroupGaps(**option)
