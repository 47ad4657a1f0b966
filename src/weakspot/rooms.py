"""The rooms as readers of Findings know them: torch-free."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weakspot.core.finding import Finding
    from weakspot.core.outputs import Outputs
    from weakspot.core.room import Room

QUESTIONS = {
    "performance": "How good is the model?",
    "causes": "Why does the model fail, and what should it be retrained on?",
    "robustness": "Which inputs are predicted correctly only by luck?",
    "classes": "Which classes does the model confuse, or treat unequally?",
    "coverage": "Is my test set adequate?",
    "lesions": "Which detected lesions are real?",
}
"""The questions in the order in which they are answered, by the room that answers each."""
OTHERS = ("data", "repair")
"""Packages below the rooms whose Findings are declared there, in a module `outputs`."""


@cache
def rooms() -> "dict[str, Room]":
    """The rooms as readers of Findings know them, without torch."""
    return {name: import_module(f"weakspot.{name}.outputs").ROOM for name in QUESTIONS}


def named_groups(names: "Iterable[str]", read: "Callable[[str], Finding]") -> dict[str, Mapping[str, str]]:
    """The groups in which a Run may be compared with another, by what they are called, as its rooms make them.

    names: the Findings of the Run.
    read: gives one of them.
    """
    known = set(names)
    groups: dict[str, Mapping[str, str]] = {}
    for room in rooms().values():
        for name, make in room.groups.items():
            if name in known:
                groups |= make(read(name))
    return groups


def declared(finding: str) -> "Outputs | None":
    """What a built-in Finding of that name holds; None for one that is not built in."""
    name = finding.partition("-")[0]  # of another split, as in coverage.neuron_coverage-train
    package = name.partition(".")[0]
    if package in OTHERS:
        findings: Mapping[str, Outputs] = import_module(f"weakspot.{package}.outputs").FINDINGS
        return findings.get(name)
    room = rooms().get(package)
    return None if room is None else room.findings.get(name)
