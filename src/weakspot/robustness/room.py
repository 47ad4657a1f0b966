"""The room's question, "Which inputs are predicted correctly only by luck?", as steps of a plan."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.options import refuse_unknown
from weakspot.core.probe import Probe, complete_options
from weakspot.core.selection import read_selection
from weakspot.core.step import Step
from weakspot.looks import variation
from weakspot.robustness.analysis_probes import ClassRobustness, WeakPlaces, WeakStrips
from weakspot.robustness.attack_probes import RobustAccuracy
from weakspot.robustness.corruption_probes import CommonCorruptions
from weakspot.robustness.detector_probes import DetectorEvaluation, DetectorProbe, WeakDetector, WeakInputs
from weakspot.robustness.diversity_probes import NeighbourDiversity
from weakspot.robustness.effects_probes import ToleranceEffects, VariationEffects
from weakspot.robustness.guard_probes import GuardedInputs, GuardEvaluation, PredictionGuard
from weakspot.robustness.metrics_promises import AIMS
from weakspot.robustness.probes import NeighbourAccuracy, NeighbourTolerance
from weakspot.robustness.segmentation_probes import NeighbourSegmentation

SHARED = ("variation", "looks", "threshold", "weak_if", "seed")
"""Options that all steps of the room take over from the one about neighbour accuracy."""
ROOM_OPTIONS = (
    "neighbours",
    "tolerance",
    "least_iou",
    "unlabelled",
    "analysis",
    "corruptions",
    "attacks",
    "detector",
    "select",
    "guard",
)
"""Options of the room itself."""
DETECTOR_AIMS = tuple(name for name in AIMS if name != "risk")
"""What the operating point of the detectors is chosen by; a risk is promised by the guard alone."""
_EXAMPLES = {
    "detector": "{sample: 5000, layers: null}",
    "corruptions": "{kinds: [fog, snow], severities: [1, 3, 5]}",
    "attacks": "{epsilons: [0.01, 0.03]}",
}


def steps(options: Mapping[str, Any]) -> list[Step]:
    """Neighbour accuracy; on request why inputs are weak, corruptions, attacks, and a detector of weak inputs.

    neighbours: how neighbours may differ, such as {rotate: 30, shift: 3}.
    tolerance: for a regression: how many times the training data's mean squared error still counts as correct.
    least_iou: for a segmentation: below which mean IoU of its neighbours an input is weak; the other options are then
        those of `NeighbourSegmentation`, and neighbours move nothing.
    unlabelled: a split without labels, such as "pool", whose inputs are ranked by how much the predictions for their
        neighbours differ; "test" asks that in place of neighbour accuracy.
    analysis: whether to ask where weak inputs lie, which classes and which variations it is, and to show examples; of a
        regression which variations it is.
    corruptions: true, or options of `CommonCorruptions`: errors under the common corruptions, by severity and class.
    attacks: options of `RobustAccuracy`, such as {epsilons: [0.03]}: accuracy under attack.
    detector: true, or options of `WeakDetector`, such as {recall: 0.95}, by which its thresholds are then
        chosen: train a detector on the training data, evaluate it on the test data.
    select: {from: SPLIT, budget: N}: list the inputs of a split without labels, such as "pool", that the detector takes
        for the weakest; without a budget all of them.
    guard: {from: SPLIT, false_alarms: 0.05}: fit a guard of single predictions on labelled data, by default
        "validation", and judge it on the test data; `recall`, `precision` or `risk` in place of `false_alarms`.
        `inputs: SPLIT` uses it on inputs without labels, `time` orders them by a column of their metadata. All other
        entries are options of `PredictionGuard`.
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
    corruptions, attacks = accuracy_options.pop("corruptions", False), accuracy_options.pop("attacks", False)
    unlabelled = accuracy_options.pop("unlabelled", None)
    select, guard = accuracy_options.pop("select", None), accuracy_options.pop("guard", None)
    probe = NeighbourTolerance if "tolerance" in accuracy_options else NeighbourAccuracy
    accuracy = Step.of(probe, **accuracy_options)
    shared = {name: accuracy.options[name] for name in SHARED}
    asked = [*([] if unlabelled == "test" else [accuracy]), *_unlabelled_steps(unlabelled, accuracy_options)]
    if analysis:
        asked += _analysis_steps(accuracy, shared)
    if attacks:
        asked.append(Step.of(RobustAccuracy, **_options_of("attacks", attacks, RobustAccuracy)))
    if corruptions:
        asked.append(Step.of(CommonCorruptions, **_options_of("corruptions", corruptions, CommonCorruptions)))
    if detector or select is not None:
        trained = Step.of(WeakDetector, **_detector_options(detector, shared, accuracy_options))
        if detector:
            asked.append(_detector_step(DetectorEvaluation, "test", trained, looks=shared["looks"]))
        if select is not None:
            selection = read_selection(select, of="robustness")
            asked.append(_detector_step(WeakInputs, selection.split, trained, budget=selection.budget))
    return [*asked, *(_guard_steps(guard) if guard else [])]


