"""Checks that there is anything to judge: a finished Run that names its model and data, and Findings of both."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.core.options import nearest
from weakspot.core.run import Run
from weakspot.gate.policy import PolicyRule

USUAL_SPLIT = "test"
AGAIN = "examine again"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"-[0-9a-f]{6}$")
"""What stands behind the name of a Finding where two would have the same."""


def unready(run: Run) -> str:
    """Why nothing of a Run can be judged; nothing where it is finished and names its model and data."""
    manifest = run.manifest()
    asked = manifest.get("asked")
    if not isinstance(asked, list):
        return f"the Run does not say which Findings were asked for: {AGAIN}"
    lost = [name for name in map(str, asked) if name not in manifest["findings"]]
    if lost:
        return f"the Run is unfinished: {', '.join(lost)} was asked for and is missing: {AGAIN}"
    if (run.folder / "work").exists():
        return f"the Run is unfinished: an examination was started and did not finish: {AGAIN}"
    if not _text(manifest["subject"].get("fingerprint")):
        return f"the Run does not name its model: {AGAIN}"
    if not manifest["data"]:
        return f"the Run does not name its data: {AGAIN}"
    return ""


def unfounded(finding: Finding, run: Run, rule: PolicyRule, where: str) -> str:
    """Why a Finding is no evidence of what a rule is about; nothing where it is."""
    sources = _sources(finding, run)
    if isinstance(sources, str):
        return sources
    manifest = run.manifest()
    if any(source["subject"] != manifest["subject"]["fingerprint"] for source in sources):
        return f"it was computed with a model other than the Run's: {AGAIN}"
    for source in sources:
        wrong = _wrong_data(source["data"], finding.name, run, rule, where)
        if wrong:
            return wrong
    return _too_few(sources, rule)


def _sources(finding: Finding, run: Run) -> list[Mapping[str, Any]] | str:
    """What names model and data: its provenance, or that of the Findings it was built from; or why nothing does."""
    made = finding.provenance
    if _text(made.get("subject")) and _text(made.get("data")):
        return [made]
    named = [digest for value in made.values() for digest in _digests(value)]
    if not named or {"subject", "data"} & made.keys():
        return f"its provenance does not name its model and data: {AGAIN}"
    names = {digest: name for name, digest in run.manifest()["findings"].items()}
    if not set(named) <= names.keys():
        return "it was built from Findings that are not in the Run: make it again"
    sources: list[Mapping[str, Any]] = []
    for digest in named:
        of_finding = _sources(run[names[digest]], run)
        if isinstance(of_finding, str):
            return of_finding
        sources += of_finding
    return sources


def _digests(value: Any) -> list[str]:
    held = value if isinstance(value, list) else [value]
    return [item for item in held if isinstance(item, str) and _DIGEST.fullmatch(item)]


def _wrong_data(data: str, name: str, run: Run, rule: PolicyRule, where: str) -> str:
    """Why these are not the data that a rule is about; nothing where they are."""
    splits = run.manifest()["data"]
    of = [split for split, split_data in splits.items() if split_data.get("fingerprint") == data]
    if not of:
        return f"it was computed on data other than the Run's: {AGAIN}"
    if rule.split is not None and rule.split not in splits:
        named = list(splits)
        raise ConfigError(
            f"{where}: {run.folder} has no split {rule.split!r}: {nearest(rule.split, named)}it has {', '.join(named)}"
        )
    meant = rule.split or _split_meant(name, list(splits))
    if meant is None:
        return f"the Run has no split {USUAL_SPLIT}: set `split` in the rule to one of {', '.join(splits)}"
    if meant in of:
        return ""
    return f"it was computed on the split {of[0]}, not on {meant}: if you mean that, write `split: {of[0]}` in it"


def _split_meant(name: str, splits: Sequence[str]) -> str | None:
    """The split that a Finding's name ends with, else the test data, else the only ones that there are."""
    ending = [split for whole in (name, _KEY.sub("", name)) for split in splits if whole.endswith(f"-{split}")]
    if ending:
        return max(ending, key=len)
    if USUAL_SPLIT in splits:
        return USUAL_SPLIT
    return splits[0] if len(splits) == 1 else None


def _too_few(sources: Sequence[Mapping[str, Any]], rule: PolicyRule) -> str:
    if rule.least_samples is None:
        return ""
    counts = [source.get("samples") for source in sources]
    whole = [count for count in counts if isinstance(count, int)]
    if len(whole) < len(counts):
        return f"an unknown number of samples: the rule requires at least {rule.least_samples:,}"
    fewest = min(whole)
    return "" if fewest >= rule.least_samples else too_few(fewest, "samples", rule.least_samples)


def too_few(count: int, what: str, least: int) -> str:
    """That there are fewer than a rule requires."""
    return f"{count:,} {what}: the rule requires at least {least:,}"


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
