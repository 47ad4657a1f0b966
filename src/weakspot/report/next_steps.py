"""What to do next, from what was found: the most promising first."""

from collections.abc import Iterator, Sequence

from weakspot.core.finding import Finding
from weakspot.core.outputs import Advice
from weakspot.core.room import NextStep
from weakspot.core.templates import SLOT, slots
from weakspot.formatting import in_unit
from weakspot.report.headlines import by_room
from weakspot.rooms import rooms

_GATE = NextStep(
    "Put thresholds for these numbers into a policy, and check every new model against it.",
    command="weakspot gate RUN policy.yaml",
)


def next_steps(findings: Sequence[Finding]) -> list[NextStep]:
    """The advice that Findings declare, what rooms add to it and, where there is anything to keep, the gate."""
    advice = [
        (one.rank, step) for finding in findings for one in finding.outputs.advice for step in _filled_in(one, finding)
    ]
    declared = [step for _, step in sorted(advice, key=lambda pair: pair[0])]
    added = [step for room, of_room in by_room(findings).items() for step in rooms()[room].next_steps(of_room)]
    return [*declared, *added, _GATE] if findings else []


def _filled_in(advice: Advice, finding: Finding) -> Iterator[NextStep]:
    """The advice, if all its numbers are there and none is zero."""
    names = slots(advice.text)
    if all(name in finding.summary and finding.summary[name].value for name in names):
        text = SLOT.sub(lambda slot: _number(slot[1], finding), advice.text)
        yield NextStep(text, finding.name, advice.command)


def _number(name: str, finding: Finding) -> str:
    return in_unit(finding.summary[name].value, finding.outputs.number(name).unit)
