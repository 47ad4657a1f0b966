"""Rules against Runs: intervals decide, unknown names are errors, and causes are compared image by image."""

from dataclasses import replace

import numpy as np
import pytest

from tests.gate.samples import PROVENANCE, causes, coverage, judged, make_run, neighbours, pairs
from weakspot.core.errors import ConfigError, RunError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.outputs import Outputs, share
from weakspot.gate.evaluation import NO_VERDICT


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", neighbours(), pairs(), coverage(), causes([["s1", "s2", "s3"], ["s4", "s5"]]))


WEAK = "finding: robustness.neighbours, number: weak_share"


@pytest.mark.parametrize(
    ("condition", "passed"),
    [
        ("at_most: 0.15", True),  # the upper end is 0.14
        ("at_most: 0.14", True),
        ("at_most: 0.13", False),  # the value is 0.12, and its interval reaches further
        ("at_least: 0.10", True),
        ("at_least: 0.11", False),
        ("at_least: 0.1, at_most: 0.14", True),
        ("at_least: 0.1, at_most: 0.13", False),
        ("at_most: 0.15, confidence: 0.95", True),
        ("at_most: 0.15, confidence: 0.9", True),
        ("at_most: 0.15, confidence: 0.99", False),  # the interval has no more than 95 %
        ("equals: 0.12", True),
        ("equals: 0.1", False),
        ("exists: true", True),
    ],
)
def test_the_end_of_the_interval_decides_not_the_value(tmp_path, run, condition, passed):
    verdict = judged(tmp_path, run, f"{WEAK}, {condition}")
    assert verdict.passed is passed
    assert verdict.judged[0].measured.startswith("0.12 (0.1 to 0.14)")


def test_a_confidence_that_cannot_be_shown_is_not_shown(tmp_path, run):
    verdict = judged(tmp_path, run, "finding: robustness.neighbours, number: fragile, at_most: 5, confidence: 0.95")
    assert not verdict.passed and "without an interval" in verdict.judged[0].measured
    assert judged(tmp_path, run, "finding: robustness.neighbours, number: fragile, at_most: 5").passed


def test_a_number_without_a_value_keeps_to_nothing(tmp_path, run):
    for condition in ("at_most: 5", "exists: true", "equals: 0"):
        verdict = judged(tmp_path, run, f"finding: robustness.neighbours, number: nothing, {condition}")
        assert not verdict.passed and verdict.judged[0].measured == "it has no value"


def test_what_must_exist_and_does_not_fails(tmp_path, run):
    for missing in ("finding: robustness.neighbours, number: gone", "finding: robustness.gone, number: weak_share"):
        assert not judged(tmp_path, run, f"{missing}, exists: true").passed


def test_text_is_compared_and_not_bounded(tmp_path, run):
    weakest = "finding: robustness.neighbours, number: weakest_class"
    assert judged(tmp_path, run, f"{weakest}, equals: cat").passed
    assert not judged(tmp_path, run, f"{weakest}, equals: dog").passed
    with pytest.raises(ConfigError, match=r"policy.yaml:2: weakest_class is 'cat', which is not a number: use equals"):
        judged(tmp_path, run, f"{weakest}, at_most: 1")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("finding: robustness.neighbour, number: a, at_most: 1", "has no Finding 'robustness.neighbour': did you mean"),
        (
            "finding: robustness.neighbours, number: weak_shar, at_most: 1",
            "has no number 'weak_shar': did you mean 'weak_share'",
        ),
        ("finding: classes.pairs, column: average_bia, at_most: 1", "has no column 'average_bia': did you mean"),
        ("finding: classes.pairs, column: average_bias, at_most: 1, where: {confusd: true}", "did you mean 'confused'"),
        ("finding: classes.pairs, column: first, at_most: 1", "first holds 'cat', which is not a number: use equals"),
        ("finding: causes.root_causes, new_causes: 0", "compares with a baseline, but there is none"),
    ],
)
def test_names_that_are_not_there_are_errors_with_their_line(tmp_path, run, rule, said):
    with pytest.raises(ConfigError) as caught:
        judged(tmp_path, run, f"{WEAK}, at_most: 1", rule)
    assert str(caught.value).startswith(f"{tmp_path}/policy.yaml:3: ")
    assert said in str(caught.value)


