"""Bundles and Runs that somebody made up: a clear error, never a trace-back, and nothing outside is read."""

import json
import os

import pytest

from tests.evidence.samples import forge, sealed_again
from tests.gate.samples import PROVENANCE, make_run
from tests.gate.test_outside import weakspot
from weakspot.core.digest import digest_file
from weakspot.core.errors import RunError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.run import Run
from weakspot.evidence import verify_bundle, write_bundle
from weakspot.gate.evaluation import judge
from weakspot.gate.policy import read_policy

DEEP = 100_000


@pytest.fixture
def folder(run, policy):
    write_bundle(run, run.folder / "evidence", policy=policy)
    return run.folder / "evidence"


def link(path):
    path.symlink_to("/etc/hostname")


ODD = [
    (lambda path: path.mkdir(), "it is a folder, expected a plain file"),
    (link, "it is a link, which could lead anywhere"),
    (os.mkfifo, "it is a FIFO, expected a plain file"),
]


@pytest.mark.parametrize(("make", "said"), ODD)
@pytest.mark.parametrize("name", ["new", "evidence.json", "evidence.md", "policy.yaml", "SHA256SUMS", "SHA256SUMS.sig"])
def test_a_bundle_holds_plain_files_alone(folder, name, make, said):
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    with pytest.raises(RunError, match=f"{name}: {said}"):
        verify_bundle(folder)


@pytest.mark.parametrize(("make", "said"), ODD)
@pytest.mark.parametrize(
    "name", ["labels.jsonl", "findings/classes.pairs/new", "findings/classes.pairs/table.parquet", "findings/new/table"]
)
def test_a_run_holds_plain_files_alone(run, folder, policy, name, make, said):
    (run.folder / name).parent.mkdir(exist_ok=True)
    (run.folder / name).unlink(missing_ok=True)
    make(run.folder / name)
    with pytest.raises(RunError, match=f"{name}: {said}"):
        verify_bundle(folder)
    with pytest.raises(RunError, match=f"{name}: {said}"):
        write_bundle(run, run.folder / "other", policy=None)
    if "classes.pairs" in name:
        with pytest.raises(RunError, match=f"{name}: {said}"):
            judge(run, read_policy(policy))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["evidence.json", "evidence.md", "policy.yaml", "SHA256SUMS", "SHA256SUMS.sig"])
def test_a_huge_file_in_a_bundle_is_not_read(folder, name):
    with (folder / name).open("ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(RunError, match=f"{name} has 1,099,511,627,776 bytes, expected 67,108,864 at most"):
        verify_bundle(folder)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["run.json", "findings/classes.pairs/finding.json"])
def test_an_index_too_large_to_be_read_is_not_digested_either(run, folder, name):
    os.truncate(run.folder / name, 1 << 40)
    with pytest.raises((RunError, OSError), match="1,099,511,627,776 bytes, expected 67,108,864 at most"):
        write_bundle(run, run.folder / "other")
    with pytest.raises((RunError, OSError), match="1,099,511,627,776 bytes, expected 67,108,864 at most"):
        verify_bundle(folder)


