"""The room's question, "Which inputs does it get right only by luck?", as steps of a plan."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.options import refuse_unknown
from weakspot.core.probe import Probe
from weakspot.core.step import Step
from weakspot.looks import variation
from weakspot.robustness.detectors import DetectorEvaluation, WeakDetector, WeakInputs
from weakspot.robustness.neighbours import NeighbourAccuracy, NeighbourTolerance
from weakspot.robustness.understanding import ClassRobustness, VariationEffects, WeakPlaces, WeakStrips

SHARED = ("variation", "looks", "cutoff", "seed")
"""Options that all steps of the room take over from the one about neighbour accuracy."""
OWN = ("neighbours", "tolerance", "understand", "detector", "judge")
"""Options of the room itself."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """Neighbour accuracy; on request why inputs are weak, and a detector of weak inputs.

    neighbours: how neighbours may differ, such as {rotate: 30, shift: 3}.
    tolerance: for models that give numbers: how many times the training data's mean squared error is still right.
    understand: whether to ask where weak inputs lie, which classes and which variations it is, and to show some.
    detector: true, or options of `WeakDetector`: train a detector on the training data, evaluate it on the test data.
    judge: a split without labels, such as "improvement", whose inputs the detector is to judge.
    All other options are those of `NeighbourAccuracy`.

    >>> [step.probe.__name__ for step in steps({"neighbours": {"rotate": 10}, "detector": True})]
    ['NeighbourAccuracy', 'DetectorEvaluation']
    """
    own = dict(options)
    _check_known(own, NeighbourAccuracy, of="robustness", beside=OWN)
    if "neighbours" in own:
        own["variation"] = variation(own.pop("neighbours"))
    understand, detector, judge = own.pop("understand", False), own.pop("detector", False), own.pop("judge", None)
    first = Step.of(NeighbourTolerance if "tolerance" in own else NeighbourAccuracy, **own)
    shared = {name: first.options[name] for name in SHARED}
    found = [first]
    if understand:
        found += _understanding(first, shared)
    if detector or judge:
        trained = Step.of(WeakDetector, **_detector_options(detector, shared, own))
        if detector:
            found.append(_judging(DetectorEvaluation, "test", trained, looks=shared["looks"]))
        if judge:
            found.append(_judging(WeakInputs, judge, trained))
    return found


def _understanding(first: Step, shared: Mapping[str, Any]) -> list[Step]:
    if first.probe is NeighbourTolerance:
        raise ConfigError("understand asks about classes, and a model that gives numbers has none: leave it out")
    varied = {name: shared[name] for name in ("variation", "looks", "seed")}
    strips = Step.of(WeakStrips, **shared, shown=min(9, shared["looks"]))
    return [
        Step.of(WeakPlaces, **shared),
        Step.of(ClassRobustness, **shared),
        Step.of(VariationEffects, **varied),
        Step(WeakStrips, strips.options, "test", {"accuracy": first}),
    ]


def _detector_options(given: Any, shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(given, bool | Mapping):
        raise ConfigError(f"detector is {given!r}: expected true, or options such as {{sample: 5000, layers: null}}")
    asked = given if isinstance(given, Mapping) else {}
    _check_known(asked, WeakDetector, of="detector")
    tolerance = {"tolerance": own["tolerance"], "queries": 0} if "tolerance" in own else {}
    return {**shared, **tolerance, **asked}


def _check_known(given: Mapping[str, Any], probe: type[Probe], *, of: str, beside: Collection[str] = ()) -> None:
    """Refuse an option that there is not, by the names of a configuration: it says neighbours, not variation."""
    known = [*beside, *(entry.name for entry in fields(probe) if entry.name != "variation")]  # type: ignore[arg-type]
    refuse_unknown(given, known, of=of)


def _judging(probe: type[Any], split: str, trained: Step, **options: Any) -> Step:
    return Step(probe, {"training": {}, **options}, split, {"detector": trained})
