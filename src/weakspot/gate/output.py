"""A verdict for machines and for people: JSON, JUnit XML, Markdown for a pull request, and plain lines."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from weakspot.core.digest import canonical
from weakspot.formatting import counted, label
from weakspot.gate.evaluation import Judged, Verdict

_UNPRINTABLE = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold."""


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain values."""
    return {
        "passed": verdict.passed,
        "run": verdict.run,
        "policy": verdict.policy,
        "model": verdict.subject.get("model"),
        "fingerprint": verdict.subject.get("fingerprint"),
        "rules": [_entry(one) for one in verdict.judged],
    }


def _entry(one: Judged) -> dict[str, Any]:
    return {
        "name": one.rule.title,
        "finding": one.rule.finding,
        "claim": one.rule.claim,
        "passed": one.passed,
        "measured": one.measured,
        "warnings": list(one.warnings),
        "rule": canonical(
            {name: value for name, value in vars(one.rule).items() if value not in (None, "", False, {})}
        ),
    }


def as_junit(verdict: Verdict) -> str:
    """The verdict as JUnit XML: one test case for each rule."""
    counts = {"tests": str(len(verdict.judged)), "failures": str(len(verdict.failed)), "errors": "0"}
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "weakspot gate", **counts, "skipped": "0"})
    for one in verdict.judged:
        case = ET.SubElement(suite, "testcase", {"classname": _xml(one.rule.finding), "name": _xml(one.rule.title)})
        said = _xml(f"{one.rule.claim}: {one.measured}")
        if not one.passed:
            ET.SubElement(case, "failure", {"message": said, "type": "weakspot.gate"}).text = said
        ET.SubElement(case, "system-out").text = "\n".join([said, *map(_xml, one.warnings)])
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def as_markdown(verdict: Verdict) -> str:
    """The verdict for a pull request: a heading, a table, and what to know of it."""
    held = len(verdict.judged) - len(verdict.failed)
    head = f"## weakspot: {'passed' if verdict.passed else 'failed'}"
    sentence = (
        f"{held} of {len(verdict.judged)} rules hold for {cell(str(verdict.subject.get('model') or 'the model'))}."
    )
    lines = [head, "", sentence, "", "| | rule | measured | Finding |", "|---|---|---|---|"]
    for one in verdict.judged:
        name = f"{one.rule.name}: " if one.rule.name else ""
        cells = (name + one.rule.claim, one.measured, one.rule.finding)
        lines.append(f"| {'✅' if one.passed else '❌'} | " + " | ".join(map(cell, cells)) + " |")
    warnings = [f"- {cell(one.rule.title)}: {warning}" for one in verdict.judged for warning in one.warnings]
    text = "\n".join([*lines, *(["", *warnings] if warnings else []), ""])
    return text.encode("utf-8", "backslashreplace").decode()  # names may hold what UTF-8 cannot


def as_sentence(verdict: Verdict) -> str:
    """The verdict for those who decide: the policy allows it, forbids it, or cannot tell."""
    rules, failed, policy = counted(len(verdict.judged), "rule"), verdict.failed, Path(verdict.policy).name
    broken = [one for one in failed if one.decided]
    if not failed:
        held = f"all {rules} of {policy} hold" if len(verdict.judged) > 1 else f"the one rule of {policy} holds"
        return f"Release: {held}."
    if broken:
        return f"Do not release: {len(broken)} of {rules} of {policy} {_do(broken)} not hold."
    lack = "lacks" if len(failed) == 1 else "lack"
    return f"Cannot tell: {len(failed)} of {rules} of {policy} {lack} evidence."


def _do(broken: Sequence[Judged]) -> str:
    return "does" if len(broken) == 1 else "do"


def open_points(verdict: Verdict) -> list[str]:
    """What does not hold, or cannot be told, rule by rule."""
    return [
        f"{'' if one.decided else 'no evidence: '}{one.rule.name or label(one.rule.finding)}: {one.rule.claim}; "
        f"measured: {one.measured}"
        for one in sorted(verdict.failed, key=lambda one: not one.decided)
    ]


def as_lines(verdict: Verdict) -> list[str]:
    """The verdict for a terminal."""
    lines = []
    for one in verdict.judged:
        name = f"{one.rule.name}: " if one.rule.name else ""
        lines.append(f"{'passed' if one.passed else 'FAILED'}  {one.rule.finding}  {name}{one.rule.claim}")
        lines.append(f"        {one.measured}")
        lines += [f"        warning: {warning}" for warning in one.warnings]
    held = len(verdict.judged) - len(verdict.failed)
    return [*lines, f"{held} of {len(verdict.judged)} rules hold"]


def _xml(text: str) -> str:
    return _UNPRINTABLE.sub("?", text)


def cell(text: str, signs: str = "|`*_[]") -> str:
    r"""Text that stays inside its cell of a table and is no HTML; these signs of Markdown are taken as they stand.

    >>> cell("a|b <script>`x`")
    'a\\|b &lt;script&gt;\\`x\\`'
    """
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(f"([{re.escape(signs)}])", r"\\\1", plain)
