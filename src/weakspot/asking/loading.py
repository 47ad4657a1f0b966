"""From the entries of `weakspot.yaml` to a Subject and its data."""

import copy
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch import nn

from weakspot.asking.class_order import class_order
from weakspot.asking.config import Config, NormaliseEntry, SubjectEntry
from weakspot.asking.splits import attacked_split, load_source
from weakspot.core.errors import ConfigError
from weakspot.core.guarded_open import read_lines
from weakspot.core.options import shortened
from weakspot.core.source import Source, limited
from weakspot.core.subject import Subject
from weakspot.data.groups import suggested_groups
from weakspot.looks import Box, Ensemble, ReversedAxes, SlidingWindow, StoredSamples
from weakspot.models import Normalise, OnnxModel, load_exported, load_weights, stated_preparation
from weakspot.registry import called, imported

_WITH_NAMES = ("classification", "multilabel")
_MODEL_FILES = {".pt2": load_exported, ".onnx": OnnxModel}


@dataclass(frozen=True)
class Loaded:
    """A subject, its data, and what the user should know about how they came about."""

    subject: Subject
    data: dict[str, Source]
    notes: tuple[str, ...] = ()


@contextmanager
def modules_beside(folder: Path) -> Iterator[None]:
    """Let modules in `folder` be imported, as Python does for a script that lies there."""
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.resolve()))


@contextmanager
def named(config: Config, *path: Any) -> Iterator[None]:
    """Errors begin with the file and line of what stands under these keys."""
    with nullcontext() if config.places is None else config.places.named(*path):
        try:
            yield
        except OSError as error:
            raise ConfigError(f"cannot read {shortened(error.filename)}: {error.strerror}") from error


def load(
    config: Config, folder: Path, *, device: str | None = None, limit: int | None = None, sets: Path | None = None
) -> Loaded:
    """The subject and all splits, each of at most `limit` samples; relative paths start at `folder`.

    sets: where attacked splits are kept; without it they are made anew, in memory.
    """
    with modules_beside(folder):
        subject, notes = load_subject(config, folder, device=device)
        loaded = with_data(
            subject,
            config.subject.classes,
            partial(_sources, config, folder),
            limit=limit,
            place=partial(named, config),
        )
        for split, entry in config.data.items():
            if entry.attack is not None:
                with named(config, "data", split):
                    loaded.data[split] = attacked_split(entry, loaded.data, loaded.subject, sets)
    return replace(loaded, notes=(*notes, *loaded.notes))


def with_data(
    subject: Subject,
    classes: int | str | list[str] | None,
    sources_for: Callable[[Subject], dict[str, Source]],
    *,
    limit: int | None,
    place: Callable[..., AbstractContextManager[None]],
) -> Loaded:
    """The subject with the names of its classes, its splits, and notes for the user.

    classes: what was said of the classes.
    sources_for: reads the splits for a subject, whose classes number targets.
    place: where errors under these keys point to.
    """
    sources, said = sources_for(subject), list[str]()
    if subject.task in _WITH_NAMES:
        with place("subject"):
            names, said = class_order(subject, classes, _names(sources))
        if names is not None:
            subject = copy.copy(subject)
            subject.classes = names
            sources = sources_for(subject)
        _check_alike(classes, subject, sources, place)
    elif subject.task == "segmentation" and classes is None:
        subject = _with_names_of_masks(subject, sources)
    remarks = [f"{split}: {remark}" for split, source in sources.items() for remark in getattr(source, "remarks", ())]
    remarks += [f"{split}: {_ungrouped(source)}" for split, source in sources.items() if suggested_groups(source)]
    data: dict[str, Source] = {split: limited(source, limit) for split, source in sources.items()}
    return Loaded(subject, data, (*said, *remarks))


def _with_names_of_masks(subject: Subject, sources: Mapping[str, Source]) -> Subject:
    """The subject with the class names that the data have, such as those of `dataset.json`, where none were given."""
    found = set(_names(sources).values())
    stored = subject.model.classes if isinstance(subject.model, StoredSamples) else None
    if len(found) != 1:
        return subject
    (names,) = found
    if stored is not None and len(names) != stored:
        raise ConfigError(
            f"the stored samples have {stored} classes, and the data name {len(names)}: {shortened(list(names))}; "
            "predictions and data must be of one task"
        )
    subject = copy.copy(subject)
    subject.classes = names
    return subject


