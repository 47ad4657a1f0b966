"""Which split a Finding belongs to, and which Findings are of another model or other data than the Run names."""

from collections.abc import Mapping
from typing import Any

from weakspot.core.errors import RunError
from weakspot.core.finding import Finding
from weakspot.viewer.reading import NotThereError, RunReader

ID = "id"
"""The column of a table that names inputs."""


def class_names(manifest: Mapping[str, Any]) -> list[str]:
    """The names of the classes, where the subject has any."""
    return list(map(str, _listed(manifest["subject"].get("classes"))))


def asked(manifest: Mapping[str, Any]) -> list[str]:
    """The Findings that were asked for, not only made for others; all where the manifest does not say."""
    named = [name for name in _listed(manifest.get("asked")) if isinstance(name, str)]
    return named or list(manifest["findings"])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def split_names(manifest: Mapping[str, Any], finding: Finding) -> list[str]:
    """The splits whose data a Finding was made from; usually one."""
    data = finding.provenance.get("data")
    return [name for name, entry in manifest["data"].items() if data and entry.get("fingerprint") == data]


def outdated(manifest: Mapping[str, Any], finding: Finding) -> str:
    """What is wrong with showing a Finding beside the others; empty where nothing is."""
    subject = manifest["subject"].get("fingerprint")
    if subject and finding.provenance.get("subject", subject) != subject:
        return f"{finding.name} was computed on another model than the Run's: examine again to bring it up to date"
    if manifest["data"] and finding.provenance.get("data") and not split_names(manifest, finding):
        return f"{finding.name} was computed on other data than the Run's: examine again to bring it up to date"
    return ""


def findings_of(run: RunReader, split: str) -> list[str]:
    """The Findings about a split, in the order in which they were made."""
    manifest = run.manifest()
    return [
        name
        for name, head in run.heads().items()
        if split in split_names(manifest, head) and not outdated(manifest, head)
    ]


def sampled_splits(run: RunReader) -> list[str]:
    """The splits of which anything is known input by input, the test data first."""
    return run.kept("sampled_splits", lambda: _sampled(run))


def _sampled(run: RunReader) -> list[str]:
    names = sorted(run.manifest()["data"], key=lambda name: name != "test")
    return [name for name in names if any(_has_samples(run, finding) for finding in findings_of(run, name))]


def _has_samples(run: RunReader, name: str) -> bool:
    """Read from the index alone: tables may be large, and a page is shown before any of them is needed."""
    try:
        return ID in run.columns(name)
    except RunError:
        return False


def chosen_split(run: RunReader, split: str | None) -> str:
    """The split that a request names, or the first that there is."""
    sampled = sampled_splits(run)
    if not sampled:
        raise NotThereError("the Run has no values of single inputs: examine with a question such as causes")
    if split is None:
        return sampled[0]
    if split not in sampled:
        raise NotThereError(f"there is no split {split!r} with samples: expected one of {', '.join(sampled)}")
    return split


def split_of(run: RunReader, finding: Finding) -> str | None:
    """The split with samples that a Finding is about."""
    splits = split_names(run.manifest(), finding)
    return next((name for name in sampled_splits(run) if name in splits), None)
