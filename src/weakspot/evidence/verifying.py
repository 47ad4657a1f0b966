"""Verifies a bundle: digests of its files, its claims against the Findings, and its signature."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weakspot._version import __version__
from weakspot.core.digest import digest_bytes
from weakspot.core.errors import ConfigError, RunError
from weakspot.core.files import check_own_file
from weakspot.core.guarded_open import MOST_JSON_BYTES
from weakspot.core.run import MANIFEST, Run
from weakspot.evidence.bundle import SIGNATURE, SIGNATURES, SUMS, TEXT, Bundle, not_too_deep, sums_of
from weakspot.evidence.covered import OF_BASELINE, POLICY, covered_digests, plain_digest
from weakspot.evidence.markdown import as_markdown
from weakspot.evidence.signing import check_signature
from weakspot.evidence.statement import STATEMENT, as_text, build_statement, read_statement, subject_digests

_MOST_REPORTED = 20


def verify_bundle(
    folder: Path,
    *,
    run: Path | None = None,
    baseline: Path | None = None,
    seal: str | None = None,
    signers: Path | None = None,
    signer: str | None = None,
) -> Bundle:
    """Raise an error where a bundle is not valid, naming every reason.

    Every file must have its digest, and every claim, threshold, assumption and limit is derived again from the
    Findings and the policy. That shows that a bundle is consistent, not who wrote it: a signature or a seal does.

    run, baseline: where they lie now, if they were moved.
    seal: as it was printed when the bundle was written.
    signers: a file of those who may have signed it, as `ssh-keygen` reads it.
    signer: who must have; else any of them.
    """
    if signer is not None and signers is None:
        raise ConfigError("to check the signer, also give the file of allowed signers (--signers)")
    _check_files(folder)
    statement = read_statement((folder / STATEMENT).read_bytes(), folder / STATEMENT)
    sums = _checked_sums(folder, statement)
    digest = digest_bytes(sums)
    if seal is not None and digest != seal.lower():
        raise RunError(f"{folder} has the seal {digest}, not {seal}: it was written again, or is another bundle")
    by = None if signers is None else _signer(folder, sums, signers, signer)
    with not_too_deep(folder):
        _check_claims(folder, statement, run, baseline)
    signed = (folder / SIGNATURE).exists()
    claims = len(statement["predicate"]["claims"])
    return Bundle(folder, digest, sums.count(b"\n"), claims, signed=signed, signer=by, kept=seal is not None)


def _check_files(folder: Path) -> None:
    """Refuse what is no folder of plain files, before any of them is read."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise RunError(f"cannot read {folder}: {error.strerror}; is this a bundle of evidence?") from error
    for path in paths:
        check_own_file(path)
        if path.stat().st_size > MOST_JSON_BYTES:
            raise RunError(f"{path} has {path.stat().st_size:,} bytes, expected {MOST_JSON_BYTES:,} at most")
    if not (folder / STATEMENT).exists():
        raise RunError(f"{folder} holds no {STATEMENT}: is this a bundle of evidence?")


def _checked_sums(folder: Path, statement: Mapping[str, Any]) -> bytes:
    """What `SHA256SUMS` says, which must be exactly as computed from the files and the statement."""
    covered = [path for path in sorted(folder.iterdir()) if path.name not in (SUMS, *SIGNATURES)]
    digests = {path.name: plain_digest(path) for path in covered}
    check_own_file(folder / SUMS)
    written, expected = (folder / SUMS).read_bytes(), sums_of(digests, statement)
    if written != expected:
        entries = [line.split("  ", 1) for line in written.decode(errors="replace").splitlines() if "  " in line]
        lines = {name: digest for digest, name in entries}
        wrong = [f"{name} was changed or added" for name, digest in digests.items() if lines.get(name) != digest]
        wrong += [f"{name} is missing" for name in lines if "/" not in name and name not in digests]
        _refuse(folder, wrong or [f"{SUMS} was changed"])
    return written


