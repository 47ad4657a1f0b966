"""Bundles: complete, readable by people and by others' verifiers, and broken by any changed byte."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.evidence.samples import POLICY
from tests.gate.samples import make_run, neighbours
from weakspot._version import __version__
from weakspot.causes.journal import FILE as LABELS
from weakspot.cli.retraining import WEIGHTS
from weakspot.cli.verdict_commands import verify, write
from weakspot.core.errors import ConfigError, RunError
from weakspot.evidence import build_case, verify_bundle, write_bundle
from weakspot.evidence.covered import BESIDE
from weakspot.gate.evaluation import judge
from weakspot.gate.policy import read_policy


def test_a_case_holds_claims_thresholds_assumptions_limits_and_digests(run, policy):
    case = build_case(run, judge(run, read_policy(policy)))
    ruled = [claim for claim in case["claims"] if claim["kind"] == "rule"]
    assert [claim["holds"] for claim in ruled] == [True, False, True, False]
    assert ruled[0]["claim"] == "few weak inputs: weak_share ≤ 0.15 with 95% confidence"
    assert ruled[0]["digest"] == run["robustness.neighbours"].digest and ruled[3]["digest"] is None
    measured = {claim["claim"]: claim for claim in case["claims"] if claim["kind"] == "measured"}
    assert measured["weak_share (share of the inputs that are weak)"]["measured"] == "0.12 (0.1 to 0.14)"
    assert "nothing" not in str(measured.keys()), "a number that is missing claims nothing"
    bounds = [(entry["finding"], entry["name"], entry["value"]) for entry in case["thresholds"]]
    assert ("robustness.neighbours", "at_most", 0.15) in bounds and ("robustness.neighbours", "cutoff", 0.75) in bounds
    assert ("robustness.neighbours", "looks", 20) not in bounds
    assert any("drawn independently" in text for text in case["assumptions"])
    assert any("perturbations" in text for text in case["assumptions"])
    assert any("does not measure quality" in text for text in case["limits"])


def test_samples_that_were_left_out_and_other_models_are_limits(tmp_path):
    how = {"inference_options": {"precision": "bf16"}, "answers": {"same_each_time": False}}
    run = make_run(tmp_path / "run", neighbours().with_provenance(**how), fingerprint="f" * 64)
    data = {"test": {"fingerprint": "b" * 64, "samples": 10, "skipped": {"bad.png": "truncated"}}}
    run.describe(subject={**run.manifest()["subject"], "not_fingerprinted": ["model: an open file"]}, data=data)
    told = " ".join(build_case(run)["limits"])
    assert "predicts differently each time" in told and "does not cover model: an open file." in told
    assert "1 unusable samples of test were left out" in told
    assert "a model other than the one named here" in told and "not computed in plain float32" in told


def test_a_bundle_reads_well_and_checks_with_plain_tools(run, policy):
    folder = run.folder / "evidence"
    bundle = write_bundle(run, folder, policy=policy)
    assert verify_bundle(folder) == bundle
    text = (folder / "evidence.md").read_text()
    assert "| C1 | few weak inputs: weak_share ≤ 0.15 with 95% confidence | yes | 0.12 (0.1 to 0.14) |" in text
    assert "**no**" in text and "<script>" not in text and "&lt;script&gt;" in text
    assert (folder / "policy.yaml").read_text() == POLICY
    checked = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, capture_output=True, check=False)
    assert checked.returncode == 0


def test_without_a_policy_the_claims_are_what_was_measured(run):
    write_bundle(run, run.folder / "evidence")
    assert "No policy was given" in (run.folder / "evidence/evidence.md").read_text()


def test_the_same_run_gives_the_same_bundle(run, tmp_path):
    seals = {write_bundle(run, run.folder / name).seal for name in ("one", "two")}
    assert len(seals) == 1


def test_the_statement_is_one_of_in_toto(run, policy):
    """As https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md asks."""
    write_bundle(run, run.folder / "evidence", policy=policy)
    statement = json.loads((run.folder / "evidence/evidence.json").read_text())
    assert list(statement) == ["_type", "subject", "predicateType", "predicate"]
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:weakspot:evidence:v1" and isinstance(statement["predicate"], dict)
    for subject in statement["subject"]:
        assert set(subject) == {"name", "digest"} and re.fullmatch("[0-9a-f]{64}", subject["digest"]["sha256"])
    names = [subject["name"] for subject in statement["subject"]]
    assert len(set(names)) == len(names) and {"run.json", "policy.yaml"} <= set(names)
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    table = run.finding_folder("classes.pairs") / "table.parquet"
    assert digests["findings/classes.pairs/table.parquet"] == hashlib.sha256(table.read_bytes()).hexdigest()
    assert statement["predicate"]["run"] == ".." and statement["predicate"]["weakspot"] == __version__


def test_labels_weights_and_every_folder_of_a_finding_are_covered(run):
    assert BESIDE == (LABELS, WEIGHTS), "what the commands write"
    folder = run.folder / "evidence"
    extra = [run.folder / LABELS, run.folder / WEIGHTS, run.folder / "findings/causes.old/finding.json"]
    extra[2].parent.mkdir()
    write_bundle(run, folder)
    for path in extra:
        path.write_text("one")
        with pytest.raises(RunError, match=f"{re.escape(path.name)} was added"):
            verify_bundle(folder)
        write_bundle(run, folder)
        verify_bundle(folder)
        path.write_text("two")
        with pytest.raises(RunError, match=f"{re.escape(path.name)} was changed"):
            verify_bundle(folder)
        path.write_text("one")
    extra[0].unlink()
    with pytest.raises(RunError, match=r"labels\.jsonl is missing"):
        verify_bundle(folder)


def test_what_is_no_bundle_is_not_replaced(run, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/thoughts.txt").write_text("x")
    for place, name in ((run.folder, "findings"), (tmp_path / "notes", "thoughts.txt")):
        with pytest.raises(ConfigError, match=f"holds {name}, which is not part of a bundle and would be lost"):
            write_bundle(run, place)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="is not a folder: choose another path"):
        write_bundle(run, tmp_path / "file")


def test_an_unfinished_run_says_so_among_its_limits(run, policy):
    run.work_folder("abc").mkdir(parents=True)
    case = build_case(run, judge(run, read_policy(policy)))
    assert any(text.startswith("The Run is unfinished: ") for text in case["limits"])
    assert not any(claim["holds"] for claim in case["claims"] if claim["kind"] == "rule")


def covered(run, folder):
    """Every file that a bundle answers for."""
    findings = [path for path in sorted((run.folder / "findings").rglob("*")) if path.is_file()]
    return [run.folder / "run.json", *findings, *sorted(folder.iterdir())]


def test_any_changed_byte_is_found(run, policy):
    folder = run.folder / "evidence"
    write_bundle(run, folder, policy=policy)
    draw = np.random.default_rng(0)
    paths = covered(run, folder)
    assert len(paths) == verify_bundle(folder).files + 1 > 12
    for path in paths:
        original = path.read_bytes()
        places = {0, len(original) // 2, len(original) - 1, *draw.integers(len(original), size=5).tolist()}
        for place in places:
            flipped = original[:place] + bytes([original[place] ^ (1 << int(draw.integers(8)))]) + original[place + 1 :]
            path.write_bytes(flipped)
            with pytest.raises(RunError):
                verify_bundle(folder)
        for other in (original + b"\n", original[:-1], b""):
            path.write_bytes(other)
            with pytest.raises(RunError):
                verify_bundle(folder)
        path.write_bytes(original)
    verify_bundle(folder)


def test_files_that_were_lost_or_added_are_named(run):
    folder = run.folder / "evidence"
    write_bundle(run, folder)
    lost = run.finding_folder("classes.pairs") / "table.parquet"
    kept = lost.read_bytes()
    lost.unlink()
    with pytest.raises(RunError, match=r"findings/classes\.pairs/table\.parquet is missing"):
        verify_bundle(folder)
    lost.write_bytes(kept)
    added = run.finding_folder("classes.pairs") / "extra.npy"
    added.write_bytes(b"x")
    with pytest.raises(RunError, match=r"extra\.npy was added"):
        verify_bundle(folder)
    added.unlink()
    (folder / "note.txt").write_text("x")
    with pytest.raises(RunError, match=r"note\.txt was changed or added"):
        verify_bundle(folder)


def test_a_bundle_that_was_written_anew_has_another_seal(run):
    folder = run.folder / "evidence"
    seal = write_bundle(run, folder).seal
    run.save(neighbours(value=0.01, low=0.0, high=0.02))
    write_bundle(run, folder)
    verify_bundle(folder)
    with pytest.raises(RunError, match="it was written again, or is another bundle"):
        verify_bundle(folder, seal=seal)


def test_a_changed_finding_cannot_become_evidence(run):
    (run.finding_folder("classes.pairs") / "table.parquet").write_bytes(b"")
    with pytest.raises(RunError, match="was changed after it was written"):
        write_bundle(run, run.folder / "evidence")
    assert not (run.folder / "evidence").exists()


def test_a_run_that_was_moved_is_found_where_it_is_said_to_be(run, tmp_path):
    folder = tmp_path / "elsewhere" / "bundle"
    write_bundle(run, folder)
    verify_bundle(folder)
    run.folder.rename(tmp_path / "moved")
    with pytest.raises(RunError, match=r"give the folder where the Run of this bundle is now \(--run\)"):
        verify_bundle(folder)
    verify_bundle(folder, run=tmp_path / "moved")


@pytest.mark.parametrize(
    ("text", "said"), [(None, "is this a bundle of evidence"), ("{", "was changed"), ("{}", "is not a statement")]
)
def test_what_is_no_bundle_is_refused(tmp_path, text, said):
    if text is not None:
        (tmp_path / "evidence.json").write_text(text)
    with pytest.raises(RunError, match=said):
        verify_bundle(tmp_path)


def test_the_commands(run, policy, capsys):
    write(run.folder, policy=policy)
    told = capsys.readouterr().out
    seal = told.rpartition(" ")[2].strip()
    assert told.startswith(f"evidence: {run.folder}/evidence, ") and len(seal) == 64
    verify(Path(run.folder / "evidence"), seal=seal.upper())
    assert capsys.readouterr().out.startswith("consistent, with the seal that was kept: ")
    verify(Path(run.folder / "evidence"))
    found = verify_bundle(run.folder / "evidence")
    assert capsys.readouterr().out == (
        f"consistent, not authenticated: {found.files} files, {found.claims} claims derived again\nseal: {seal}\n"
    )