def _unlabelled_steps(split: Any, options: Mapping[str, Any]) -> list[Step]:
    """The ranking of inputs without labels; neighbours are as for neighbour accuracy where they are named."""
    if split is None:
        return []
    if not isinstance(split, str):
        raise ConfigError(f"unlabelled is {split!r}: expected the name of a split without labels, such as pool")
    named = {name: options[name] for name in ("variation", "looks", "seed") if name in options}
    return [Step.of(NeighbourDiversity, split=split, **named)]


def _guard_steps(value: Any) -> list[Step]:
    """The guard judged on the test data, and used on inputs without labels where they are named."""
    if value is not True and not isinstance(value, Mapping):
        raise ConfigError(f"guard is {value!r}: expected true, or options such as {{from: validation, recall: 0.9}}")
    options = {} if value is True else dict(value)
    _check_known(options, PredictionGuard, of="guard", beside=("from", "inputs", "time", "alarm_rate", *AIMS))
    split, watched = options.pop("from", PredictionGuard.split), options.pop("inputs", None)
    watching = {name: options.pop(name) for name in ("time", "alarm_rate") if name in options}
    chosen = _operating_point(options, AIMS, of="guard")
    fitted = Step.of(PredictionGuard, split=split, **chosen, **options)
    asked = [Step(GuardEvaluation, {"training": {}}, "test", {"guard": fitted})]
    if watched is None and watching:
        raise ConfigError(f"guard has {', '.join(watching)}, which is about the inputs that it is used on: add inputs")
    if watched is not None:
        given = complete_options(GuardedInputs, {"training": {}, **watching})
        asked.append(Step(GuardedInputs, given, watched, {"guard": fitted}))
    return asked


def _operating_point(options: dict[str, Any], aims: Collection[str], *, of: str) -> dict[str, Any]:
    """What a threshold is chosen by, taken out of options such as {recall: 0.95}."""
    named = [name for name in aims if name in options]
    if len(named) > 1:
        raise ConfigError(f"{of} has {' and '.join(named)}: its threshold is chosen by one of them")
    return {"aim": named[0], "value": options.pop(named[0])} if named else {}


def _segmentation(options: dict[str, Any]) -> Step:
    _check_known(options, NeighbourSegmentation, of="robustness of a segmentation", beside=("neighbours",))
    if "neighbours" in options:
        options["variation"] = variation(options.pop("neighbours"))
    return Step.of(NeighbourSegmentation, **options)


def _analysis_steps(accuracy: Step, shared: Mapping[str, Any]) -> list[Step]:
    varied = {name: shared[name] for name in ("variation", "looks", "seed")}
    if accuracy.probe is NeighbourTolerance:  # the other questions are about classes
        return [Step.of(ToleranceEffects, **varied, tolerance=accuracy.options["tolerance"])]
    strips = Step.of(WeakStrips, **shared, shown=min(9, shared["looks"]))
    return [
        Step.of(WeakPlaces, **shared),
        Step.of(ClassRobustness, **shared),
        Step.of(VariationEffects, **varied),
        Step(WeakStrips, strips.options, "test", {"accuracy": accuracy}),
    ]


def _detector_options(value: Any, shared: Mapping[str, Any], accuracy_options: Mapping[str, Any]) -> dict[str, Any]:
    options = _options_of("detector", value, WeakDetector, beside=DETECTOR_AIMS)
    options |= _operating_point(options, DETECTOR_AIMS, of="detector")
    of_regression = (
        {"tolerance": accuracy_options["tolerance"], "queries": 0} if "tolerance" in accuracy_options else {}
    )
    return {**shared, **of_regression, **options}


def _options_of(name: str, value: Any, probe: type[Probe], beside: Collection[str] = ()) -> dict[str, Any]:
    """What true, or a mapping of options, asks of a probe."""
    if not isinstance(value, bool | Mapping):
        raise ConfigError(f"{name} is {value!r}: expected true, or options such as {_EXAMPLES[name]}")
    options = dict(value) if isinstance(value, Mapping) else {}
    _check_known(options, probe, of=name, beside=beside)
    return options


def _check_known(options: Mapping[str, Any], probe: type[Probe], *, of: str, beside: Collection[str] = ()) -> None:
    """Refuse an unknown option, by the names of a configuration: it says neighbours, not variation."""
    names = [*beside, *(entry.name for entry in fields(probe) if entry.name != "variation")]  # type: ignore[arg-type]
    refuse_unknown(options, names, of=of)


def _detector_step(probe: type[DetectorProbe], split: str, trained: Step, **options: Any) -> Step:
    return Step(probe, {"training": {}, **options}, split, {"detector": trained})
