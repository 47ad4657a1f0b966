"""`weakspot init`: a first `weakspot.yaml`, with what some of the data through the model show."""

import copy
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.asking.config import Config, checked_config, config_of
from weakspot.asking.loading import Loaded, load, load_subject, modules_beside, subject_of
from weakspot.asking.splits import framed
from weakspot.asking.task_check import check_tasks
from weakspot.cli.error_attribution import user_error
from weakspot.cli.init_template import file_text, inline
from weakspot.core.costs import costs
from weakspot.core.errors import ConfigError, SubjectError, WeakspotError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.observation import Batch
from weakspot.core.options import shortened
from weakspot.core.plan import Plan
from weakspot.core.sample_check import CheckedSource
from weakspot.core.source import Source, batch_limit, groups_of, limited
from weakspot.core.subject import Subject
from weakspot.coverage.metrics_duplicates import MANY, image_keys, nearest_copies
from weakspot.data.groups import suggested_groups
from weakspot.data.image_measures import measurable
from weakspot.looks import Ensemble, StoredSamples
from weakspot.models import Normalise, stated_preparation
from weakspot.models.trial import Alternative, ModelTrial, Reordered, better_order, compared_normalisations, try_out
from weakspot.models.turned import TurnedAxes, turned_axes
from weakspot.registry import steps_of
from weakspot.yaml_file import parse_yaml

SAMPLES = 64
"""How many are read where no answer is right or wrong."""
LABELLED = 256
"""How many are read of classes and labels: normalisations and orders of the classes are compared on them."""
_NOTICED = 0.02
"""By how much Dice must be higher with turned axes to be told: one case shows no more."""
_TRIED = ExecutionOptions(batch_size=8)
_FIRST_QUESTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "coverage": tuple(
        {"criteria": criteria, **confidence}
        for confidence in ({"confidence": True}, {})
        for criteria in (["nc", "kmnc", "idc"], ["nc", "kmnc"], ["nc"])
    ),
    "robustness": (
        {"neighbours": {"rotate": 15, "shift": 2}},
        {"neighbours": {"brightness": 0.2, "noise": 0.05}, "tolerance": 3},
        {"neighbours": {"brightness": 0.2, "noise": 0.05}, "least_iou": 0.75},
    ),
    "classes": ({}, {"by": "outputs"}, {"by": "pixels"}),
    "causes": ({"select": {"from": "pool"}}, {}),
    "error_slices": ({},),
    "lesions": ({}, {"sampling": {"flips": [0, 1, 2]}}),
    "pictures": ({"size": 64},),
}
"""Options to begin with: the first that this model and these data allow. Numbers and keypoints may be of the place of
things, so nothing is moved there."""
_QUICKLY = {"robustness": {"looks": 1}, "lesions": {"looks": 2}}
"""Options with which a question is tried: enough to see whether it can be asked at all."""


@dataclass(frozen=True)
class Beginning:
    """What is known after some of the data."""

    text: str
    trial: ModelTrial
    subject: Subject
    notes: tuple[str, ...]
    split: str
    normalisations: Sequence[Alternative]
    order: Reordered | None
    turned: TurnedAxes | None = None


def begin(subject: Mapping[str, Any], data: Mapping[str, Any], file: Path) -> Beginning:
    """Load what was given, run some of them, find out what can be asked, and write it as the text of a file."""
    subject, data, said = _stated(subject, data, file.parent)
    config = config_of(subject, data)
    loaded = load(config, file.parent)
    split = "test" if "test" in loaded.data else next(iter(loaded.data))
    labelled = loaded.subject.task in ("classification", "multilabel")
    source = limited(loaded.data[split], batch_limit(loaded.data[split]) or (LABELLED if labelled else SAMPLES))
    checked = CheckedSource(source, loaded.subject.task, None, bounds=loaded.subject.bounds)
    batch = checked.read(np.arange(len(source.ids)))
    trial = _tried(loaded, config, batch)
    detected = {**_found_classes(subject, loaded, split, trial), **_found_fingerprint(loaded, config)}
    tried, loaded = _alternatives(loaded, config, batch, trial), _with_classes(loaded, detected)
    better = [one for one in tried if one.better]
    text = file_text({**subject, **detected}, data, _questions(loaded, trial), trial, better)
    checked_config(*parse_yaml(text, str(file)))
    turned = None if isinstance(loaded.subject.model, StoredSamples) else turned_axes(loaded.subject, batch)
    notes = (*loaded.notes, *said, *_look_alike(loaded.data[split], batch))
    return Beginning(text, trial, loaded.subject, notes, split, tried, better_order(trial), turned)