def test_every_row_must_hold_and_rows_without_a_value_do_not(tmp_path, run):
    bias = "finding: classes.pairs, column: average_bias, at_most: {}"
    verdict = judged(tmp_path, run, bias.format(0.2), bias.format(0.5), bias.format(0.5) + ", where: {confused: true}")
    assert [one.passed for one in verdict.judged] == [False, False, True]
    first, second, third = (one.measured for one in verdict.judged)
    assert (
        first == "2 of 3 rows do not hold: first <script>, second a|b, average_bias 0.3; "
        "first cow, second hen, average_bias nan"
    )
    assert second == "1 of 3 rows do not hold: first cow, second hen, average_bias nan"
    assert third == "all 2 rows hold"


def test_a_column_may_have_to_equal_something(tmp_path, run):
    assert not judged(tmp_path, run, "finding: classes.pairs, column: confused, equals: false").passed
    assert judged(tmp_path, run, "finding: classes.pairs, column: confused, equals: false, where: {first: cow}").passed


def test_coverage_passes_with_a_warning(tmp_path, run):
    verdict = judged(tmp_path, run, "finding: coverage.neurons, number: coverage, at_least: 0.5", f"{WEAK}, at_most: 1")
    assert [one.warnings for one in verdict.judged] == [(NO_VERDICT,), ()]


def test_a_finding_of_another_model_keeps_to_nothing(tmp_path):
    run = make_run(tmp_path / "run", neighbours(), fingerprint="c" * 64)
    verdict = judged(tmp_path, run, f"{WEAK}, at_most: 1")
    assert not verdict.passed and "a model other than the Run's" in verdict.judged[0].measured
    other = make_run(tmp_path / "other", neighbours().with_provenance(data="d" * 64))
    verdict = judged(tmp_path, other, f"{WEAK}, at_most: 1")
    assert not verdict.passed and "data other than the Run's" in verdict.judged[0].measured


def test_a_changed_finding_is_no_evidence(tmp_path, run):
    folder = run.finding_folder("robustness.neighbours")
    (folder / "table.parquet").write_bytes(b"")
    with pytest.raises(RunError, match="was changed after it was written"):
        judged(tmp_path, run, f"{WEAK}, at_most: 1")
    neighbours(value=0.01, low=0.0, high=0.02).save(folder)
    with pytest.raises(RunError, match="is not the Finding that the manifest names"):
        judged(tmp_path, run, f"{WEAK}, at_most: 1")


NEW = "finding: causes.root_causes, new_causes: {}"


@pytest.mark.parametrize(
    ("before", "new", "perhaps"),
    [
        ([["s1", "s2", "s3", "s4", "s5"]], 0, 0),  # merged in the baseline, the same images
        ([["s1", "s2"], ["s4"]], 0, 0),  # two of three, one of two: half and more are known
        ([["s1"], ["s4", "s5"]], 0, 1),  # one of three is known, which shows nothing
        ([["t1", "t2"]], 0, 2),
    ],
)
def test_small_clusters_show_no_new_cause(tmp_path, run, before, new, perhaps):
    baseline = make_run(tmp_path / "before", causes(before))
    verdict = judged(tmp_path, run, NEW.format(0), baseline=baseline)
    assert verdict.passed is (new == 0)
    told = verdict.judged[0].measured
    assert told.count("cluster") == new + perhaps and ("too small to tell" in told) is bool(perhaps)


def test_a_cause_is_new_if_most_of_its_images_were_surely_right_before(tmp_path):
    known, new = [f"k{number}" for number in range(12)], [f"n{number}" for number in range(12)]
    after = make_run(tmp_path / "after", causes([known, new]))
    baseline = make_run(tmp_path / "before", causes([known, new[:2], ["x"] * 1]))
    for allowed in (0, 1):
        verdict = judged(tmp_path, after, NEW.format(allowed), baseline=baseline)
        assert verdict.passed is bool(allowed) and verdict.judged[0].measured == "new: cluster 2"
    assert judged(tmp_path, after, NEW.format(0) + ", overlap: 0.15", baseline=baseline).passed


def test_a_model_with_fewer_errors_everywhere_has_no_new_cause(tmp_path):
    """Two trainings of equal models: errors differ by chance, and clusters of what is left are not new."""
    random = np.random.default_rng(0)
    names = np.array([f"s{number}" for number in range(400)])
    hard = random.random(400) < 0.3
    failed = 0
    for _ in range(40):
        old, new = (names[hard & (random.random(400) < share)] for share in (0.9, 0.7))
        parts = [part.tolist() for part in np.array_split(random.permutation(new), 8)]
        folder = tmp_path / str(_)
        after, before = make_run(folder / "after", causes(parts)), make_run(folder / "before", causes([old.tolist()]))
        failed += not judged(folder, after, NEW.format(0), baseline=before).passed
    assert failed <= 2


