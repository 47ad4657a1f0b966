"""Claims are derived again: a bundle that was rewritten with fitting sums is found out where it says what is not so."""

import json

import numpy as np
import pytest

from tests.evidence.samples import forge, sealed_again
from tests.gate.samples import make_run, neighbours
from weakspot._version import __version__
from weakspot.core.errors import RunError
from weakspot.evidence import verify_bundle, write_bundle


@pytest.fixture
def folder(run, policy):
    write_bundle(run, run.folder / "evidence", policy=policy)
    return run.folder / "evidence"


def claims(statement):
    return statement["predicate"]["claims"]


def better_number(statement):
    claim = next(one for one in claims(statement) if one["kind"] == "measured")
    claim["measured"], claim["estimate"]["value"] = "0.01 (0.005 to 0.02)", 0.01


def broken_rule_holds(statement):
    claims(statement)[1].update(holds=True, measured="all 3 rows hold")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            better_number,
            r"claim C5 does not follow from robustness\.neighbours: measured is 0\.01 .*, not 0\.12 \(0\.1 to 0\.14\)",
        ),
        (broken_rule_holds, r"claim C2 .* from classes\.pairs: measured is all 3 rows hold, not 2 of 3 rows do not"),
        (lambda statement: claims(statement).pop(), "its claims are not the 10 that follow from the Findings"),
        (lambda statement: claims(statement).append(claims(statement)[0]), "its claims are not the 10"),
        (lambda statement: statement["predicate"]["limits"].clear(), "limits is not what follows from the Run"),
        (lambda statement: statement["predicate"]["thresholds"][0].update(value=0.5), "thresholds is not what"),
        (lambda statement: statement["predicate"]["model"].update(model="Better"), "model is not what"),
        (lambda statement: statement["predicate"].update(approved=True), "approved is not what"),
        (lambda statement: statement["predicate"].pop("claims"), "its claims are not"),
        (lambda statement: claims(statement).insert(0, claims(statement).pop()), "claim C1 does not follow"),
        (lambda statement: statement.update(approved=True), "is not written as weakspot writes it"),
        (lambda statement: statement["subject"].reverse(), "is not written as weakspot writes it"),
        (lambda statement: statement["subject"].pop(0), r"run\.json was added"),
        (lambda statement: statement["subject"][0]["digest"].update(sha256="0" * 64), r"run\.json was changed"),
    ],
)
def test_a_changed_statement_with_fitting_sums_is_found(folder, change, said):
    verify_bundle(folder)
    forge(folder, change)
    with pytest.raises(RunError, match=said):
        verify_bundle(folder)


def test_a_changed_text_with_fitting_sums_is_found(folder):
    path = folder / "evidence.md"
    path.write_text(path.read_text().replace("**no**", "yes"))
    sealed_again(folder)
    with pytest.raises(RunError, match=r"evidence\.md does not match evidence\.json"):
        verify_bundle(folder)


def test_a_key_that_stands_twice_is_found(folder):
    """Of two, another's reader may take the other one."""
    path = folder / "evidence.json"
    text = path.read_text()
    path.write_text(text.replace('"holds": false', '"holds": true,\n    "holds": false'))
    sealed_again(folder)
    with pytest.raises(RunError, match="is not written as weakspot writes it"):
        verify_bundle(folder)


def test_another_policy_gives_other_claims(folder):
    path = folder / "policy.yaml"
    path.write_text(path.read_text().replace("at_most: 0.15", "at_most: 0.11"))
    forge(folder, lambda statement: None)
    with pytest.raises(RunError, match=r"policy\.yaml was changed"):
        verify_bundle(folder)


def test_whoever_forges_everything_is_consistent_and_not_authenticated(run, folder, policy):
    seal = verify_bundle(folder).seal
    run.save(neighbours(value=0.01, low=0.0, high=0.02))
    write_bundle(run, folder, policy=policy)
    assert verify_bundle(folder).state == "consistent, not authenticated"
    with pytest.raises(RunError, match="it was written again, or is another bundle"):
        verify_bundle(folder, seal=seal)


def test_a_bundle_of_another_version_holds_where_that_says_the_same(folder):
    forge(folder, lambda statement: statement["predicate"].update(weakspot="0.0.1"))
    text = folder / "evidence.md"
    verify_bundle(folder)
    text.write_text(text.read_text() + "\n")
    sealed_again(folder)
    with pytest.raises(
        RunError, match=f"written by weakspot 0.0.1, and this is {__version__}: verify it with that one"
    ):
        verify_bundle(folder)


WORSE = "- {finding: robustness.neighbours, column: weak, worse_by_at_most: 0.2}\n"


@pytest.fixture
def compared(tmp_path):
    """A bundle that rests on a baseline, too."""
    fifty = np.arange(50)
    before = make_run(tmp_path / "runs/before", neighbours(weak=fifty < 10))
    after = make_run(tmp_path / "runs/after", neighbours(weak=fifty < 12))
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"baseline: runs/before\nrules:\n{WORSE}")
    write_bundle(after, tmp_path / "bundle", policy=policy)
    return tmp_path / "bundle", before


def test_a_baseline_is_part_of_the_evidence(compared, tmp_path):
    folder, before = compared
    statement = json.loads((folder / "evidence.json").read_text())
    names = {subject["name"] for subject in statement["subject"]}
    assert {"baseline/run.json", "baseline/findings/robustness.neighbours/table.parquet"} <= names
    assert statement["predicate"]["baseline"] == "../runs/before" and claims(statement)[0]["holds"]
    verify_bundle(folder)
    before.folder.rename(tmp_path / "moved")
    with pytest.raises(RunError, match=r"give the folder where the baseline of this bundle is now \(--baseline\)"):
        verify_bundle(folder)
    verify_bundle(folder, baseline=tmp_path / "moved")


def test_a_changed_baseline_is_found(compared):
    folder, before = compared
    before.save(neighbours(weak=np.arange(50) < 50))
    with pytest.raises(RunError, match=r"of the baseline run\.json was changed"):
        verify_bundle(folder)


def test_a_baseline_that_was_left_out_is_found(compared):
    folder, _ = compared

    def leave_out(statement):
        statement["predicate"]["baseline"] = None
        kept = [subject for subject in statement["subject"] if not subject["name"].startswith("baseline/")]
        statement["subject"] = kept

    forge(folder, leave_out)
    with pytest.raises(RunError, match="names a baseline, and the bundle does not say where it is"):
        verify_bundle(folder)
