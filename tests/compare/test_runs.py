"""Two Runs: paired by input, intervals re-derived, and no difference claimed that is not shown."""

import json

import numpy as np
import pytest
from scipy.stats import ttest_rel

from tests.gate.samples import coverage, make_run, neighbours
from weakspot.cli.verdict_commands import compare
from weakspot.compare import NO_DIFFERENCE, compare_findings, compare_runs, paired_mean_interval
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.outputs import Outputs, ValueSpec, correct, interval_end, number, sample_id, share
from weakspot.statistics.paired import paired_difference_interval

OUTPUTS = Outputs(
    summary={
        "accuracy": share("correct as they are", better="higher"),
        "weak_share": share("weak", better="lower"),
        "surprise": number("neither way is better"),
    },
    columns={
        "id": sample_id(),
        "correct": correct(),
        "accuracy": share("of an input's variations", better="higher"),
        "score": number("some score"),
        "x": ValueSpec("where it lies", role="coordinate"),
        "low": interval_end("of the score"),
        "score_high": interval_end("of the score"),
    },
)


def table(name="robustness.x", **columns):
    return Finding(name, table=table_of({key: np.asarray(column) for key, column in columns.items()}), outputs=OUTPUTS)


def differences(before, after, **options):
    return {one.name: one for one in compare_findings(before, after, **options)}


def test_the_interval_of_a_mean_is_students():
    draw = np.random.default_rng(0)
    before, after = draw.random(30), draw.random(30)
    expected = ttest_rel(after, before).confidence_interval(0.9)
    low, high = paired_mean_interval(before, after, confidence=0.9)
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high))
    with pytest.raises(DataError, match="expected two columns of two numbers and more"):
        paired_mean_interval([1.0], [2.0])


def test_inputs_are_paired_by_id_whatever_their_order():
    draw = np.random.default_rng(1)
    ids = np.array([f"s{i}" for i in range(40)])
    old, new, order = draw.random(40) < 0.3, draw.random(40) < 0.9, draw.permutation(40)
    found = differences(table(id=ids, correct=old), table(id=ids[order], correct=new[order]))["correct"]
    assert (found.low, found.high) == pytest.approx(tuple(map(float, paired_difference_interval(old, new))))
    assert (found.before, found.after) == pytest.approx((old.mean(), new.mean()))
    assert found.how == "paired over 40 inputs" and found.verdict == "better"


def test_only_inputs_that_both_have_are_paired():
    before = table(id=["a", "b", "c", "d"], score=[1.0, 2.0, 3.0, np.nan])
    after = table(id=["d", "c", "b", "e"], score=[9.0, 4.0, 3.0, 9.0])
    found = differences(before, after)["score"]
    assert (found.before, found.after, found.how) == (2.5, 3.5, "paired over 2 inputs")


def test_which_columns_are_compared():
    columns = {
        "id": ["a", "b", "c"], "correct": [True, False, True], "score": [0.1, 0.2, 0.3], "low": [0.0, 0.1, 0.2],
        "score_high": [1.0, 1.0, 1.0], "x": [1.8e-17, 2.0, 3.0], "prediction": [1, 2, 3], "kind": ["x", "y", "z"],
        "metadata.light": [0.5, 0.6, 0.7],
    }  # fmt: skip
    assert list(differences(table(**columns), table(**columns))) == ["correct", "score"]
    twice = {"id": ["a", "a", "b"], "score": [1.0, 2.0, 3.0]}
    assert differences(table(**twice), table(**twice)) == {}, "rows that are no inputs are not paired"
    assert differences(table(id=["a", "b"], score=[1.0, 2.0]), table(id=["c", "d"], score=[1.0, 2.0])) == {}


@pytest.mark.parametrize(
    ("name", "ends", "verdict"),
    [
        ("accuracy", (0.8, 0.9), "better"),
        ("accuracy", (0.1, 0.2), "worse"),
        ("weak_share", (0.8, 0.9), "worse"),
        ("weak_share", (0.1, 0.2), "better"),
        ("surprise", (0.8, 0.9), "higher"),
        ("surprise", (0.1, 0.2), "lower"),
        ("accuracy", (0.55, 0.9), NO_DIFFERENCE),  # the intervals touch
    ],
)
def test_unpaired_numbers_differ_where_their_intervals_are_apart(name, ends, verdict):
    before = Finding("a.b", summary={name: Estimate(0.5, 0.4, 0.6, 0.95)}, outputs=OUTPUTS)
    after = Finding("a.b", summary={name: Estimate(sum(ends) / 2, *ends, 0.95)}, outputs=OUTPUTS)
    (found,) = compare_findings(before, after)
    assert found.verdict == verdict
    assert (found.low, found.high) == pytest.approx((ends[0] - 0.6, ends[1] - 0.4))


def test_numbers_without_intervals_show_nothing():
    before, after = (
        Finding("a.b", summary={"n": Estimate(n), "t": Estimate("x"), "e": Estimate(None)}) for n in (3, 4)
    )
    (found,) = compare_findings(before, after)
    assert found.verdict == "no interval, so nothing is shown" and found.difference == 1
    (same,) = compare_findings(before, before)
    assert same.verdict == NO_DIFFERENCE


def test_a_share_whose_column_is_paired_is_not_compared_again():
    names = [one.name for one in compare_findings(neighbours(), neighbours())]
    assert "weak" in names and "weak_share" not in names