def _signer(folder: Path, sums: bytes, signers: Path, signer: str | None) -> str:
    if not (folder / SIGNATURE).exists():
        raise RunError(f"{folder} is not signed: it holds no {SIGNATURE}")
    return check_signature(sums, folder / SIGNATURE, signers, signer)


def _check_claims(folder: Path, statement: Mapping[str, Any], run: Path | None, baseline: Path | None) -> None:
    """Derive the statement again from the Run, the policy and the baseline, and refuse one that says anything else."""
    predicate = statement["predicate"]
    ways = {key: predicate[key] for key in ("run", "baseline")}
    held = _opened(run or folder / ways["run"], "Run")
    compared = None if ways["baseline"] is None else _opened(baseline or folder / ways["baseline"], "baseline")
    policy = None if predicate["policy"] is None else folder / POLICY
    files = covered_digests(held, policy, compared)
    _refuse(folder, list(_changed_files(subject_digests(statement, folder / STATEMENT), files)))
    derived = build_statement(held, files, policy, compared, ways)
    wrote = predicate["weakspot"]
    derived["predicate"]["weakspot"] = wrote  # another version may well say the same
    wrong = list(_untrue(predicate, derived["predicate"]))
    if not wrong and as_text(derived) != (folder / STATEMENT).read_bytes():
        wrong = [f"{STATEMENT} is not written as weakspot writes it"]
    if not wrong and as_markdown(derived) != (folder / TEXT).read_bytes():
        wrong = [f"{TEXT} does not match {STATEMENT}"]
    if wrong and wrote != __version__:
        wrong.append(f"it was written by weakspot {wrote}, and this is {__version__}: verify it with that one")
    _refuse(folder, wrong)


def _opened(folder: Path, what: str) -> Run:
    if not (folder / MANIFEST).is_file():
        raise RunError(
            f"{folder} holds no weakspot Run: give the folder where the {what} of this bundle is now (--{what.lower()})"
        )
    check_own_file(folder / MANIFEST)
    return Run.open(folder)


def _changed_files(said: Mapping[str, str], there: Mapping[str, str]) -> Iterator[str]:
    """What of the files that the statement names was changed, lost or added."""
    for name in sorted(said.keys() | there.keys()):
        if said.get(name) != there.get(name):
            what = "was added" if name not in said else "is missing" if name not in there else "was changed"
            of = "of the baseline " if name.startswith(OF_BASELINE) else ""
            yield f"{of}{name.removeprefix(OF_BASELINE)} {what}"


def _untrue(written: Mapping[str, Any], derived: Mapping[str, Any]) -> Iterator[str]:
    """What a statement says that does not follow from the Findings."""
    claims = written.get("claims")
    if not isinstance(claims, list) or len(claims) != len(derived["claims"]):
        yield f"its claims are not the {len(derived['claims'])} that follow from the Findings"
    else:
        for said, true in zip(claims, derived["claims"], strict=True):
            if said != true:
                yield f"claim {true['id']} does not follow from {true['finding']}: {_difference(said, true)}"
    for key in sorted((written.keys() | derived.keys()) - {"claims"}):
        if key not in derived or written.get(key) != derived[key]:
            yield f"{key} is not what follows from the Run"


def _difference(said: Any, true: Mapping[str, Any]) -> str:
    """An entry of a claim that differs; best what was measured, as it says why a rule holds or not."""
    if not isinstance(said, dict):
        return "it is not a claim"
    keys = ["measured", *true, *said]
    keys = [key for key in keys if key not in said or key not in true or said[key] != true[key]]
    return f"{keys[0]} is {str(said.get(keys[0]))[:100]}, not {str(true.get(keys[0]))[:100]}"


def _refuse(folder: Path, wrong: list[str]) -> None:
    if wrong:
        more = " …" if len(wrong) > _MOST_REPORTED else ""
        raise RunError(f"{folder} is not valid: {'; '.join(wrong[:_MOST_REPORTED])}{more}")
