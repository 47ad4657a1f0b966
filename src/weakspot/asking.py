"""From what a user asks to the steps that answer it: rooms by name, and single probes by entry point or by path."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from weakspot.core.errors import ConfigError

if TYPE_CHECKING:
    from weakspot.core.probe import Probe
    from weakspot.core.step import Step

ROOMS = {
    "coverage": "weakspot.coverage.room:steps",
    "robustness": "weakspot.robustness.room:steps",
    "classes": "weakspot.classes.room:steps",
    "lesions": "weakspot.lesions.room:steps",
}
QUESTIONS = {
    "coverage": "Is my test set adequate?",
    "robustness": "Which inputs does it get right only by luck?",
    "classes": "Which classes does it mix up, or treat unequally?",
    "lesions": "Which detected lesions are real?",
}
PROBES = "weakspot.probes"
"""The entry-point group under which packages offer probes."""


def imported(reference: str) -> Any:
    """What `package.module:name` means."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise ConfigError(f"{reference!r} names nothing: expected package.module:name")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise ConfigError(f"cannot import {module!r}: {error}; is it installed, or in this folder?") from error
    except AttributeError as error:
        raise ConfigError(f"{module!r} has no {name!r}: {error}") from error
    return found


def offered_probes() -> dict[str, "type[Probe]"]:
    """Every probe that an installed package offers, by the name of its entry point."""
    return {entry.name: entry.load() for entry in sorted(entry_points(group=PROBES), key=lambda entry: entry.name)}


def find_probe(name: str) -> "type[Probe]":
    """A probe by the name of its entry point, or by `module:Class`."""
    from weakspot.core.probe import Probe

    if ":" in name:
        found = imported(name)
        if not (isinstance(found, type) and issubclass(found, Probe)):
            raise ConfigError(f"{name} is no probe: expected a subclass of weakspot.Probe")
        return found
    offered = entry_points(group=PROBES)
    if name not in offered.names:
        raise ConfigError(unknown_question(name, [*ROOMS, *sorted(offered.names)]))
    loaded: type[Probe] = offered[name].load()
    return loaded


def steps_for(ask: Mapping[str, Mapping[str, Any] | None], probes: Sequence[str] = ()) -> "list[Step]":
    """The steps that answer `ask` (rooms or probes, each with its options) and the probes named besides."""
    from weakspot.core.step import Step

    steps = []
    for name, given in ask.items():
        options = dict(given or {})
        if name in ROOMS:
            steps += imported(ROOMS[name])(options)
        else:
            steps.append(Step.of(find_probe(name), **options))
    return steps + [Step.of(find_probe(name)) for name in probes]


def unknown_question(name: str, known: Sequence[str]) -> str:
    """A message that names what there is, the nearest first."""
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"nothing is called {name!r}: {hint}there is {', '.join(known)}, or module:Class for a probe of your own"
