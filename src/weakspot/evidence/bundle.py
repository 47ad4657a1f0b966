"""The bundle on disk: the statement as JSON and Markdown, the policy, and the digest of every file.

`SHA256SUMS` has a line for every file of the bundle and of the Run, in the form that `sha256sum -c` reads; the seal,
which is the digest of that file, is what to keep elsewhere, and that file is what is signed.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weakspot.core.digest import digest_file
from weakspot.core.errors import ConfigError, RunError
from weakspot.core.files import whole_folder, writing
from weakspot.core.run import Run
from weakspot.evidence.covered import OF_BASELINE, POLICY, covered_digests
from weakspot.evidence.markdown import as_markdown
from weakspot.evidence.signing import sign
from weakspot.evidence.statement import STATEMENT, as_text, build_statement, subject_digests
from weakspot.gate.policy import read_policy

TEXT, SUMS = "evidence.md", "SHA256SUMS"
SIGNATURE = f"{SUMS}.sig"
SIGNATURES = (SIGNATURE, f"{SUMS}.sigstore.json")
"""Made after the sums, which therefore do not hold them."""
FILES = (STATEMENT, TEXT, POLICY, SUMS, *SIGNATURES)


@dataclass(frozen=True)
class Bundle:
    """A bundle, written or verified: where it lies, its seal, how many files it covers, and what is known of it.

    claims: how many it makes.
    signed: whether a signature by `ssh-keygen` lies in it.
    signer: by whom, where that was checked.
    kept: whether it has the seal that was asked for.
    """

    folder: Path
    seal: str
    files: int
    claims: int
    signed: bool = False
    signer: str | None = None
    kept: bool = False

    @property
    def state(self) -> str:
        """What was shown: who signed it, that it has the seal that was kept, or neither."""
        if self.signer is not None:
            return f"authentic, signed by {self.signer}"
        return "consistent, with the seal that was kept" if self.kept else "consistent, not authenticated"


def write_bundle(
    run: Run, folder: Path, *, policy: Path | None = None, baseline: Run | None = None, key: Path | None = None
) -> Bundle:
    """Write the case of a Run as a folder, whole or not at all.

    policy: rules to hold the Run to, each of which becomes a claim; kept in the bundle.
    baseline: takes the place of the Run that the policy compares with.
    key: sign the bundle with this key of SSH.
    """
    _check_place(folder)
    named = None if policy is None else read_policy(policy).baseline
    compared = baseline or (None if named is None else Run.open(named))
    ways = {"run": _way(run, folder), "baseline": None if compared is None else _way(compared, folder)}
    with not_too_deep(run.folder):
        statement = build_statement(run, covered_digests(run, policy, compared), policy, compared, ways)
        written, text = as_text(statement), as_markdown(statement)
    with whole_folder(folder) as scratch, writing(folder):
        if policy is not None:
            shutil.copyfile(policy, scratch / POLICY)
        (scratch / STATEMENT).write_bytes(written)
        (scratch / TEXT).write_bytes(text)
        sums = sums_of({path.name: digest_file(path) for path in sorted(scratch.iterdir())}, statement)
        (scratch / SUMS).write_bytes(sums)
        if key is not None:
            sign(scratch / SUMS, key)
    claims = len(statement["predicate"]["claims"])
    return Bundle(folder, digest_file(folder / SUMS), sums.count(b"\n"), claims, signed=key is not None)


def sums_of(digests: Mapping[str, str], statement: Mapping[str, Any]) -> bytes:
    """What `SHA256SUMS` must say: the bundle's own files, then those of the Run and of the baseline, where they lie."""
    predicate = statement["predicate"]
    lines = dict(digests)
    for name, digest in subject_digests(statement, Path(STATEMENT)).items():
        if name != POLICY:
            of_baseline = name.startswith(OF_BASELINE)
            way = predicate["baseline" if of_baseline else "run"]
            lines[f"{way}/{name.removeprefix(OF_BASELINE) if of_baseline else name}"] = digest
    return "".join(f"{digest}  {name}\n" for name, digest in lines.items()).encode("utf-8", "backslashreplace")


def _check_place(folder: Path) -> None:
    """What lies at this place is replaced, so only another bundle may."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ConfigError(f"{folder} is not a folder: choose another path for the bundle")
    others = sorted(path.name for path in folder.iterdir() if path.name not in FILES) if folder.exists() else []
    if others:
        raise ConfigError(
            f"{folder} holds {others[0]}, which is not part of a bundle and would be lost: choose another folder"
        )


def _way(run: Run, folder: Path) -> str:
    """From a bundle to a Run, as the file system goes."""
    way = Path(os.path.relpath(os.path.realpath(run.folder), os.path.realpath(folder))).as_posix()
    if not way.isprintable() or "\\" in way:
        raise ConfigError(f"{way!r} leads to {run.folder}, and {SUMS} cannot hold it: rename that folder")
    return way


@contextmanager
def not_too_deep(folder: Path) -> Iterator[None]:
    """Report values that are nested too deep to be read, as in a forged file."""
    try:
        yield
    except RecursionError as error:
        raise RunError(f"{folder} is damaged: values are nested too deep; examine again") from error