def _ungrouped(source: Source) -> str:
    return (
        f"{suggested_groups(source)}: samples that belong together are not independent, and intervals would be too "
        "narrow; name the column that says which do (group:)"
    )


def _sources(config: Config, folder: Path, subject: Subject) -> dict[str, Source]:
    """The splits that are no attack on another."""
    sources = {}
    for split, entry in config.data.items():
        if entry.attack is None:
            with named(config, "data", split):
                sources[split] = load_source(split, entry, folder, subject, config.subject)
    return sources


def _names(sources: Mapping[str, Source]) -> dict[str, tuple[str, ...]]:
    """The classes of the splits that name any, each in the order in which it numbers them."""
    named = {split: getattr(source, "classes", None) for split, source in sources.items()}
    return {split: tuple(names) for split, names in named.items() if names}


def _check_alike(
    classes: int | str | list[str] | None,
    subject: Subject,
    sources: Mapping[str, Source],
    place: Callable[..., AbstractContextManager[None]],
) -> None:
    """Refuse splits that number their classes otherwise than others, or than the subject does."""
    of_splits = _names(sources)
    said = {"subject": subject.classes} if subject.classes and not isinstance(classes, int) else {}
    for (one, first), (other, second) in pairwise({**said, **of_splits}.items()):
        renamed = one == "subject" and sorted(first) != sorted(second)
        if first != second and not renamed:
            with place("data", other):
                raise ConfigError(
                    f"{one} has the classes {shortened(list(first))} and {other} {shortened(list(second))}, so one "
                    "number would mean two classes: name all classes under subject, in the order of the outputs, and "
                    "number those of the data alike"
                )


def load_subject(config: Config, folder: Path, *, device: str | None = None) -> tuple[Subject, list[str]]:
    """The model with its weights, as a Subject, and what is worth saying about it."""
    entry = config.subject
    where = entry.device if device is None else device
    with named(config, "subject", "model"):
        model = model_named(entry, folder, where)
        notes = list(getattr(model, "notes", ())) if not isinstance(model, nn.Module) else []
    if entry.weights is not None:
        with named(config, "subject", "weights"):
            model, said = _weighted(model, entry.weights, folder, entry.weights_entry)
            notes += said
    with named(config, "subject", "preprocess"):
        preprocess = _preprocess(entry.preprocess)
    with named(config, "subject", "classes"):
        classes = _classes(entry.classes, folder)
    if preprocess is None:
        notes += unprepared(model, entry.model, entry.arguments)
    with named(config, "subject"):
        subject = subject_of(entry, model, classes=classes, preprocess=preprocess, device=where)
    files = [entry.weights] if isinstance(entry.weights, str) else entry.weights or []
    subject.weights = ", ".join(Path(str(file)).name for file in files)
    return subject, notes


def unprepared(model: Any, reference: str = "", arguments: Mapping[str, Any] | None = None) -> list[str]:
    """What to know of a model without pre-processing: what it says itself of the inputs that it was trained on."""
    stated = stated_preparation(model, reference, arguments)
    return [] if stated is None or stated.normalise == Normalise() else [stated.note()]


def subject_of(
    entry: SubjectEntry, model: Any, *, classes: Sequence[str] | int | None, preprocess: Any, device: str
) -> Subject:
    """A model as the Subject that an entry describes."""
    return Subject(
        model,
        task=entry.task,
        classes=classes,
        scores=entry.scores,
        bounds=None if entry.bounds is None else (entry.bounds[0], entry.bounds[1]),
        output=entry.output,
        preprocess=preprocess,
        device=device,
        cuda_graphs=entry.cuda_graphs,
        precision=entry.precision,
        compile=entry.compile,
        channels_last=entry.channels_last,
        forward=_forward(entry, model),
        fingerprint=entry.fingerprint or own_fingerprint(model),
    )


