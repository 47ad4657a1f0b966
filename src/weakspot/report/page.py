"""What the page shows, as plain values in reading order: the subject, then room by room every Finding of the Run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from weakspot.core.digest import digest_file
from weakspot.core.finding import TABLE, Finding, Picture
from weakspot.core.room import WorstFinding
from weakspot.core.run import MANIFEST, Run
from weakspot.formatting import counted, label, short, show_estimate
from weakspot.report.drawings import figures
from weakspot.report.headlines import answer, by_room
from weakspot.report.next_steps import next_steps
from weakspot.report.provenance import built_from, origins, variation_words
from weakspot.report.tables import show_table
from weakspot.report.view_models import (
    FindingSection,
    ReportPage,
    RoomSection,
    ShownSubject,
    ShownVerdict,
    Split,
    WorstCard,
    show_picture,
)
from weakspot.report.worst import worst
from weakspot.rooms import QUESTIONS, rooms

OTHER = "other"
GROUNDWORK = "groundwork"
_QUESTIONS_AFTER = {OTHER: "Other results", GROUNDWORK: "Intermediate results"}
_DATA = "data."
"""How the names of Findings begin that describe the inputs and answer no question."""
_MOST_CLASSES = 12


@dataclass(frozen=True)
class _Context:
    """What a Finding's section needs to know of the rest of the Run.

    pictures: by Finding, those that rooms make of several Findings.
    """

    manifest: Mapping[str, Any]
    names: Mapping[str, str]
    used_by: Mapping[str, list[str]]
    provenance: Mapping[str, Mapping[str, Any]]
    pictures: Mapping[str, list[tuple[str, Picture]]]


def build_page(run: Run, verdict: ShownVerdict | None = None) -> ReportPage:
    """Everything the report shows of a Run, with what a policy says of it, if there is one."""
    manifest = run.manifest()
    findings = list(run)
    names = {digest: name for name, digest in manifest["findings"].items()}
    sources = {finding.name: built_from(finding, names) for finding in findings}
    used_by = {name: [user for user, needed in sources.items() if name in needed] for name in sources}
    made = [room.pictures(findings) for room in rooms().values()]
    pictures = {name: shown for of_room in made for name, shown in of_room.items()}
    context = _Context(manifest, names, used_by, {finding.name: finding.provenance for finding in findings}, pictures)
    groundwork = {name for name, users in used_by.items() if users and name not in manifest.get("asked", [])}
    shown = [finding for finding in findings if finding.name not in groundwork]
    answering = [finding for finding in shown if not _warnings(finding.provenance, manifest)]
    asked, ever = by_room(answering), by_room(shown)
    answers = [answer(room, of_room) for room, of_room in asked.items()]
    opened = {one.finding for one in answers if rooms()[one.room].evidence}
    sections = [
        replace(section, open=section.name in opened) for section in (build_section(one, context) for one in findings)
    ]
    return ReportPage(
        subject=describe_subject(manifest, _written(run)),
        answers=answers,
        not_asked=[question for room, question in QUESTIONS.items() if room not in ever],
        outdated=[QUESTIONS[room] for room in ever if room not in asked],
        worst=[_card(one, pictures) for one in worst(answering, task=manifest["subject"].get("task") or "")],
        steps=next_steps(answering),
        rooms=_rooms(sections),
        findings=len(findings),
        manifest_digest=digest_file(run.folder / MANIFEST),
        verdict=verdict,
    )


def _written(run: Run) -> str:
    moment = datetime.fromtimestamp((run.folder / MANIFEST).stat().st_mtime, UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def describe_subject(manifest: Mapping[str, Any], written: str = "") -> ShownSubject:
    """The subject and its data; what the manifest does not say stays empty."""
    subject = manifest["subject"]
    splits = [
        Split(
            name,
            entry.get("samples"),
            entry.get("fingerprint", ""),
            len(entry.get("skipped") or ()),
            entry.get("made", ""),
        )
        for name, entry in manifest["data"].items()
    ]
    classes = subject.get("classes") or []
    more = f" … ({counted(len(classes), 'class')} in all)" if len(classes) > _MOST_CLASSES else ""
    return ShownSubject(
        model=subject.get("model") or "Unnamed model",
        task=subject.get("task") or "",
        fingerprint=subject.get("fingerprint") or "",
        classes=", ".join(map(str, classes[:_MOST_CLASSES])) + more,
        splits=splits,
        weights=subject.get("weights") or "",
        written=written,
    )


def build_section(finding: Finding, context: _Context) -> FindingSection:
    """One Finding, ready to print."""
    return FindingSection(
        name=finding.name,
        title=label(finding.name),
        about=finding.about,
        where=_where(finding.provenance, context.manifest) + _rests_on(finding, context),
        warnings=_warnings(finding.provenance, context.manifest),
        summary=[show_estimate(name, one, finding.outputs.number(name)) for name, one in finding.summary.items()],
        figures=figures(finding, list(map(str, context.manifest["subject"].get("classes") or []))),
        pictures=[
            show_picture(name, picture)
            for name, picture in [*finding.media.items(), *context.pictures.get(finding.name, [])]
        ],
        table=None if finding.table is None else show_table(finding.table, finding.outputs),
        table_file=f"findings/{finding.name}/{TABLE}",
        origins=origins(finding, context.names),
        used_by=[] if finding.name in context.manifest.get("asked", []) else context.used_by.get(finding.name, []),
    )


def _card(one: WorstFinding, made: Mapping[str, list[tuple[str, Picture]]]) -> WorstCard:
    """With the pictures that it brings, else with the first two that were made for its Finding."""
    shown = one.pictures or made.get(one.finding, [])[:2]
    return WorstCard(one.title, one.text, one.finding, [show_picture(name, picture) for name, picture in shown])


def _caution(room: str) -> str:
    declared = rooms().get(room)
    return "" if declared is None else declared.caution


def _rooms(sections: list[FindingSection]) -> list[RoomSection]:
    """Sections by the question they answer; last come those that others were built from."""
    leads = {name for name, room in rooms().items() if room.lead}
    shown = [
        RoomSection(
            name,
            question,
            _caution(name),
            [section for section in sections if _room(section) == name],
            lead=name in leads,
        )
        for name, question in {**QUESTIONS, **_QUESTIONS_AFTER}.items()
    ]
    return [room for room in shown if room.sections]


def _room(section: FindingSection) -> str:
    return GROUNDWORK if section.used_by or section.name.startswith(_DATA) else _room_of(section.name)


def _room_of(name: str) -> str:
    room, dot, _ = name.partition(".")
    return room if dot and room in QUESTIONS else OTHER


def _where(provenance: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """Over which data, and how many samples."""
    splits = [name for name, entry in manifest["data"].items() if entry.get("fingerprint") == provenance.get("data")]
    samples = provenance.get("samples")
    split = [f"{' = '.join(splits)} data"] if splits else []
    return [*split, counted(samples, "sample")] if isinstance(samples, int) else split


def _rests_on(finding: Finding, context: _Context) -> list[str]:
    """In words how inputs were varied, and on which other data it rests."""
    variation = finding.provenance.get("parameters", {}).get("variation")
    varied = [variation_words(variation)] if isinstance(variation, Mapping) else []
    behind = [
        context.provenance[name] for name in sorted(built_from(finding, context.names)) if name in context.provenance
    ]
    other = [one for one in behind if one.get("data") != finding.provenance.get("data")]
    rests = list(dict.fromkeys(" ".join(reversed(_where(one, context.manifest))) for one in other))
    return varied + [f"rests on {words}" for words in rests]


def _warnings(provenance: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """What a Run that was continued with another model or other data still holds from before, and what varies."""
    subject, data = manifest["subject"].get("fingerprint"), provenance.get("data")
    fingerprints = {entry.get("fingerprint") for entry in manifest["data"].values()}
    warnings = []
    if provenance.get("answers"):
        warnings.append("The model answers differently each time, so these numbers cannot be repeated.")
    if subject and provenance.get("subject", subject) != subject:
        warnings.append(
            f"This was computed on another model (fingerprint {short(str(provenance['subject']))}) than the one named "
            "at the top. Examine again to bring it up to date."
        )
    if fingerprints and data and data not in fingerprints:
        warnings.append(
            f"This was computed on data (fingerprint {short(str(data))}) that are none of the splits named at the top. "
            "Examine again to bring it up to date."
        )
    return warnings