def test_a_quantity_that_stands_in_several_findings_is_judged_once(tmp_path):
    """Which inputs are correct stands in the table of several; where the inputs differ it is another quantity."""
    ids, right = np.array(["a", "b", "c", "d"]), np.array([True, False, True, True])

    def run(folder, correct_now):
        columns = {"id": sample_id(), "correct": correct(), "x": number("x")}
        values = {"id": ids, "correct": correct_now, "x": correct_now * 1.0}
        made = [
            Finding(name, table=table_of(values).slice(0, rows), outputs=Outputs(columns=columns))
            for name, rows in (("causes.one", 4), ("coverage.two", 4), ("coverage.three", 3))
        ]
        return make_run(tmp_path / folder, *made)

    before, after = run("before", right), run("after", ~right)
    told = [(one.finding, one.name) for one in compare_runs(before, after).differences]
    assert told == [
        ("causes.one", "correct"), ("causes.one", "x"), ("coverage.two", "x"),
        ("coverage.three", "correct"), ("coverage.three", "x"),
    ]  # fmt: skip


def test_a_column_and_a_number_of_one_name_are_told_apart():
    """The accuracy of neighbours rises, that of the inputs as they are does not."""
    ids, old = [f"s{i}" for i in range(20)], np.linspace(0.2, 0.6, 20)
    before, after = (
        Finding("robustness.x", summary={"accuracy": Estimate(0.9, 0.8, 1.0, 0.95)},
                table=table_of({"id": np.array(ids), "accuracy": shares}), outputs=OUTPUTS)
        for shares in (old, old + 0.3)
    )  # fmt: skip
    found = differences(before, after)
    assert list(found) == ["accuracy per input", "accuracy"]
    assert [one.verdict for one in found.values()] == ["better", NO_DIFFERENCE]
    assert [one.column for one in found.values()] == ["accuracy", None]
    assert list(differences(table(id=ids, accuracy=old), before)) == ["accuracy"], "one alone keeps its name"


def test_false_alarms_are_as_rare_as_promised():
    """Two models of equal accuracy, 400 times: a difference is shown in about one of twenty."""
    draw, shown = np.random.default_rng(2), 0
    ids = np.array([f"s{i}" for i in range(200)])
    for _ in range(400):
        before, after = (table(id=ids, correct=draw.random(200) < 0.8) for _ in range(2))
        shown += differences(before, after)["correct"].verdict != NO_DIFFERENCE
    assert 6 <= shown <= 34


def test_runs_say_what_to_know_of_them(tmp_path):
    before = make_run(tmp_path / "before", neighbours(), coverage())
    other = neighbours().with_provenance(data="d" * 64, parameters={"cutoff": 0.5, "looks": 20})
    found = compare_runs(before, make_run(tmp_path / "after", other))
    assert found.notes[0] == "both Runs are of the same model"
    assert found.notes[1].startswith("not of the same data: robustness.neighbours;")
    assert found.notes[2] == "not computed with the same settings: robustness.neighbours"
    assert "about 0.1 would be shown by chance" in found.notes[3]
    assert found.shown() == [] and {one.finding for one in found.differences} == {"robustness.neighbours"}


def test_only_what_was_asked_for_is_compared(tmp_path):
    run = make_run(tmp_path / "run", neighbours(), coverage())
    noted = run.manifest()
    run.describe(subject=noted["subject"], data=noted["data"], asked=["coverage.neurons"])
    assert {one.finding for one in compare_runs(run, run).differences} == {"coverage.neurons"}


def test_runs_with_nothing_in_common_are_refused(tmp_path):
    one, other = make_run(tmp_path / "one", neighbours()), make_run(tmp_path / "other", coverage())
    with pytest.raises(DataError, match="have no Finding in common: ask the same questions of both models"):
        compare_runs(one, other)


def test_the_command_prints_the_verdict_and_says_when_there_is_none(tmp_path, capsys):
    fifty = np.arange(50)
    before = make_run(tmp_path / "before", neighbours(weak=fifty < 25)).folder
    after = make_run(tmp_path / "after", neighbours(weak=fifty < 5)).folder
    compare(before, after)
    told = capsys.readouterr().out
    assert (
        "better" in told
        and "paired" not in told
        and "of 2 numbers with an interval, 2 differ; all 3 numbers: --all" in told
    )
    compare(before, after, every=True)
    assert "paired over 50 inputs" in capsys.readouterr().out
    compare(before, before)
    assert "no difference shown" in capsys.readouterr().out.splitlines()[-1]
    compare(before, after, as_json=True)
    entry = json.loads(capsys.readouterr().out)["differences"][0]
    assert entry["name"] == "weak" and entry["verdict"] == "better" and entry["low"] < entry["high"] < 0
    with pytest.raises(ConfigError, match="--confidence is 95"):
        compare(before, after, confidence=95)


def test_flips_go_by_group_where_inputs_belong_together():
    from weakspot.compare.flips import flips_of
    from weakspot.core.groups import COLUMN

    draw = np.random.default_rng(4)
    was, now = (np.repeat(draw.random(30) < share, 10) for share in (0.5, 0.8))
    site, film = np.repeat(["a", "b"], 150), np.repeat(np.arange(30), 10).astype(str)
    columns = {"id": sample_id(), "correct": correct(), "metadata.site": ValueSpec("a site", "text", role="metadata")}
    widths = []
    for grouped in (False, True):
        outputs = Outputs(
            columns={**columns, COLUMN: ValueSpec("a film", "text", role="group")} if grouped else columns
        )
        ids = [f"{n:03d}" for n in range(300)]
        rows = {"id": ids, "metadata.site": site, **({COLUMN: film} if grouped else {})}
        before, after = (
            Finding("x.y", table=table_of({**rows, "correct": right}), outputs=outputs) for right in (was, now)
        )
        widths.append([one.high - one.low for one in flips_of(before, after).groups if one.by == "site"])
    assert len(widths[0]) == 2 and all(wide > 2 * narrow for narrow, wide in zip(*widths, strict=True))