def _forward(entry: SubjectEntry, model: Any) -> Callable[[Any, Any], Any] | None:
    whole: Callable[[Any, Any], Any] | None = None
    if entry.window is not None:
        whole = SlidingWindow(tuple(entry.window), entry.window_overlap)
    if entry.box is not None:
        whole = _box(entry, model, whole)
    return ReversedAxes(whole) if entry.axes == "xyz" else whole


def _box(entry: SubjectEntry, model: Any, within: Callable[[Any, Any], Any] | None) -> Box:
    if isinstance(model, StoredSamples):
        raise ConfigError("stored samples lie on the grid of the image files: leave out box")
    if entry.task != "segmentation" or entry.scores is None:
        raise ConfigError(
            f"box is for a segmentation whose scores are said, got task {entry.task} and scores {entry.scores}: "
            "write task: segmentation and scores: logits or probabilities, or leave out box"
        )
    return Box(tuple(entry.box or ()), entry.scores, within)


def own_fingerprint(model: Any) -> str | None:
    """What a black box says of itself, as an ONNX file does."""
    known = None if isinstance(model, nn.Module) else getattr(model, "fingerprint", None)
    return known() if callable(known) else None


def model_named(entry: SubjectEntry, folder: Path, device: str) -> Any:
    """From a file, or what `module:name` is or gives."""
    suffix = Path(entry.model).suffix.lower()
    if suffix in _MODEL_FILES:
        how = {**entry.arguments, **({"device": device} if suffix == ".onnx" else {})}
        return called(entry.model, _MODEL_FILES[suffix], how, folder / entry.model)
    if ":" not in entry.model:
        raise ConfigError(f"{entry.model!r} is no model: expected package.module:name, or a file .pt2 or .onnx")
    target = imported(entry.model)
    model = target if isinstance(target, nn.Module) else called(entry.model, target, entry.arguments)
    if not callable(model):
        raise ConfigError(f"{entry.model} gives {shortened(model)}: expected an nn.Module, or a function of a batch")
    return model


def _weighted(model: Any, files: str | list[str], folder: Path, entry: str | None) -> tuple[Any, list[str]]:
    """The model with its weights; with several, an ensemble of copies."""
    if not isinstance(model, nn.Module):
        raise ConfigError(f"weights are {files}, but the model is no nn.Module and cannot take them: leave weights out")
    if isinstance(files, str):
        return model, list(load_weights(model, folder / files, entry=entry))
    members = [copy.deepcopy(model) for _ in files]
    notes = [
        note
        for member, path in zip(members, files, strict=True)
        for note in load_weights(member, folder / path, entry=entry)
    ]
    return Ensemble(members), list(dict.fromkeys(notes))


def _preprocess(entry: NormaliseEntry | str | None) -> Callable[[Any], Any] | None:
    if entry is None:
        return None
    if isinstance(entry, NormaliseEntry):
        return normalise(entry)
    function: Any = imported(entry)
    if not callable(function):
        raise ConfigError(f"preprocess {entry} is {shortened(function)}: expected a function of a batch of inputs")
    return function  # type: ignore[no-any-return]


def normalise(entry: NormaliseEntry) -> Normalise:
    """The normalisation that an entry describes."""
    mean, std = ((v,) if isinstance(v, int | float) else tuple(v) for v in (entry.mean, entry.std))
    return Normalise(entry.scale, mean, std, entry.bgr, entry.channels_last)


def _classes(classes: int | str | list[str] | None, folder: Path) -> list[str] | int | None:
    if isinstance(classes, int) and classes < 1:
        raise ConfigError(f"classes is {classes}: expected one or more")
    if not isinstance(classes, str):
        return classes
    try:
        lines = read_lines(folder / classes)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read the class names from {folder / classes}: {reason}") from error
    names = [line.strip() for line in lines if line.strip()]
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if not names or twice is not None:
        trouble = "holds no class names" if not names else f"names the class {twice!r} twice"
        raise ConfigError(f"{folder / classes} {trouble}: expected one name per line, each once")
    return names