def _stated(
    subject: Mapping[str, Any], data: Mapping[str, Any], folder: Path
) -> tuple[Mapping[str, Any], Mapping[str, Any], list[str]]:
    """What was given, with what the model itself says of its inputs where nothing else was said."""
    config = config_of(subject, data)
    with modules_beside(folder):
        model = load_subject(config, folder)[0].model
    stated = stated_preparation(model, config.subject.model, config.subject.arguments)
    if stated is None or not stated.sure:
        return subject, data, []
    entry = stated.normalise.entry()
    prepared = subject if "preprocess" in subject or not entry else {**subject, "preprocess": entry}
    framed_data = {split: framed(one, stated.framing, folder) for split, one in data.items()}
    taken = [f"preprocess: {inline(entry)}"] * (prepared != subject)
    taken += [inline(dict(stated.framing)).strip("{}")] * (framed_data != data)
    return prepared, framed_data, [f"taken from {stated.where}: {', '.join(taken)}"] if taken else []


def _tried(loaded: Loaded, config: Config, batch: Batch) -> ModelTrial:
    if loaded.subject.task == "multilabel" and loaded.subject.scores is None:
        raise ConfigError(
            "which labels are present cannot be told before it is said what the outputs are: give --scores logits or "
            "--scores probabilities"
        )
    try:
        return try_out(loaded.subject, batch)
    except Exception as error:
        problem = error if isinstance(error, WeakspotError) else user_error(error)
        if problem is None:
            raise
        hint = " (here with --model-output)" if "output=" in str(problem) else _channel_hint(loaded, config, batch)
        raise SubjectError(f"{problem}{hint} (samples are {_shape(batch.inputs.shape[1:])})") from error


def _channel_hint(loaded: Loaded, config: Config, batch: Batch) -> str:
    """Whether the model runs once the channels are elsewhere, and what to write then."""
    if batch.inputs.ndim < 4:
        return ""
    turned = replace(batch, inputs=batch.inputs.movedim(-1, 1).contiguous())
    ways = {
        "--test '{path: …, channels: last}'": (loaded.subject, turned),
        "--preprocess '{channels_last: true}'": (_subject_with(loaded, config, Normalise(channels_last=True)), batch),
    }
    for advice, (subject, samples) in ways.items():
        with suppress(Exception):  # whatever the model raises, this is not the way
            try_out(subject, samples)
            return f"; it does run with the channels of the samples elsewhere: {advice}"
    return ""


def _found_classes(subject: Mapping[str, Any], loaded: Loaded, split: str, trial: ModelTrial) -> dict[str, Any]:
    """The names that model or data know, where they are as many as the outputs; else how many there are."""
    if "classes" in subject or loaded.subject.task not in ("classification", "multilabel", "segmentation"):
        return {}
    if loaded.subject.classes is not None:
        return {"classes": list(loaded.subject.classes)}
    names, count = getattr(loaded.data[split], "classes", None), trial.outputs[0]
    if names and len(names) != count and loaded.subject.task != "segmentation":
        raise ConfigError(
            f"{split} has the classes {shortened(list(names))}, and the model gives {count} scores per sample: name "
            "all classes in the order of the outputs, with --classes"
        )
    return {"classes": list(names) if names and len(names) == count else count}


def _found_fingerprint(loaded: Loaded, config: Config) -> dict[str, Any]:
    """A name for a function that has no weights to be told by; without one its Findings could not be kept."""
    try:
        loaded.subject.fingerprint()
    except ConfigError:
        return {"fingerprint": f"{config.subject.model} 1"}
    return {}


def _with_classes(loaded: Loaded, detected: Mapping[str, Any]) -> Loaded:
    subject = copy.copy(loaded.subject)
    if "classes" in detected:
        named = detected["classes"]
        subject.classes = tuple(map(str, range(named))) if isinstance(named, int) else tuple(named)
    return replace(loaded, subject=subject)


