"""The files that a bundle covers, with their digests. Only plain files count: no link, no folder, no pipe."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from weakspot.core.digest import digest_file
from weakspot.core.errors import RunError
from weakspot.core.files import check_own_file
from weakspot.core.guarded_open import MOST_JSON_BYTES
from weakspot.core.index_checks import check_name
from weakspot.core.run import MANIFEST, Run
from weakspot.gate.policy import PolicyRule, read_policy

FINDINGS, POLICY = "findings", "policy.yaml"
OF_BASELINE = "baseline/"
"""How names begin that are files of the baseline."""
BESIDE = ("labels.jsonl", "retrained.safetensors")
"""What else of a Run is evidence, where it is there: labels that people gave, and weights that came of them."""


def covered_digests(run: Run, policy: Path | None, baseline: Run | None) -> dict[str, str]:
    """The SHA-256 of all that a statement rests on, by its name."""
    files = run_digests(run)
    if policy is not None:
        files[POLICY] = digest_file(policy)
        compared = {} if baseline is None else baseline_digests(baseline, read_policy(policy).rules)
        files |= {OF_BASELINE + name: digest for name, digest in compared.items()}
    return files


def run_digests(run: Run) -> dict[str, str]:
    """The SHA-256 of the manifest, of every Finding's folder, of labels and retrained weights, by their names."""
    beside = [name for name in BESIDE if _there(run.folder / name)]
    return _digests(run, [MANIFEST, *beside, *_in_findings(run.folder / FINDINGS)])


def baseline_digests(baseline: Run, rules: Iterable[PolicyRule]) -> dict[str, str]:
    """The SHA-256 of what a baseline is compared by: its manifest, and the Findings that rules compare with."""
    compared = {rule.finding for rule in rules if rule.compares} & set(baseline.names())
    held = [name for finding in sorted(compared) for name in _in_folder(baseline.finding_folder(finding))]
    return _digests(baseline, [MANIFEST, *held])


def _digests(run: Run, names: Iterable[str]) -> dict[str, str]:
    return {name: plain_digest(run.folder / name) for name in names}


def plain_digest(path: Path) -> str:
    """The SHA-256 of a plain file; anything else is refused, also JSON too large for anyone to read it."""
    check_own_file(path)
    return digest_file(path, most=MOST_JSON_BYTES if path.suffix == ".json" else None)


def _in_findings(folder: Path) -> Iterator[str]:
    """Every folder of a Finding, whether the manifest names it or not; what a killed process left is none."""
    if folder.is_symlink() or not folder.is_dir():
        raise RunError(f"{folder} is no folder: expected the Findings of the Run in it; examine again")
    for path in sorted(folder.iterdir()):
        if not path.name.startswith("."):
            yield from _in_folder(path)


def _in_folder(folder: Path) -> list[str]:
    if folder.is_symlink() or not folder.is_dir():
        raise RunError(f"{folder} is no folder of a Finding: remove it, or put the folder itself in its place")
    paths = sorted(folder.iterdir())
    for path in (folder, *paths):
        check_name(path.name)  # such names need no signs that SHA256SUMS cannot hold
    return [f"{FINDINGS}/{folder.name}/{path.name}" for path in paths]


def _there(path: Path) -> bool:
    return path.is_symlink() or path.exists()
