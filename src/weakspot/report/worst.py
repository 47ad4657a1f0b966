"""The worst of what was found, with pictures, ordered by the share of the inputs that each concerns."""

from collections.abc import Iterator, Sequence

from weakspot.core.finding import Finding
from weakspot.core.room import WorstFinding
from weakspot.formatting import label
from weakspot.report.headlines import by_room
from weakspot.rooms import rooms

MOST = 3


def worst(findings: Sequence[Finding], *, task: str = "") -> list[WorstFinding]:
    """At most three: what the rooms tell, then pictures of other Findings."""
    named = [one for room, of_room in by_room(findings).items() for one in rooms()[room].worst(of_room, task)]
    ordered = sorted(named, key=lambda one: -one.share)[:MOST]
    return ordered + list(_pictured(findings, {one.finding for one in ordered}))[: MOST - len(ordered)]


def _pictured(findings: Sequence[Finding], used: set[str]) -> Iterator[WorstFinding]:
    """The first picture of each further Finding of a room whose numbers may decide something."""
    aside = {name for name, room in rooms().items() if not room.evidence}
    for finding in findings:
        if finding.name not in used and finding.media and finding.name.partition(".")[0] not in aside:
            key, picture = next(iter(finding.media.items()))
            yield WorstFinding(
                label(finding.name), picture.caption or finding.about, finding.name, 0.0, [(key, picture)]
            )
