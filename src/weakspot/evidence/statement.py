"""The case of a Run in the form of an in-toto Statement, so that verifiers of others read it.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weakspot._version import __version__
from weakspot.core.digest import canonical
from weakspot.core.errors import RunError
from weakspot.core.run import Run
from weakspot.evidence.case import build_case
from weakspot.evidence.covered import POLICY
from weakspot.gate.evaluation import judge
from weakspot.gate.policy import read_policy

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:weakspot:evidence:v1"
STATEMENT = "evidence.json"


def build_statement(
    run: Run, files: Mapping[str, str], policy: Path | None, baseline: Run | None, ways: Mapping[str, str | None]
) -> dict[str, Any]:
    """All that a bundle says of a Run, from its files and a policy alone: the same files give the same statement.

    files: the digests of all that it rests on.
    ways: from the bundle to the `run` and the `baseline`.
    """
    rules = None if policy is None else read_policy(policy)
    if rules is not None and rules.baseline is not None and baseline is None:
        raise RunError(f"{policy} names a baseline, and the bundle does not say where it is: write the bundle again")
    verdict = None if rules is None else judge(run, rules, baseline)
    made = {"weakspot": __version__, **ways, "policy": None if policy is None else POLICY}
    return {
        "_type": TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in files.items()],
        "predicateType": PREDICATE_TYPE,
        "predicate": canonical({**made, **build_case(run, verdict)}),
    }


def as_text(statement: Mapping[str, Any]) -> bytes:
    """A statement as it is written; what UTF-8 cannot write stands as an escape of JSON."""
    text = json.dumps(statement, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def read_statement(content: bytes, path: Path) -> dict[str, Any]:
    """A statement that has the form of one; whether it is true is another question."""
    try:
        statement = json.loads(content)
    except ValueError as error:
        raise RunError(f"{path} was changed: it is not JSON: {error}") from error
    except RecursionError as error:
        raise RunError(f"{path} was changed: nested too deep") from error
    if (
        not isinstance(statement, dict)
        or statement.get("_type") != TYPE
        or statement.get("predicateType") != PREDICATE_TYPE
    ):
        raise RunError(f"{path} is not a statement of weakspot's evidence ({TYPE}, {PREDICATE_TYPE}): write it again")
    predicate = statement.get("predicate")
    described = predicate if isinstance(predicate, dict) else {}
    texts = isinstance(described.get("weakspot"), str) and isinstance(described.get("run"), str)
    if not texts or not all(
        key in described and isinstance(described[key], str | None) for key in ("policy", "baseline")
    ):
        raise RunError(
            f"{path} was changed: its predicate does not say which version wrote it, and which run, policy and "
            "baseline it rests on"
        )
    subject_digests(statement, path)
    return statement


def subject_digests(statement: Mapping[str, Any], path: Path) -> dict[str, str]:
    """The digest of each subject by its name."""
    try:
        named = [(subject["name"], subject["digest"]["sha256"]) for subject in statement["subject"]]
        digests = dict(named)
    except (KeyError, TypeError) as error:
        raise RunError(f"{path} was changed: a subject has no name or no SHA-256") from error
    if len(digests) != len(named) or not all(isinstance(part, str) for pair in named for part in pair):
        raise RunError(f"{path} was changed: names and digests of subjects must be text, and each name stand once")
    return digests