def test_the_verdict_in_a_sentence(tmp_path, run):
    from weakspot.gate.output import as_sentence, open_points

    held, broken, unknown = f"{WEAK}, at_most: 1", f"{WEAK}, at_most: 0.01", f"{WEAK}, at_most: 1, confidence: 0.999"
    assert as_sentence(judged(tmp_path, run, held)) == "Release: the one rule of policy.yaml holds."
    assert as_sentence(judged(tmp_path, run, held, held)) == "Release: all 2 rules of policy.yaml hold."
    verdict = judged(tmp_path, run, held, broken, unknown)
    assert as_sentence(verdict) == "Do not release: 1 of 3 rules of policy.yaml does not hold."
    first, second = open_points(verdict)
    assert (
        "measured: 0.12" in first and second.startswith("no evidence: ") and "requires 100%" in second
    ) or "99" in second
    assert as_sentence(judged(tmp_path, run, unknown)) == "Cannot tell: 1 of 1 rule of policy.yaml lacks evidence."


def test_causes_of_other_data_cannot_be_compared(tmp_path, run):
    baseline = make_run(tmp_path / "before", causes([["s1"]], data="d" * 64), data="d" * 64)
    with pytest.raises(ConfigError, match="the baseline was examined on other data"):
        judged(tmp_path, run, NEW.format(0), baseline=baseline)
    with pytest.raises(ConfigError, match="holds no root-cause clusters"):
        judged(tmp_path, run, "finding: robustness.neighbours, new_causes: 0", baseline=run)


WORSE = "finding: robustness.neighbours, column: weak, worse_by_at_most: {}"


def test_worse_than_the_baseline_is_judged_by_the_end_of_the_paired_interval(tmp_path):
    fifty = np.arange(50)
    before = make_run(tmp_path / "before", neighbours(weak=fifty < 10))
    after = make_run(tmp_path / "after", neighbours(weak=fifty < 12))
    for allowed, passed in ((0.0, False), (0.04, False), (0.2, True)):  # 4 points worse, up to about 12
        assert judged(tmp_path, after, WORSE.format(allowed), baseline=before).passed is passed
    assert judged(tmp_path, before, WORSE.format(0.06), baseline=after).passed
    told = judged(tmp_path, after, WORSE.format(0), baseline=before).judged[0].measured
    assert told.startswith("0.2 before, 0.24 now, paired over 50 inputs; worse by 0.1")


def test_a_share_is_compared_by_its_column_and_another_number_by_its_own_interval(tmp_path):
    fifty = np.arange(50)
    before, after = (neighbours(weak=fifty < n) for n in (10, 12))
    numbers = {"accuracy": Estimate(0.9, 0.88, 0.92, 0.95)}  # the column of that name is something else
    outputs = replace(before.outputs, summary={**before.outputs.summary, "accuracy": share("correct", better="higher")})
    before, after = (replace(one, summary={**one.summary, **numbers}, outputs=outputs) for one in (before, after))
    old, new = make_run(tmp_path / "before", before), make_run(tmp_path / "after", after)
    rule = "finding: robustness.neighbours, number: {}, worse_by_at_most: 0.05"
    weak = judged(tmp_path, new, rule.format("weak_share"), baseline=old).judged[0]
    assert weak.measured.startswith("0.2 before, 0.24 now, paired over 50 inputs") and not weak.passed
    accuracy = judged(tmp_path, new, rule.format("accuracy"), baseline=old).judged[0]
    assert (
        accuracy.measured == "0.9 before, 0.9 now, two intervals, not paired; worse by 0.04 at most" and accuracy.passed
    )


def test_without_a_known_direction_nothing_is_worse(tmp_path, run):
    with pytest.raises(
        ConfigError,
        match=r"whether more of .fragile. is worse: .*its numbers with a direction are weak_share",
    ):
        judged(tmp_path, run, "finding: robustness.neighbours, number: fragile, worse_by_at_most: 0", baseline=run)


def test_two_numbers_without_intervals_show_nothing(tmp_path):
    outputs = Outputs(summary={"accuracy": share("correct", better="higher")})
    plain = Finding("robustness.plain", summary={"accuracy": Estimate(0.9)}, outputs=outputs, provenance=PROVENANCE)
    run = make_run(tmp_path / "run", plain)
    verdict = judged(tmp_path, run, "finding: robustness.plain, number: accuracy, worse_by_at_most: 1", baseline=run)
    assert not verdict.passed and "without an interval" in verdict.judged[0].measured
