"""What a room adds to its probes' declarations, for those who read Findings: torch-free.

Each room has a module `outputs` with a `ROOM`; `weakspot.registry.rooms` finds them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from weakspot.core.finding import Finding, Picture
from weakspot.core.outputs import Outputs


@dataclass(frozen=True)
class WorstFinding:
    """One of the worst things found.

    title: what it is, as a heading.
    text: how sure that is, in a sentence.
    finding: the name of the Finding that it is from.
    share: the share of the inputs that it concerns; the report shows the largest first.
    pictures: what it looks like, by the pictures' names.
    """

    title: str
    text: str
    finding: str
    share: float
    pictures: Sequence[tuple[str, Picture]] = ()


@dataclass(frozen=True)
class NextStep:
    """Something to do, with the Finding it rests on and the command that does it, where there is one."""

    text: str
    finding: str = ""
    command: str = ""


@dataclass(frozen=True)
class ViewerPage:
    """A page of the viewer that a room brings along.

    name: its address and the name of its script.
    title, about: its heading, and what it shows in a sentence.
    findings: it is shown if a Run has any of these.
    """

    name: str
    title: str
    about: str
    findings: tuple[str, ...]


def no_worst(findings: Sequence[Finding], task: str) -> Sequence[WorstFinding]:
    """A room that has nothing to add."""
    return ()


def no_pictures(findings: Sequence[Finding]) -> Mapping[str, list[tuple[str, Picture]]]:
    """A room whose Findings hold all their pictures."""
    return {}


def no_steps(findings: Sequence[Finding]) -> Sequence[NextStep]:
    """A room whose next steps are all declared."""
    return ()


@dataclass(frozen=True)
class Room:
    """One question as its readers know it.

    findings: every Finding that the room makes, by name, with what it holds.
    caution: shown with the room's Findings; `reminder` is its short form.
    evidence: whether its numbers may decide a gate by themselves.
    worst: the worst things that its Findings show, given the Findings and the task.
    lead: whether the report shows it before all else.
    pictures: by Finding, pictures that are made of several Findings, given all of them.
    groups: by the name of a Finding, what makes groups of it in which another Run may be compared: by what they are
        called, the group of each input by its id. They must not be chosen by the answers for these inputs.
    next_steps: what to do next, where that cannot be declared.
    pages: pages of the viewer; their routes are in the room's module `pages`, as `router`.
    """

    name: str
    findings: Mapping[str, Outputs] = field(default_factory=dict)
    caution: str = ""
    reminder: str = ""
    evidence: bool = True
    lead: bool = False
    worst: Callable[[Sequence[Finding], str], Sequence[WorstFinding]] = no_worst
    pictures: Callable[[Sequence[Finding]], Mapping[str, list[tuple[str, Picture]]]] = no_pictures
    groups: Mapping[str, Callable[[Finding], Mapping[str, Mapping[str, str]]]] = field(default_factory=dict)
    next_steps: Callable[[Sequence[Finding]], Sequence[NextStep]] = no_steps
    pages: Sequence[ViewerPage] = ()
