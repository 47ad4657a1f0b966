"""The case that a Run makes: claims with what they rest on, thresholds, assumptions and limits, as plain values."""

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

ASSUMPTIONS = {
    "": (
        "The samples of each split are drawn independently from the situations in which the model will be used; every "
        "interval rests on that.",
        "The labels of the data are right.",
        "The model in use is the one whose fingerprint stands here, with the pre-processing it was examined with.",
    ),
    "coverage": ("What the neurons of the watched layers do stands for what the model does.",),
    "robustness": ("The variations that were drawn are those that occur, and change no true answer.",),
    "classes": ("Classes that activate the same neurons are those that are mixed up; labels, where given, test it.",),
    "causes": ("Errors with alike heat maps have one cause; a person has looked at each cluster.",),
    "lesions": ("The sampled segmentations spread as the model errs; the reference lesions are right.",),
}
"""By room; those of all rooms under no name."""
LIMITS = {
    "": (
        "What was not examined is not shown: other data, other variations, other kinds of input.",
        "Each interval holds by itself with its confidence; of many, some miss.",
    ),
    "coverage": (
        "Coverage is no measure of quality by itself and supports no claim alone (Harel-Canada et al. 2020, "
        "Li et al. 2019).",
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
        "assumptions": [text for room in rooms for text in ASSUMPTIONS.get(room, ())],
        "limits": [*(text for room in rooms for text in LIMITS.get(room, ())), *_own_limits(run, findings)],
    }


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
            yield f"{len(entry['skipped'])} samples of {name} could not be used and were left out."
    fingerprint = manifest["subject"].get("fingerprint")
    for part in manifest["subject"].get("not_fingerprinted", ()):
        yield f"The fingerprint of the model does not cover {part}."
    for finding in findings:
        if fingerprint and finding.provenance.get("subject", fingerprint) != fingerprint:
            yield f"{finding.name} was computed on another model than the one named here."
        if finding.provenance.get("inference_options"):
            yield f"{finding.name} was not computed in plain float32: {finding.provenance['inference_options']}."
        if finding.provenance.get("answers"):
            yield f"{finding.name} was computed on a model that answers differently each time: it cannot be repeated."
