"""Questions and probes by name: the steps that answer them."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from weakspot.core.errors import ConfigError
from weakspot.rooms import QUESTIONS

if TYPE_CHECKING:
    from weakspot.core.probe import Probe
    from weakspot.core.step import Step

STEPS = {**{room: f"weakspot.{room}.room:steps" for room in QUESTIONS}, "pictures": "weakspot.data.pictures:steps"}
"""What can be asked in `ask`, besides single probes."""
BUILT_IN = {
    "weakspot.data": "Pictures",
    "weakspot.performance": "Performance",
    "weakspot.coverage": "NeuronCoverage ActivationRanges KMultisection TopNeurons Confidence NextInputs "
    "CriteriaAgreement NeuronImportance ImportanceDrivenCoverage LayerTraces "
    "LikelihoodSurpriseCoverage DistanceSurpriseCoverage ImageHashes Duplicates",
    "weakspot.robustness": "NeighbourAccuracy NeighbourDiversity NeighbourTolerance SquaredError WeakDetector "
    "WeakInputs DetectorEvaluation NeighbourSegmentation WeakPlaces ClassRobustness VariationEffects ToleranceEffects "
    "WeakStrips CommonCorruptions RobustAccuracy PredictionGuard GuardEvaluation GuardedInputs",
    "weakspot.classes": "ClassPairs OutputPairs ImagesToLabel GroupFairness ClassCoverage ClassRanges ClassCriteria "
    "KnownConfidence LabelPlan GroupGaps PixelConfusion",
    "weakspot.causes": "Errors ErrorSlices RootCauses UnsafeSet RuleSet",
    "weakspot.lesions": "Lesions LesionFit Scores CaseVolumes",
    "weakspot.repair": "Predictions",
}
"""The probes of weakspot itself, by their package; a probe is asked for by its name in lower case."""
PROBES = "weakspot.probes"
"""The entry-point group under which other packages offer probes."""


def imported(reference: str) -> Any:
    """What `package.module:name` means."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise ConfigError(f"{reference!r} names nothing: expected package.module:name")
    try:
        value: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, and what it imports is not: its own fault, shown with its place
        raise ConfigError(f"cannot import {module!r}: {error}; is it installed, or in this folder?") from error
    except (TypeError, ValueError) as error:
        if _raised_inside(error):
            raise
        raise ConfigError(f"{module!r} is not the name of a module: expected package.module:name") from error
    for part in name.split("."):
        if not hasattr(value, part):
            near = get_close_matches(part, dir(value), n=1)
            raise ConfigError(f"{module!r} has no {name!r}" + (f": did you mean {near[0]!r}?" if near else ""))
        value = getattr(value, part)
    return value


def called(reference: str, factory: Any, arguments: Mapping[str, Any], *positional: Any) -> Any:
    """What a class or function gives; arguments that it does not take are refused."""
    if not callable(factory):
        raise ConfigError(f"{reference} is a {type(factory).__name__}: expected a class or function to call")
    try:
        return factory(*positional, **arguments)
    except TypeError as error:
        if _raised_inside(error):
            raise
        how = dict(arguments) or "no arguments"
        raise ConfigError(
            f"{reference} cannot be called with {how}: {error}; it is called once and must return what is meant: give "
            "its arguments, or name a function that needs none"
        ) from error


def _raised_inside(error: Exception) -> bool:
    """Whether the code that was called had begun to run: then the fault is there, and not in how it was called."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    name = "" if frames is None else frames.tb_frame.f_code.co_filename
    return name != __file__ and "importlib" not in name


def offered() -> dict[str, str]:
    """Where every probe is, by its name: weakspot's own, and those that installed packages offer."""
    built_in = {snake_case(name): f"{package}:{name}" for package, names in BUILT_IN.items() for name in names.split()}
    return {**{entry.name: entry.value for entry in entry_points(group=PROBES)}, **built_in}


def offered_probes() -> dict[str, "type[Probe]"]:
    """Every probe by its name."""
    return {name: imported(reference) for name, reference in sorted(offered().items())}


def snake_case(name: str) -> str:
    """The name of a class in lower case with underscores.

    >>> snake_case("KMultisection"), snake_case("NeuronCoverage")
    ('k_multisection', 'neuron_coverage')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def find_probe(name: str) -> "type[Probe]":
    """A probe by the name of its entry point, or by `module:Class`."""
    from weakspot.core.probe import Probe

    if ":" in name:
        probe = imported(name)
        if not (isinstance(probe, type) and issubclass(probe, Probe)):
            raise ConfigError(f"{name} is not a probe: expected a subclass of weakspot.Probe")
        return probe
    probes = offered()
    if name not in probes:
        raise ConfigError(unknown_question(name, [*STEPS, *sorted(probes)]))
    loaded: type[Probe] = imported(probes[name])
    return loaded


def steps_for(ask: Mapping[str, Mapping[str, Any] | None], probes: Sequence[str] = ()) -> "list[Step]":
    """The steps that answer `ask` (rooms or probes, each with its options) and the probes named besides."""
    from weakspot.core.step import Step

    steps = []
    for name, options in ask.items():
        steps += steps_of(name, dict(options or {}))
    return steps + [Step.of(find_probe(name)) for name in probes]


def steps_of(name: str, options: Mapping[str, Any]) -> "list[Step]":
    """The steps that answer one room or probe; what its options cannot mean is refused."""
    from weakspot.core.options import shortened
    from weakspot.core.step import Step

    room: Any = imported(STEPS[name]) if name in STEPS else None
    probe = find_probe(name) if room is None else None
    try:
        steps: list[Step] = room(options) if probe is None else [Step.of(probe, **options)]
        return steps
    except (TypeError, ValueError, AttributeError, KeyError, IndexError, OverflowError) as error:
        # a room takes its options apart before any probe can check them
        raise ConfigError(f"{name} cannot be asked with {shortened(dict(options))}: {error}") from error


def unknown_question(name: str, names: Sequence[str]) -> str:
    """A message that names what there is, the nearest first."""
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"nothing is called {name!r}: {hint}there is {', '.join(names)}, or module:Class for a probe of your own"
