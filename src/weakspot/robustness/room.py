"""The room's question, "Which inputs are predicted correctly only by luck?", as steps of a plan."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.options import refuse_unknown
from weakspot.core.probe import Probe
from weakspot.core.selection import read_selection
from weakspot.core.step import Step
from weakspot.looks import variation
from weakspot.robustness.analysis_probes import ClassRobustness, VariationEffects, WeakPlaces, WeakStrips
from weakspot.robustness.detector_probes import DetectorEvaluation, DetectorProbe, WeakDetector, WeakInputs
from weakspot.robustness.probes import NeighbourAccuracy, NeighbourTolerance
from weakspot.robustness.segmentation_probes import NeighbourSegmentation

SHARED = ("variation", "looks", "threshold", "seed")
"""Options that all steps of the room take over from the one about neighbour accuracy."""
ROOM_OPTIONS = ("neighbours", "tolerance", "least_iou", "analysis", "detector", "select")
"""Options of the room itself."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """Neighbour accuracy; on request why inputs are weak, and a detector of weak inputs.

    neighbours: how neighbours may differ, such as {rotate: 30, shift: 3}.
    tolerance: for a regression: how many times the training data's mean squared error still counts as correct.
    least_iou: for a segmentation: below which mean IoU of its neighbours an input is weak; the other options are then
        those of `NeighbourSegmentation`, and neighbours move nothing.
    analysis: whether to ask where weak inputs lie, which classes and which variations it is, and to show examples.
    detector: true, or options of `WeakDetector`: train a detector on the training data, evaluate it on the test data.
    select: {from: SPLIT, budget: N}: list the inputs of a split without labels, such as "pool", that the detector takes
        for the weakest; without a budget all of them.
    All other options are those of `NeighbourAccuracy`.

    >>> [step.probe.__name__ for step in steps({"neighbours": {"rotate": 10}, "detector": True})]
    ['NeighbourAccuracy', 'DetectorEvaluation']
    """
    if "least_iou" in options:
        return [_segmentation(dict(options))]
    accuracy_options = dict(options)
    _check_known(accuracy_options, NeighbourAccuracy, of="robustness", beside=ROOM_OPTIONS)
    if "neighbours" in accuracy_options:
        accuracy_options["variation"] = variation(accuracy_options.pop("neighbours"))
    analysis, detector = accuracy_options.pop("analysis", False), accuracy_options.pop("detector", False)
    select = accuracy_options.pop("select", None)
    probe = NeighbourTolerance if "tolerance" in accuracy_options else NeighbourAccuracy
    accuracy = Step.of(probe, **accuracy_options)
    shared = {name: accuracy.options[name] for name in SHARED}
    asked = [accuracy]
    if analysis:
        asked += _analysis_steps(accuracy, shared)
    if detector or select is not None:
        trained = Step.of(WeakDetector, **_detector_options(detector, shared, accuracy_options))
        if detector:
            asked.append(_detector_step(DetectorEvaluation, "test", trained, looks=shared["looks"]))
        if select is not None:
            selection = read_selection(select, of="robustness")
            asked.append(_detector_step(WeakInputs, selection.split, trained, budget=selection.budget))
    return asked


def _segmentation(options: dict[str, Any]) -> Step:
    _check_known(options, NeighbourSegmentation, of="robustness of a segmentation", beside=("neighbours",))
    if "neighbours" in options:
        options["variation"] = variation(options.pop("neighbours"))
    return Step.of(NeighbourSegmentation, **options)


def _analysis_steps(accuracy: Step, shared: Mapping[str, Any]) -> list[Step]:
    if accuracy.probe is NeighbourTolerance:
        raise ConfigError("analysis is about classes, and a regression has none: leave it out")
    varied = {name: shared[name] for name in ("variation", "looks", "seed")}
    strips = Step.of(WeakStrips, **shared, shown=min(9, shared["looks"]))
    return [
        Step.of(WeakPlaces, **shared),
        Step.of(ClassRobustness, **shared),
        Step.of(VariationEffects, **varied),
        Step(WeakStrips, strips.options, "test", {"accuracy": accuracy}),
    ]


def _detector_options(value: Any, shared: Mapping[str, Any], accuracy_options: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(value, bool | Mapping):
        raise ConfigError(f"detector is {value!r}: expected true, or options such as {{sample: 5000, layers: null}}")
    options = value if isinstance(value, Mapping) else {}
    _check_known(options, WeakDetector, of="detector")
    of_regression = (
        {"tolerance": accuracy_options["tolerance"], "queries": 0} if "tolerance" in accuracy_options else {}
    )
    return {**shared, **of_regression, **options}


def _check_known(options: Mapping[str, Any], probe: type[Probe], *, of: str, beside: Collection[str] = ()) -> None:
    """Refuse an unknown option, by the names of a configuration: it says neighbours, not variation."""
    names = [*beside, *(entry.name for entry in fields(probe) if entry.name != "variation")]  # type: ignore[arg-type]
    refuse_unknown(options, names, of=of)


def _detector_step(probe: type[DetectorProbe], split: str, trained: Step, **options: Any) -> Step:
    return Step(probe, {"training": {}, **options}, split, {"detector": trained})