def _questions(loaded: Loaded, trial: ModelTrial) -> dict[str, tuple[dict[str, Any], str | None]]:
    """Every question with first options, and why it cannot be asked of this model and data, if so."""
    questions: dict[str, tuple[dict[str, Any], str | None]] = {}
    for name, ways in _FIRST_QUESTIONS.items():
        if name == "lesions" and loaded.subject.task != "segmentation":
            continue
        if name == "pictures" and len(trial.inputs) != 3:
            continue
        if name == "error_slices" and questions["causes"][1] is None:
            continue  # causes ask it, too; of a model that cannot be looked into it stands alone
        for options in _lesion_ways(loaded) if name == "lesions" else _fitting(name, ways, loaded.subject):
            questions[name] = (options, _why_not(name, {**_QUICKLY.get(name, {}), **_without_fit(options)}, loaded))
            if questions[name][1] is None:
                break
    return questions


def _lesion_ways(loaded: Loaded) -> list[dict[str, Any]]:
    """How lesions can be asked for: by the members that the model has, else by dropout, else by flips."""
    model = loaded.subject.model
    fit = {"fit": "validation"} if "validation" in loaded.data else {}
    if isinstance(model, StoredSamples):
        return [{"sampling": "members", "looks": len(model.folders), **fit}]
    if isinstance(model, Ensemble):
        return [{"sampling": "members", "looks": len(model.members), **fit}]
    return [{**way, **fit} for way in _FIRST_QUESTIONS["lesions"]]


def _without_fit(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "fit"}


def _fitting(name: str, ways: Sequence[dict[str, Any]], subject: Subject) -> Sequence[dict[str, Any]]:
    """The ways that are for the task; where none is, the last one, so that the reason is told."""
    sure = subject.task == "classification" and subject.scores is not None
    fitting = []
    for options in ways:
        with suppress(ConfigError):
            check_tasks({name: {**options, **_QUICKLY.get(name, {})}}, subject.task)
            fitting += [options] if sure or "confidence" not in options else []
    return fitting or ways[-1:]


def _why_not(name: str, options: Mapping[str, Any], loaded: Loaded) -> str | None:
    try:
        check_tasks({name: options}, loaded.subject.task)
        plan = Plan.of(steps_of(name, options))
        list(costs(plan, loaded.subject, loaded.data, None, execution=_TRIED))
    except WeakspotError as error:
        return str(error).partition("\n")[0]
    return None


def _alternatives(loaded: Loaded, config: Config, batch: Batch, trial: ModelTrial) -> list[Alternative]:
    if trial.correct is None or bool(trial.correct.all()):
        return []
    return compared_normalisations(partial(_subject_with, loaded, config), batch, trial.correct)


def _look_alike(source: Source, batch: Batch) -> list[str]:
    """A word where many of the images look like another of them, and nothing says that some belong together."""
    if not measurable(batch.inputs) or groups_of(source) is not None or suggested_groups(source):
        return []
    near = float(nearest_copies(image_keys(batch.inputs)).near.mean())
    if near < MANY:
        return []
    return [
        f"{near:.0%} of {len(batch)} images tried look like another of them, like frames or slices of one thing: "
        "samples that belong together are not independent, and intervals would be too narrow; name the column that "
        "says which do (group:); coverage: {duplicates: true} lists the pairs"
    ]


def _subject_with(loaded: Loaded, config: Config, normalise: Normalise) -> Subject:
    """The subject with another pre-processing."""
    here = loaded.subject
    return subject_of(config.subject, here.model, classes=here.classes, preprocess=normalise, device=str(here.device))


