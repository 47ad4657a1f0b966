"""The bundle on disk: the case as JSON and Markdown, sealed so that any changed byte is found.

`SHA256SUMS` has a line for every file of the bundle and of the Run, in the form that `sha256sum -c` reads; the seal,
which is the digest of that file, is what to keep or sign elsewhere.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weakspot.core.digest import canonical, digest_file
from weakspot.core.errors import RunError
from weakspot.core.files import whole_folder, writing
from weakspot.core.run import MANIFEST, Run
from weakspot.evidence.case import FORMAT, build_case, run_files
from weakspot.evidence.markdown import as_markdown
from weakspot.gate.judging import Verdict

CASE, TEXT, SUMS, POLICY = "evidence.json", "evidence.md", "SHA256SUMS", "policy.yaml"


@dataclass(frozen=True)
class Bundle:
    """A bundle, written or verified: where it lies, its seal, and how many files it covers."""

    folder: Path
    seal: str
    files: int


def write_bundle(run: Run, folder: Path, *, verdict: Verdict | None = None, policy: Path | None = None) -> Bundle:
    """Write the case of a Run as a folder, whole or not at all; a policy that was judged is kept with it."""
    case = build_case(run, verdict)
    way = Path(os.path.relpath(run.folder, folder)).as_posix()
    with whole_folder(folder) as scratch, writing(folder):
        if policy is not None:
            shutil.copyfile(policy, scratch / POLICY)
        text = json.dumps(canonical({**case, "run": way}), indent=1, ensure_ascii=False)
        (scratch / CASE).write_text(text + "\n", encoding="utf-8")
        (scratch / TEXT).write_text(as_markdown(case), encoding="utf-8")
        own = {path.name: digest_file(path) for path in sorted(scratch.iterdir())}
        sums = _sums(own, {f"{way}/{name}": digest for name, digest in case["files"].items()})
        (scratch / SUMS).write_text(sums, encoding="utf-8")
    return Bundle(folder, digest_file(folder / SUMS), len(own) + len(case["files"]))


def verify_bundle(folder: Path, *, run: Path | None = None, seal: str | None = None) -> Bundle:
    """Raise if any byte of a bundle or of its Run is not as it was when the bundle was written, naming what changed.

    A `run` that was moved is given; a `seal` that was kept shows that nobody wrote the bundle anew.
    """
    case = _read(folder)
    _refuse(folder, _wrong_here(folder, case))
    held = run or folder / str(case["run"])
    if not (held / MANIFEST).is_file():
        raise RunError(f"{held} holds no weakspot run: say where the Run of this bundle lies now with --run")
    _refuse(folder, _wrong_there(held, case["files"]))
    found = digest_file(folder / SUMS)
    if seal is not None and found != seal.lower():
        raise RunError(f"{folder} has the seal {found}, not {seal}: it was written anew, or is another bundle")
    return Bundle(folder, found, len(list(folder.iterdir())) - 1 + len(case["files"]))


def _refuse(folder: Path, wrong: list[str]) -> None:
    if wrong:
        raise RunError(f"{folder} does not hold: {'; '.join(wrong[:20])}{' …' if len(wrong) > 20 else ''}")


def _read(folder: Path) -> dict[str, Any]:
    try:
        case = json.loads((folder / CASE).read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"cannot read {folder / CASE}: {error.strerror}; is this a bundle of evidence?") from error
    except ValueError as error:
        raise RunError(f"{folder} does not hold: {CASE} was changed: {error}") from error
    if not isinstance(case, dict) or case.get("format") != FORMAT or not {"run", "files"} <= case.keys():
        raise RunError(f"{folder} does not hold: {CASE} is no {FORMAT} file, or was changed")
    return case


def _sums(own: dict[str, str], files: dict[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in {**own, **files}.items())


def _wrong_here(folder: Path, case: dict[str, Any]) -> list[str]:
    """What of the bundle's own files is not what the sums say; these must be exactly as they were written."""
    own = {path.name: digest_file(path) for path in sorted(folder.iterdir()) if path.name != SUMS}
    expected = _sums(own, {f"{case['run']}/{name}": digest for name, digest in case["files"].items()})
    try:
        written = (folder / SUMS).read_bytes()
    except OSError as error:
        return [f"cannot read {SUMS}: {error.strerror}"]
    if written == expected.encode():
        return []
    told = [line.split("  ", 1) for line in written.decode(errors="replace").splitlines() if "  " in line]
    lines = {name: digest for digest, name in told}
    changed = [name for name, digest in own.items() if lines.get(name) != digest]
    return [f"{name} was changed or added" for name in changed] or [f"{SUMS} was changed"]


def _wrong_there(run: Path, files: dict[str, str]) -> list[str]:
    """What of the Run's files was changed, lost or added."""
    opened = Run(run)
    lost = [name for name in files if not (run / name).is_file()]
    changed = [name for name, digest in files.items() if name not in lost and digest_file(run / name) != digest]
    there = [] if MANIFEST in changed else [path.as_posix() for path in run_files(opened)]
    told = [(lost, "is missing"), (changed, "was changed"), (sorted(set(there) - files.keys()), "was added")]
    return [f"{name} {what}" for names, what in told for name in names]
