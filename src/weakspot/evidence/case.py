"""What a Run lets one claim: claims with what supports them, thresholds, assumptions, limits, as plain values."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weakspot.core.digest import canonical
from weakspot.core.errors import RunError
from weakspot.core.finding import Finding
from weakspot.core.run import MANIFEST, Run
from weakspot.gate.basis import unready
from weakspot.gate.evaluation import Verdict
from weakspot.gate.policy import LEAST

INDEPENDENT = (
    "The samples of each split are drawn independently from the situations in which the model will be used; every "
    "interval depends on that."
)
GROUPED = (
    "The groups of samples that belong together, by {columns}, are drawn independently from the situations in which "
    "the model will be used; every interval depends on that."
)
ASSUMPTIONS = {
    "": (
        INDEPENDENT,
        "The labels are correct.",
        "The deployed model has the fingerprint given here, and the same preprocessing as in the examination.",
    ),
    "coverage": ("The neurons of the examined layers represent the behaviour of the model.",),
    "robustness": ("The perturbations that were drawn occur in use, and do not change the correct prediction.",),
    "classes": ("Classes with similar activations are those that the model confuses; labels, where given, test it.",),
    "causes": ("Errors with similar heat maps have the same cause; a person has looked at each cluster.",),
    "lesions": ("The sampled segmentations vary most where the model errs; the reference lesions are correct.",),
}
"""By room; those of all rooms under no name."""
LIMITS = {
    "": (
        "Nothing is claimed about what was not examined: other data, other perturbations, other kinds of input.",
        "The confidence of an interval is for that interval alone; of many intervals, some miss the true value.",
    ),
    "coverage": (
        "Coverage alone does not measure quality and supports no claim (Harel-Canada et al. 2020, Li et al. 2019).",
    ),
}
_THRESHOLD = re.compile(r"(^|_)(threshold|cutoff|confidence|quantile|tolerance|error|near|least|most|limit)(_|$)")


def build_case(run: Run, verdict: Verdict | None = None) -> dict[str, Any]:
    """The case of a Run, its rules first where a policy was judged; every Finding is verified byte by byte before."""
    manifest = run.manifest()
    findings = [run[name] for name in _asked_findings(manifest)]
    rooms = dict.fromkeys(["", *(finding.name.partition(".")[0] for finding in findings)])
    claims = [*_ruled(verdict, run), *(claim for finding in findings for claim in _measured(finding, run))]
    return {
        "model": manifest["subject"],
        "data": {name: _split(split_data, run) for name, split_data in manifest["data"].items()},
        "claims": [{"id": f"C{number}", **claim} for number, claim in enumerate(claims, start=1)],
        "thresholds": [*_bounds(verdict), *(entry for finding in findings for entry in _settings(finding))],
        "assumptions": [_assumption(text, findings) for room in rooms for text in ASSUMPTIONS.get(room, ())],
        "limits": [*(text for room in rooms for text in LIMITS.get(room, ())), *_own_limits(run, findings)],
    }


def _assumption(text: str, findings: Sequence[Finding]) -> str:
    """The assumption; where samples belong together, it is their groups that must be independent."""
    entries = [finding.provenance.get("groups") for finding in findings]
    columns = sorted({str(entry.get("column")) for entry in entries if isinstance(entry, Mapping)})
    return GROUPED.format(columns=", ".join(columns)) if columns and text == INDEPENDENT else text


def _asked_findings(manifest: Mapping[str, Any]) -> list[str]:
    """The Findings that were asked for, not only made for others; all where the manifest does not say."""
    asked = manifest.get("asked")
    there = [name for name in asked if name in list(manifest["findings"])] if isinstance(asked, list) else []
    return there or list(manifest["findings"])


def _ruled(verdict: Verdict | None, run: Run) -> Iterator[dict[str, Any]]:
    for one in [] if verdict is None else verdict.judged:
        claim = {"claim": f"{one.rule.title}: {one.rule.claim}" if one.rule.name else one.rule.claim}
        judgement = {"holds": one.passed, "measured": one.measured, "warnings": list(one.warnings)}
        yield {"kind": "rule", **claim, **judgement, **_rests(one.rule.finding, run)}


def _measured(finding: Finding, run: Run) -> Iterator[dict[str, Any]]:
    """What a Finding's numbers say; a number that is missing claims nothing."""
    for name, estimate in finding.summary.items():
        if estimate.value is not None:
            about = f" ({estimate.about})" if estimate.about else ""
            claim = {"claim": f"{name}{about}", "estimate": canonical(estimate), "measured": str(estimate)}
            yield {"kind": "measured", **claim, **_rests(finding.name, run)}


def _rests(name: str, run: Run) -> dict[str, Any]:
    """The Finding that a claim rests on; it is none of the Run where a rule asked whether it is there."""
    return {"finding": name, "digest": run.manifest()["findings"].get(name)}


def _split(entry: Mapping[str, Any], run: Run) -> dict[str, Any]:
    return {
        "samples": entry.get("samples"),
        "fingerprint": entry.get("fingerprint"),
        "skipped": len(_mapping(entry, "skipped", run.folder / MANIFEST)),
    }


def _mapping(held: Mapping[str, Any], key: str, source: object) -> Mapping[str, Any]:
    mapping = held.get(key) or {}
    if not isinstance(mapping, dict):
        raise RunError(f"{source} is damaged: {key} is no mapping; restore it or examine again")
    return mapping


def _bounds(verdict: Verdict | None) -> Iterator[dict[str, Any]]:
    for one in [] if verdict is None else verdict.judged:
        for name in ("at_most", "at_least", "equals", "worse_by_at_most", "new_causes", "confidence", *LEAST):
            value = getattr(one.rule, name)
            if value is not None:
                where = one.rule.number or one.rule.column or "root causes"
                yield {"finding": one.rule.finding, "of": where, "name": name, "value": value, "from": "policy"}


def _settings(finding: Finding) -> Iterator[dict[str, Any]]:
    """Settings of a Finding that decide what counts as what."""
    for name, value in _mapping(finding.provenance, "parameters", finding.name).items():
        if _THRESHOLD.search(name) and isinstance(value, int | float | str) and value is not None:
            yield {"finding": finding.name, "of": "", "name": name, "value": value, "from": "settings"}


def _own_limits(run: Run, findings: Sequence[Finding]) -> Iterator[str]:
    """What limits this Run: unfinished, samples left out, another model, inference options, outputs that vary."""
    manifest, missing = run.manifest(), unready(run)
    if missing:
        yield f"{missing[0].upper()}{missing[1:]}."
    for name, entry in manifest["data"].items():
        if entry.get("skipped"):
            yield f"{len(entry['skipped'])} unusable samples of {name} were left out."
    fingerprint = manifest["subject"].get("fingerprint")
    for part in manifest["subject"].get("not_fingerprinted", ()):
        yield f"The fingerprint of the model does not cover {part}."
    for finding in findings:
        if fingerprint and finding.provenance.get("subject", fingerprint) != fingerprint:
            yield f"{finding.name} was computed with a model other than the one named here."
        if finding.provenance.get("inference_options"):
            yield f"{finding.name} was not computed in plain float32: {finding.provenance['inference_options']}."
        if finding.provenance.get("answers"):
            yield f"{finding.name} cannot be reproduced: its model predicts differently each time."
