"""Bundles: complete, readable, and broken by any changed byte."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.gate.samples import causes, coverage, make_run, neighbours, pairs
from weakspot.cli.judging import verify, write
from weakspot.core.errors import RunError
from weakspot.evidence import build_case, verify_bundle, write_bundle
from weakspot.gate.judging import judge
from weakspot.gate.policy import read_policy

POLICY = """rules:
- {name: few weak inputs, finding: robustness.neighbours, number: weak_share, at_most: 0.15, confidence: 0.95}
- {finding: classes.pairs, column: average_bias, at_most: 0.2}
- {finding: coverage.neurons, number: coverage, at_least: 0.5}
- {finding: lesions.gone, number: auc, exists: true}
"""


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run", neighbours(), pairs(), coverage(), causes([["s1", "s2"]]))


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


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
    assert any("variations" in text for text in case["assumptions"])
    assert any("no measure of quality" in text for text in case["limits"])


def test_samples_that_were_left_out_and_other_models_are_limits(tmp_path):
    run = make_run(tmp_path / "run", neighbours().with_provenance(ways={"precision": "bf16"}), fingerprint="f" * 64)
    data = {"test": {"fingerprint": "b" * 64, "samples": 10, "skipped": {"bad.png": "truncated"}}}
    run.describe(subject=run.manifest()["subject"], data=data)
    told = " ".join(build_case(run)["limits"])
    assert "1 samples of test could not be used" in told
    assert "another model" in told and "faster way" in told


def test_a_bundle_reads_well_and_checks_with_plain_tools(run, policy):
    folder = run.folder / "evidence"
    bundle = write_bundle(run, folder, verdict=judge(run, read_policy(policy)), policy=policy)
    assert verify_bundle(folder) == bundle
    text = (folder / "evidence.md").read_text()
    assert "| C1 | few weak inputs: weak_share ≤ 0.15 with 95% confidence | yes | 0.12 (0.1 to 0.14) |" in text
    assert "**no**" in text and "<script>" not in text and "&lt;script&gt;" in text
    assert (folder / "policy.yaml").read_text() == POLICY
    case = json.loads((folder / "evidence.json").read_text())
    assert case["run"] == ".." and set(case["files"]) >= {"run.json", "findings/classes.pairs/table.parquet"}
    checked = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, capture_output=True, check=False)
    assert checked.returncode == 0


def test_without_a_policy_the_claims_are_what_was_measured(run):
    write_bundle(run, run.folder / "evidence")
    assert "No policy was judged" in (run.folder / "evidence/evidence.md").read_text()


def test_the_same_run_gives_the_same_bundle(run, tmp_path):
    seals = {write_bundle(run, run.folder / name).seal for name in ("one", "two")}
    assert len(seals) == 1


def covered(run, folder):
    """Every file that a bundle answers for."""
    findings = [path for path in sorted((run.folder / "findings").rglob("*")) if path.is_file()]
    return [run.folder / "run.json", *findings, *sorted(folder.iterdir())]


def test_any_changed_byte_is_found(run, policy):
    folder = run.folder / "evidence"
    write_bundle(run, folder, verdict=judge(run, read_policy(policy)), policy=policy)
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
    with pytest.raises(RunError, match="it was written anew, or is another bundle"):
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
    with pytest.raises(RunError, match="say where the Run of this bundle lies now with --run"):
        verify_bundle(folder)
    verify_bundle(folder, run=tmp_path / "moved")


@pytest.mark.parametrize(
    ("text", "said"), [(None, "is this a bundle of evidence"), ("{", "was changed"), ("{}", "is no")]
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
    assert capsys.readouterr().out.startswith("unchanged: ")
