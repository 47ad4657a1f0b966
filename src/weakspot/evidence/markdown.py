"""The statement for people to read."""

from collections.abc import Mapping
from typing import Any

from weakspot.gate.output import cell

_SHORT = 12


def as_markdown(statement: Mapping[str, Any]) -> bytes:
    """A statement as Markdown: what was examined, claims, thresholds, assumptions, limits, evidence."""
    case = statement["predicate"]
    model = case["model"]
    fingerprint, task = (_cell(str(model.get(key) or "not stated")) for key in ("fingerprint", "task"))
    lines = [
        f"# Evidence: {_cell(str(model.get('model') or 'unnamed model'))}",
        "",
        f"Model fingerprint `{fingerprint}`, task {task}.",
        "",
        *_table(("data", "samples", "left out", "fingerprint"), [
            (name, split["samples"], split["skipped"], f"`{split['fingerprint']}`")
            for name, split in case["data"].items()
        ]),
        "",
        *_claims(case),
        "",
        "## Thresholds",
        "",
        *(_table(("Finding", "of", "threshold", "value", "from"), [
            (entry["finding"], entry["of"], entry["name"], entry["value"], entry["from"])
            for entry in case["thresholds"]]) if case["thresholds"] else ["None was set."]),
        "",
        *_listed("Assumptions", case["assumptions"]),
        *_listed("Limits", case["limits"]),
        "## Evidence",
        "",
        "Every file with its SHA-256 digest; `SHA256SUMS` holds the same for `sha256sum -c`. "
        "`weakspot evidence verify` computes this page again from these files.",
        "",
        *_table(("file", "SHA-256"), [
            (file["name"], f"`{file['digest']['sha256']}`") for file in statement["subject"]
        ]),
        "",
    ]  # fmt: skip
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def _claims(case: Mapping[str, Any]) -> list[str]:
    ruled = [claim for claim in case["claims"] if claim["kind"] == "rule"]
    measured = [claim for claim in case["claims"] if claim["kind"] == "measured"]
    lines = ["## Claims", ""]
    if ruled:
        lines += _table(("", "must hold", "holds", "measured", "based on"), [
            (claim["id"], claim["claim"], "yes" if claim["holds"] else "**no**", claim["measured"], _rests(claim))
            for claim in ruled])  # fmt: skip
        lines += ["", *(f"- {claim['id']}: {warning}." for claim in ruled for warning in claim["warnings"]), ""]
    else:
        lines += ["No policy was given: the numbers below were measured, and no threshold was set for them.", ""]
    lines += ["## What was measured", ""]
    rows = [(claim["id"], claim["claim"], claim["measured"], _rests(claim)) for claim in measured]
    return [*lines, *_table(("", "what", "value", "based on"), rows)]


def _rests(claim: Mapping[str, Any]) -> str:
    return f"{claim['finding']} `{str(claim['digest'] or 'missing')[:_SHORT]}`"


def _listed(title: str, texts: list[str]) -> list[str]:
    return [f"## {title}", "", *(f"- {_cell(text)}" for text in texts), ""]


def _table(heads: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    head = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return [*head, *("| " + " | ".join(_cell(str(cell)) for cell in row) + " |" for row in rows)]


def _cell(text: str) -> str:
    """Text for a cell; code and bold are meant."""
    return cell(text, "|[]")