def summary_lines(begun: Beginning) -> list[str]:
    """What these samples show, line by line."""
    trial = begun.trial
    lines = [
        f"inputs: {_shape(trial.inputs)}, values from {trial.input_range[0]:.4g} to {trial.input_range[1]:.4g}",
        f"outputs: {_shape(trial.outputs)}, values from {trial.output_range[0]:.4g} to {trial.output_range[1]:.4g}",
    ]
    if begun.subject.task in ("classification", "multilabel", "segmentation"):
        lines.append(f"classes: {trial.outputs[0]}")
    if trial.penultimate is not None:
        count = sum(layer.weighted for layer in trial.layers)
        width = trial.penultimate.input_shape[0 if len(trial.penultimate.input_shape) > 2 else -1]
        lines.append(
            f"layers: {count} convolutions and linears; penultimate is the input of {trial.penultimate.label}, "
            f"{width} neurons"
        )
    if trial.accuracy is not None:
        lines.append(f"accuracy: {trial.accuracy:.2f} on {trial.samples} samples of {begun.split}")
    if begun.subject.scores is None and begun.subject.task in ("classification", "segmentation"):
        alike, which = ("look", "probabilities") if trial.like_probabilities else ("do not look", "logits")
        lines.append(f"scores: the outputs {alike} like probabilities; if they are {which}, write scores: {which}")
    return [*lines, *_normalisation_lines(begun), *_order_lines(begun), *_axes_lines(begun.turned)]


def _axes_lines(turned: TurnedAxes | None) -> list[str]:
    """Dice with the axes the other way round, where that is better."""
    if turned is None or turned.dice_turned <= turned.dice + _NOTICED:
        return []
    return [
        f"warning: Dice is {turned.dice:.2f}, but {turned.dice_turned:.2f} with the axes of the volume the other way "
        "round: was the network trained on x, y, z, as with MONAI? Then write axes: xyz under subject"
    ]


def _normalisation_lines(begun: Beginning) -> list[str]:
    """Every normalisation that was tried with its accuracy, and the best one where it is clearly better than now."""
    if not begun.normalisations:
        return []
    lines = [f"accuracy on the same {begun.trial.samples} samples, with inputs"]
    lines += [f"  {one.accuracy:.2f} {one.name}" for one in begun.normalisations]
    best = next((one for one in begun.normalisations if one.better), None)
    if best is None:
        return lines
    entry = best.normalise.entry()
    advice = f"write preprocess: {inline(entry)}" if entry else "leave preprocess out"
    return [
        *lines,
        f"warning: accuracy is {begun.trial.accuracy:.2f}, but {best.accuracy:.2f} with inputs {best.name}: is that "
        f"how the model was trained? Then {advice}",
    ]


def _order_lines(begun: Beginning) -> list[str]:
    """A warning where the outputs seem to be the classes in another order."""
    if begun.order is None:
        return []
    classes = begun.subject.classes or tuple(map(str, range(len(begun.order.order))))
    names = [classes[number] for number in begun.order.order]
    return [
        f"warning: accuracy is {begun.trial.accuracy:.2f}, but {begun.order.accuracy:.2f} if the outputs are the "
        f"classes in another order: {shortened(names)}. If they are, every result would be wrong: name the classes in "
        "the order of the outputs, with --classes, and number the targets alike"
    ]


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "one number"


def subject_entry(options: Mapping[str, str | None], file: Path) -> dict[str, Any]:
    """The subject as given on the command line: whole numbers and YAML are read, paths are seen from the file."""
    entry: dict[str, Any] = {}
    for key, text in options.items():
        if text is not None:
            whole = key in ("classes", "output") and text.isdecimal()
            value = int(text) if whole else _read(text, f"--{key}")
            entry[key] = beside(value, file) if key in ("model", "weights", "classes") else value
    return entry


def data_entries(options: Mapping[str, str | None], file: Path) -> dict[str, Any]:
    """The splits as given on the command line."""
    return {split: beside(_read(text, f"--{split}"), file) for split, text in options.items() if text is not None}


def _read(text: str, option: str) -> Any:
    """Text as it is, or the mapping or list that it is in YAML."""
    return parse_yaml(text, option, expected="a value")[0] if text.lstrip().startswith(("{", "[")) else text


def beside(value: Any, file: Path) -> Any:
    """A path as it is seen from the folder of the file; what is no path stays as it is."""
    if isinstance(value, Mapping):
        places = ("metadata", "root") if "attack" in value else ("path", "metadata", "root")  # then it is a split
        return {key: beside(item, file) if key in places else item for key, item in value.items()}
    if not isinstance(value, str) or not Path(value).exists() or Path(value).is_absolute():
        return value
    return os.path.relpath(value, file.parent)
