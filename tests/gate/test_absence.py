"""A gate passes on evidence, never on absence: no rows, an unfinished Run, no model, no origin, half an interval."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.gate.samples import DATA, PROVENANCE, causes, judged, make_run, neighbours, pairs
from tests.gate.test_outside import weakspot
from weakspot.core.errors import ConfigError, RunError
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.run import Run
from weakspot.gate.policy import read_policy

WEAK = "finding: robustness.neighbours, number: weak_share, at_most: 0.5"
BIAS = "finding: classes.pairs, column: average_bias, at_most: 0.5"
TRAIN = "e" * 64


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", neighbours(), pairs())


def reason(tmp_path, run, rule, **given):
    """Why a rule does not hold."""
    (one,) = judged(tmp_path, run, rule, **given).judged
    assert not one.passed, one.measured
    return one.measured


def redescribe(run, **changes):
    """Another manifest, as somebody might have written it."""
    path = run.folder / "run.json"
    manifest = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in manifest.items() if value is not ...}))


def test_a_rule_that_meets_no_rows_fails_and_names_the_values_that_there_are(tmp_path, run):
    assert reason(tmp_path, run, BIAS + ", where: {first: cta}") == (
        "no row has first = cta: did you mean 'cat'? first has 'cat', '<script>', 'cow'"
    )
    told = reason(tmp_path, run, BIAS + ", where: {first: cat, second: hen}")
    assert told == (
        "no row has first = cat and second = hen: first has 'cat', '<script>', 'cow'; second has 'dog', 'a|b', 'hen'"
    )
    assert judged(tmp_path, run, BIAS + ", where: {first: cat, second: dog}").passed


def test_of_many_values_some_are_named(tmp_path):
    many = Finding(
        "classes.many",
        table=table_of({"number": np.arange(50), "share": np.zeros(50)}),
        provenance=PROVENANCE,
    )
    run = make_run(tmp_path / "run", many)
    told = reason(tmp_path, run, "finding: classes.many, column: share, at_most: 1, where: {number: 60}")
    assert told == "no row has number = 60: number has 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 … (50 values)"


def test_a_table_without_rows_shows_nothing(tmp_path):
    empty = Finding("classes.pairs", table=table_of({"average_bias": np.zeros(0)}), provenance=PROVENANCE)
    run = make_run(tmp_path / "run", empty)
    assert reason(tmp_path, run, BIAS) == "the table has no rows, so the rule cannot hold"


def test_an_unfinished_run_is_no_evidence(tmp_path, run):
    run.describe(**{key: run.manifest()[key] for key in ("subject", "data")}, asked=["classes.pairs", "causes.errors"])
    told = reason(tmp_path, run, WEAK)
    assert told == "the Run is unfinished: causes.errors was asked for and is missing: examine again"
    run.save(Finding("causes.errors", provenance=PROVENANCE))
    assert judged(tmp_path, run, WEAK).passed
    run.work_folder("abc").mkdir(parents=True)
    assert "the Run is unfinished: an examination was started and did not finish" in reason(tmp_path, run, WEAK)


def test_an_unfinished_baseline_is_none(tmp_path, run):
    baseline = make_run(tmp_path / "before", neighbours())
    rule = "finding: robustness.neighbours, column: weak, worse_by_at_most: 0.9"
    assert judged(tmp_path, run, rule, baseline=baseline).passed
    baseline.work_folder("abc").mkdir(parents=True)
    assert reason(tmp_path, run, rule, baseline=baseline).startswith("the baseline: the Run is unfinished")


@pytest.mark.parametrize("subject", [{}, {"model": "Net"}, {"fingerprint": None}])
def test_a_run_that_names_no_model_is_no_evidence(tmp_path, run, subject):
    redescribe(run, subject=subject)
    assert reason(tmp_path, run, WEAK) == "the Run does not name its model: examine again"


@pytest.mark.parametrize("changes", [{"subject": ...}, {"subject": []}, {"data": [1]}, {"data": {"test": 5}}])
def test_a_damaged_manifest_is_an_error(tmp_path, run, changes):
    redescribe(run, **changes)
    with pytest.raises(RunError, match=r"run.json is damaged: .* is no mapping; restore it or examine again"):
        Run.open(run.folder)


def test_a_run_that_names_no_data_is_no_evidence(tmp_path, run):
    redescribe(run, data={})
    assert reason(tmp_path, run, WEAK) == "the Run does not name its data: examine again"


@pytest.mark.parametrize(
    "provenance", [{}, {"subject": PROVENANCE["subject"]}, {"data": DATA}, {**PROVENANCE, "data": None}]
)
def test_a_finding_without_provenance_is_no_evidence(tmp_path, provenance):
    bare = Finding("robustness.neighbours", summary={"weak_share": Estimate(0.1)}, provenance=provenance)
    run = make_run(tmp_path / "run", bare)
    told = reason(tmp_path, run, WEAK)
    assert told == "its provenance does not name its model and data: examine again"


def test_what_is_built_from_other_findings_is_of_their_model_and_data(tmp_path):
    base = neighbours()
    made = Finding("robustness.made", summary={"n": Estimate(1)}, provenance={"upstream": [base.digest]})
    run = make_run(tmp_path / "run", base, made)
    rule = "finding: robustness.made, number: n, at_most: 2"
    assert judged(tmp_path, run, rule + ", least_samples: 10").passed
    assert "10 samples" in reason(tmp_path, run, rule + ", least_samples: 11")
    run.save(neighbours(value=0.2))  # what it was built from is there no more
    assert reason(tmp_path, run, rule) == "it was built from Findings that are not in the Run: make it again"
    other = make_run(tmp_path / "other", base, made, fingerprint="c" * 64)
    assert "a model other than the Run's" in reason(tmp_path, other, rule)


def two_splits(folder, *findings):
    run = make_run(folder, *findings)
    splits = {"train": {"fingerprint": TRAIN, "samples": 90}, "test": {"fingerprint": DATA, "samples": 10}}
    run.describe(subject=run.manifest()["subject"], data=splits)
    return run


def renamed(name, data):
    return Finding(name, summary={"weak_share": Estimate(0.1)}, provenance={**PROVENANCE, "data": data})


def test_a_finding_of_another_split_is_no_evidence(tmp_path):
    run = two_splits(tmp_path / "run", renamed("robustness.neighbours", TRAIN))
    assert reason(tmp_path, run, WEAK) == (
        "it was computed on the split train, not on test: if you mean that, write `split: train` in it"
    )
    assert judged(tmp_path, run, WEAK + ", split: train").passed
    assert judged(tmp_path, two_splits(tmp_path / "other", renamed("robustness.neighbours", DATA)), WEAK).passed


@pytest.mark.parametrize("name", ["robustness.neighbours-train", "robustness.neighbours-train-0a1b2c"])
def test_a_name_may_say_the_split(tmp_path, name):
    rule = f"finding: {name}, number: weak_share, at_most: 0.5"
    assert judged(tmp_path, two_splits(tmp_path / "one", renamed(name, TRAIN)), rule).passed
    told = reason(tmp_path, two_splits(tmp_path / "two", renamed(name, DATA)), rule)
    assert told.startswith("it was computed on the split test, not on train")


def test_without_a_test_split_the_rule_says_which(tmp_path):
    run = make_run(tmp_path / "run", renamed("robustness.neighbours", TRAIN))
    one = {"train": {"fingerprint": TRAIN, "samples": 90}}
    run.describe(subject=run.manifest()["subject"], data=one)
    assert judged(tmp_path, run, WEAK).passed, "there is no other"
    run.describe(subject=run.manifest()["subject"], data={**one, "fresh": {"fingerprint": DATA, "samples": 10}})
    assert reason(tmp_path, run, WEAK) == "the Run has no split test: set `split` in the rule to one of train, fresh"
    assert judged(tmp_path, run, WEAK + ", split: train").passed


def test_a_split_that_is_not_there_is_an_error_with_its_line(tmp_path, run):
    with pytest.raises(ConfigError, match=r"policy.yaml:2: .* has no split 'tets': did you mean 'test'\? it has test"):
        judged(tmp_path, run, WEAK + ", split: tets")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (None, 0.14, "0.12: its interval has no lower end"),
        (0.10, None, "0.12: its interval has no upper end"),
        (0.5, 0.1, "0.12 (0.5 to 0.1): the lower end of its interval is above the upper end"),
    ],
)
def test_half_an_interval_is_none(tmp_path, low, high, said):
    run = make_run(tmp_path / "run", neighbours(low=low, high=high))
    for condition in ("", ", confidence: 0.95", ", at_least: 0"):
        assert said in reason(tmp_path, run, WEAK + condition)


def test_a_rule_does_not_hold_on_fewer_rows_than_it_asks_for(tmp_path, run):
    rule = BIAS + ", where: {confused: true}, least_rows: "
    assert judged(tmp_path, run, rule + "2").passed
    assert reason(tmp_path, run, rule + "3") == "2 rows: the rule requires at least 3"
    baseline = make_run(tmp_path / "before", neighbours())
    worse = "finding: robustness.neighbours, column: weak, worse_by_at_most: 0.9, least_rows: "
    assert judged(tmp_path, run, worse + "10", baseline=baseline).passed
    assert "10 paired inputs: the rule requires at least 11" in reason(tmp_path, run, worse + "11", baseline=baseline)


def test_a_rule_does_not_hold_on_fewer_samples_than_it_asks_for(tmp_path, run):
    assert judged(tmp_path, run, WEAK + ", least_samples: 10").passed
    assert reason(tmp_path, run, WEAK + ", least_samples: 11") == "10 samples: the rule requires at least 11"
    for rule in (BIAS + ", where: {confused: true}", WEAK.replace("at_most: 0.5", "exists: true")):
        assert "10 samples" in reason(tmp_path, run, f"{rule}, least_samples: 11")
    unknown = neighbours().with_provenance(samples=None)
    told = reason(tmp_path, make_run(tmp_path / "other", unknown), WEAK + ", least_samples: 1")
    assert told == "an unknown number of samples: the rule requires at least 1"


def test_the_baseline_needs_as_many_samples(tmp_path, run):
    rule = "finding: robustness.neighbours, column: weak, worse_by_at_most: 0.9, least_samples: 10"
    few = make_run(tmp_path / "few", neighbours().with_provenance(samples=9))
    assert reason(tmp_path, run, rule, baseline=few) == "the baseline: 9 samples: the rule requires at least 10"


def test_new_causes_need_samples_too(tmp_path):
    run = make_run(tmp_path / "run", causes([["s1", "s2"]]))
    rule = "finding: causes.root_causes, new_causes: 0, least_samples: {}"
    assert judged(tmp_path, run, rule.format(10), baseline=run).passed
    assert "10 samples" in reason(tmp_path, run, rule.format(11), baseline=run)


def test_a_cluster_without_images_is_new(tmp_path):
    known = causes([["s1", "s2"], ["s3"]])
    emptied = {**known.arrays, "image_cluster": np.where(known.arrays["image_cluster"] == 2, 1, 0)}
    run = make_run(tmp_path / "run", replace(known, arrays=emptied))
    baseline = make_run(tmp_path / "before", known)
    rule = "finding: causes.root_causes, new_causes: 0"
    assert reason(tmp_path, run, rule, baseline=baseline) == "new: cluster 2"


def test_a_policy_may_ask_it_of_all_rules(tmp_path, run):
    told = judged(tmp_path, run, WEAK, BIAS, top="least_rows: 4\nleast_samples: 10\n").judged
    assert [one.passed for one in told] == [True, False]
    assert told[0].rule.claim == "weak_share ≤ 0.5, on at least 10 samples"
    assert told[1].rule.claim == "average_bias of every row ≤ 0.5, on at least 4 rows and 10 samples"
    assert told[1].measured == "3 rows: the rule requires at least 4"
    own = judged(tmp_path, run, WEAK + ", least_samples: 11", top="least_samples: 5\n")
    assert own.judged[0].rule.least_samples == 11, "what a rule says itself counts"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("least_rows: 0\nrules:\n- {RULE}", ":1: least_rows is 0, expected 1 or more"),
        ("rules:\n- {RULE, least_samples: 0}", ":2: least_samples is 0, expected 1 or more"),
        (
            "rules:\n- {RULE, least_rows: 5}",
            ":2: least_rows can be used with a column or share only: use least_samples",
        ),
        ("least_samples: many\nrules:\n- {RULE}", ":1: policy: least_samples is 'many', expected a whole number"),
    ],
)
def test_what_cannot_be_asked_is_an_error_with_its_line(tmp_path, text, said):
    path = tmp_path / "policy.yaml"
    path.write_text(text.replace("RULE", WEAK))
    with pytest.raises(ConfigError, match=re.escape(said)):
        read_policy(path)


def test_the_command_ends_with_1_and_tells_why(tmp_path, run):
    (tmp_path / "policy.yaml").write_text(f"rules:\n- {{{BIAS}, where: {{first: cta}}}}\n")
    done = weakspot("gate", "run", "policy.yaml", folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "no row has first = cta: did you mean 'cat'?" in done.stdout and "0 of 1 rules hold" in done.stdout