def test_findings_lie_in_the_run_itself(run, folder, tmp_path):
    (run.folder / "findings/classes.pairs").rename(tmp_path / "elsewhere")
    (run.folder / "findings/classes.pairs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"classes\.pairs is no folder of a Finding"):
        verify_bundle(folder)
    (run.folder / "findings").rename(tmp_path / "all")
    (run.folder / "findings").symlink_to(tmp_path / "all")
    with pytest.raises(RunError, match="findings is no folder: expected the Findings"):
        verify_bundle(folder)


def test_the_manifest_is_a_plain_file(run, folder, tmp_path):
    (run.folder / "run.json").rename(tmp_path / "elsewhere.json")
    (run.folder / "run.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(RunError, match=r"run\.json: it is a link"):
        verify_bundle(folder)


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("name", ["evidence/evidence.json", "run.json", "findings/classes.pairs/finding.json"])
def test_what_is_nested_too_deep_is_refused(run, folder, policy, name):
    (run.folder / name).write_text(f'{{"format": {nested(DEEP)}}}')
    with pytest.raises(RunError):
        verify_bundle(folder)
    if "run.json" in name:
        with pytest.raises(RunError, match="nested too deep"):
            Run.open(run.folder)
    if "finding.json" in name:
        with pytest.raises(RunError, match="nested too deep"):
            write_bundle(run, run.folder / "other")


def test_what_can_be_read_and_not_followed_is_refused(run):
    """Python reads some hundred levels more than it writes."""
    path = run.folder / "run.json"
    manifest = json.loads(path.read_text())
    for depth in range(100, 1000, 50):
        subject = {**manifest["subject"], "classes": json.loads(nested(depth))}
        path.write_text(json.dumps({**manifest, "subject": subject}))
        try:
            write_bundle(run, run.folder / "evidence")
        except RunError as error:
            assert "nested too deep" in str(error)
            return
    pytest.fail("this was not deep enough to try anything")


SURROGATE = "\ud800"


def surrogates(folder):
    finding = Finding(
        "robustness.neighbours",
        summary={"weak_share": Estimate(SURROGATE, about=SURROGATE)},
        provenance=PROVENANCE,
    )
    run = make_run(folder, finding)
    run.describe(subject={**run.manifest()["subject"], "model": "Net"}, data=run.manifest()["data"])
    path = run.folder / "run.json"
    path.write_text(path.read_text().replace('"Net"', '"Net\\ud800"'))
    return run


def test_a_run_whose_text_utf_8_cannot_write_is_refused(tmp_path):
    run, policy = surrogates(tmp_path / "run"), tmp_path / "policy.yaml"
    policy.write_text("rules:\n- {finding: robustness.neighbours, number: weak_share, equals: a}\n")
    with pytest.raises(RunError, match="half of a surrogate pair, which is not text"):
        write_bundle(run, tmp_path / "bundle", policy=policy)
    assert not (tmp_path / "bundle").exists()
    done = weakspot("gate", "run", "policy.yaml", folder=tmp_path)
    assert "Traceback" not in done.stderr and done.returncode == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda statement: statement["predicate"].update(run=SURROGATE), "holds no weakspot Run"),
        (lambda statement: statement["predicate"].update(run="a\0b"), "holds no weakspot Run"),
        (lambda statement: statement["predicate"].update(run=5), "does not say which version .* it rests on"),
        (lambda statement: statement["predicate"].update(baseline=[]), "does not say which version"),
        (lambda statement: statement["predicate"].pop("policy"), "does not say which version"),
        (lambda statement: statement["predicate"].update(weakspot=float("nan")), "does not say which version"),
        (lambda statement: statement.update(predicate=[]), "does not say which version"),
        (lambda statement: statement["predicate"]["claims"].insert(0, SURROGATE), "its claims are not"),
        (lambda statement: statement["predicate"].update(claims=["x"] * 10), "claim C1 .* it is not a claim"),
    ],
)
def test_a_made_up_statement_is_refused(folder, change, said):
    path = folder / "evidence.json"
    statement = json.loads(path.read_text())
    change(statement)
    path.write_text(json.dumps(statement))
    try:
        sealed_again(folder)
    except RunError as error:  # this is no statement at all
        assert "was changed" in str(error)
    with pytest.raises(RunError, match=said):
        verify_bundle(folder)


@pytest.mark.parametrize(
    "subject",
    [5, None, [5], [{}], [{"name": "a"}], [{"name": "a", "digest": []}], [{"name": 5, "digest": {"sha256": ""}}]],
)
def test_subjects_without_name_or_digest_are_refused(folder, subject):
    path = folder / "evidence.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "subject": subject}))
    with pytest.raises(RunError, match=r"evidence\.json was changed: .*subject"):
        verify_bundle(folder)


def test_a_statement_leads_to_no_other_file(folder, tmp_path):
    """What it names is compared with what lies in the Run, and never opened by its name."""
    secret = tmp_path / "secret"
    secret.write_text("x")
    named = {"name": "../secret", "digest": {"sha256": digest_file(secret)}}
    forge(folder, lambda statement: statement["subject"].append(named))
    with pytest.raises(RunError, match=r"\.\./secret is missing"):
        verify_bundle(folder)


def made_up(run, **entries):
    """A Finding whose index somebody wrote, and which the manifest names."""
    folder = run.finding_folder("robustness.neighbours")
    path, manifest = folder / "finding.json", run.folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))
    told = json.loads(manifest.read_text())
    told["findings"]["robustness.neighbours"] = digest_file(path)
    manifest.write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"provenance": []}, "'provenance' is no mapping"),
        ({"provenance": [["subject", "a"]]}, "'provenance' is no mapping"),
        ({"provenance": {**PROVENANCE, "parameters": [1]}}, "'provenance.parameters' is no mapping"),
        ({"files": []}, "'files' is no mapping"),
        ({"summary": [["weak_share", 5]]}, "is damaged"),
        ({"summary": [["weak_share", {"value": [1]}]]}, "a number of its summary is none"),
        ({"summary": [["weak_share", {"value": 0.1, "low": "0", "high": 1}]]}, "a number of its summary is none"),
        ({"summary": [["weak_share", {"value": 10**400}]]}, "a number of its summary is none"),
        ({"summary": [["weak_share", {"value": 1, "about": 5}]]}, "a number of its summary is none"),
        ({"name": "classes.pairs"}, "is not the Finding that the manifest names"),
    ],
)
def test_a_made_up_finding_is_refused(run, policy, entries, said):
    made_up(run, **entries)
    with pytest.raises(RunError, match=said):
        write_bundle(run, run.folder / "evidence", policy=policy)
    assert not (run.folder / "evidence").exists()
    done = weakspot("evidence", "run", folder=run.folder.parent)
    assert done.returncode == 2 and done.stderr.startswith("weakspot: ") and "Traceback" not in done.stderr


def test_a_made_up_manifest_is_refused(run):
    path = run.folder / "run.json"
    told = json.loads(path.read_text())
    told["data"]["test"]["skipped"] = 5
    path.write_text(json.dumps(told))
    with pytest.raises(RunError, match=r"run\.json is damaged: data\.test\.skipped is no mapping"):
        write_bundle(run, run.folder / "evidence")
