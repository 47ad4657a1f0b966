"""The room's question, "Is my test set adequate?", as steps of a plan."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.core.probe import Probe
from weakspot.core.selection import Selection, read_selection, refuse_earlier_names
from weakspot.core.source import like
from weakspot.core.step import Step
from weakspot.coverage.agreement_probes import CriteriaAgreement
from weakspot.coverage.confidence_probes import Confidence
from weakspot.coverage.duplicate_probes import Duplicates, ImageHashes
from weakspot.coverage.importance_probes import ImportanceDrivenCoverage
from weakspot.coverage.neuron_probes import KMultisection, NeuronCoverage, TopNeurons
from weakspot.coverage.ranking_probes import NextInputs
from weakspot.coverage.surprise_probes import DistanceSurpriseCoverage, LikelihoodSurpriseCoverage

CRITERIA: dict[str, type[Probe]] = {
    "nc": NeuronCoverage,
    "kmnc": KMultisection,
    "nbc": KMultisection,
    "snac": KMultisection,
    "tknc": TopNeurons,
    "tknp": TopNeurons,
    "idc": ImportanceDrivenCoverage,
    "lsc": LikelihoodSurpriseCoverage,
    "dsc": DistanceSurpriseCoverage,
}
ON_REQUEST = ("lsc", "dsc")
"""Criteria that are not for every task, and are asked for by name only."""
COUNTED_WITH = {"nbc": "kmnc", "snac": "kmnc", "tknp": "tknc"}
"""Criteria that are read off the counts of another, and share its options."""
OPTIONS = ("criteria", "classes", "baseline", "confidence", "agreement", "select", "duplicates")
DETAILS = ("threshold", "sections", "top", "layers", "side")
"""Options of the criteria that the questions about single inputs take over."""


def steps(options: Mapping[str, Any]) -> list[Step]:
    """One step per criterion asked for; all by default. Each criterion may be given options of its own under its name.

    criteria: which to ask for, `lsc` and `dsc` by name only; `nbc` and `snac` come with `kmnc`, `tknp` with `tknc`.
    classes: predicted classes to give the coverage of besides, for the criteria that can.
    baseline: whether to ask the same of as many random training inputs; by default if the training data are needed
        anyway.
    confidence: whether to list how sure the model is of each input.
    agreement: whether to ask how far the criteria agree with each other and with the errors, or the options for that;
        by default if there are several criteria and the training data are needed anyway.
    duplicates: whether to look for copies of test images in the training and test data, or the options for that;
        {training: false} searches the test data alone.
    select: {from: SPLIT, budget: N}: rank the inputs of a split, such as "pool", by the coverage that they would add,
        and list those among the first N of any ranking; without a budget all of them.

    >>> [step.probe.__name__ for step in steps({"criteria": ["nc"], "nc": {"threshold": 0.5}})]
    ['NeuronCoverage']
    >>> asked = steps({"criteria": ["kmnc", "nbc", "snac"], "select": {"from": "pool", "budget": 100}})
    >>> [(step.probe.__name__, step.split) for step in asked]
    [('KMultisection', 'test'), ('CriteriaAgreement', 'test'), ('NextInputs', 'pool')]
    """
    criteria = options.get("criteria", [name for name in CRITERIA if name not in ON_REQUEST])
    if not isinstance(criteria, str | list | tuple):
        raise ConfigError(f"criteria is {criteria!r}: expected a list of names, such as [nc, kmnc]")
    chosen: list[str] = [criteria] if isinstance(criteria, str) else list(criteria)
    refuse_earlier_names(options, ("add",), of="coverage")
    _check_names([*chosen, *(key for key in options if key not in OPTIONS)], options)
    details = {name: dict(options.get(name) or {}) for name in CRITERIA}
    counted = dict.fromkeys(COUNTED_WITH.get(name, name) for name in chosen)
    asked = {name: _criterion(name, details[name], options.get("classes") or ()) for name in counted}
    trained = any(step.upstream for step in asked.values())
    if options.get("baseline", trained):
        asked = {name: _with_baseline(step) for name, step in asked.items()}
    plan = list(asked.values())
    if options.get("confidence"):
        plan.append(Step.of(Confidence))
    agreement = options.get("agreement", trained and len(chosen) > 1)
    if agreement:
        plan.append(_agreement(asked, {} if agreement is True else agreement))
    duplicates = options.get("duplicates", False)
    if duplicates is not False and duplicates is not None:
        plan.append(_duplicates({} if duplicates is True else duplicates))
    if options.get("select") is not None:
        plan.append(_next_inputs(asked, read_selection(options["select"], of="coverage")))
    return plan


def _duplicates(options: Any) -> Step:
    """The search for copies, with the training data unless they are to be left out."""
    if not isinstance(options, Mapping) or not isinstance(options.get("training", True), bool):
        raise ConfigError(f"duplicates is {options!r}: expected true, false or a mapping such as {{training: false}}")
    step = Step.of(Duplicates, **{name: value for name, value in options.items() if name != "training"})
    hashes = Step.of(ImageHashes, feature_layer=step.options["feature_layer"])
    return _filled(step, {"hashes": hashes}) if options.get("training", True) else step


def _check_names(names: list[str], options: Mapping[str, Any]) -> None:
    for name in names:
        if name not in CRITERIA:
            choices = ", ".join([*CRITERIA, *OPTIONS])
            raise ConfigError(f"coverage knows no criterion or option {name!r}: choose from {choices}")
        if name in COUNTED_WITH and options.get(name):
            raise ConfigError(f"{name} is read off the counts of {COUNTED_WITH[name]}: give its options under that")


def _criterion(name: str, options: Mapping[str, Any], classes: Any) -> Step:
    probe = CRITERIA[name]
    shared = {"classes": classes} if classes and _has(probe, "classes") else {}
    return Step.of(probe, **{**shared, **options})


def _with_baseline(step: Step) -> Step:
    """The step, built from the same step over as many random training inputs, where the probe can name it beside."""
    if not _has(step.probe, "baseline"):
        return step
    return _filled(step, {"baseline": replace(step, split=like("train", step.split))})


def _agreement(asked: Mapping[str, Step], options: Mapping[str, Any]) -> Step:
    step = Step.of(CriteriaAgreement, **{**_details(asked), **options})
    return _filled(step, {name: asked[name] for name in ("idc", "lsc", "dsc") if name in asked})


def _next_inputs(asked: Mapping[str, Step], selection: Selection) -> Step:
    """Ranked beyond what the test data cover; the test data themselves from nothing."""
    step = replace(Step.of(NextInputs, **_details(asked), budget=selection.budget), split=selection.split)
    if selection.split == NextInputs.split:
        return step
    neurons = {"layers": step.options["layers"], "side": step.options["side"]}
    sources: dict[str, tuple[str, type[Probe], str]] = {
        "covered_neurons": ("nc", NeuronCoverage, "threshold"),
        "covered_sections": ("kmnc", KMultisection, "sections"),
        "covered_leaders": ("tknc", TopNeurons, "top"),
    }
    covered = {
        option: asked.get(name) or Step.of(probe, **neurons, **{detail: step.options[detail]})
        for option, (name, probe, detail) in sources.items()
    }
    return _filled(step, covered)


def _details(asked: Mapping[str, Step]) -> dict[str, Any]:
    """The options of the criteria asked for that footprints share; criteria over different layers share none."""
    criteria = [asked[name] for name in ("nc", "kmnc", "tknc") if name in asked]
    details = {key: value for step in criteria for key, value in step.options.items() if key in DETAILS}
    if len({repr((step.options["layers"], step.options["side"])) for step in criteria}) > 1:
        raise ConfigError(
            "nc, kmnc and tknc look at different layers or sides: `select` and `agreement` need the same for all"
        )
    return details


def _filled(step: Step, upstream: Mapping[str, Step]) -> Step:
    """The step with more of its options filled by the Findings of other steps."""
    options = {name: value for name, value in step.options.items() if name not in upstream}
    return replace(step, options=options, upstream={**step.upstream, **upstream})


def _has(probe: type[Probe], option: str) -> bool:
    return any(entry.name == option for entry in fields(probe))  # type: ignore[arg-type]
