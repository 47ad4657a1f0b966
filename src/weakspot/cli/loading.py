"""From the entries of `weakspot.yaml` to a Subject and its data."""

import copy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from torch import nn

from weakspot.asking import called, imported
from weakspot.cli.config import Config, NormaliseEntry, SubjectEntry
from weakspot.cli.splits import attacked_split, load_source
from weakspot.core.errors import ConfigError
from weakspot.core.options import shortened
from weakspot.core.source import Source, limited
from weakspot.core.subject import Subject
from weakspot.looks import Ensemble, SlidingWindow
from weakspot.models import Normalise, OnnxModel, load_exported, load_weights

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
        data: dict[str, Source] = {}
        classes: dict[str, Sequence[str]] = {}
        for split, entry in sorted(config.data.items(), key=lambda item: item[1].attack is not None):
            with named(config, "data", split):
                if entry.attack is None:
                    source = load_source(split, entry, folder, subject, config.subject)
                    notes += [f"{split}: {remark}" for remark in getattr(source, "remarks", ())]
                    if subject.task in ("classification", "multilabel"):
                        classes[split] = getattr(source, "classes", None) or ()
                        _check_alike(classes)
                    data[split] = limited(source, limit)
                else:
                    data[split] = attacked_split(entry, data, subject, sets)
    return Loaded(subject, data, tuple(notes))


def _check_alike(classes: Mapping[str, Sequence[str]]) -> None:
    """Refuse splits that number their classes differently: each counts those it finds, unless they are named."""
    known = {split: tuple(names) for split, names in classes.items() if names}
    for (one, first), (other, second) in pairwise(known.items()):
        if first != second:
            raise ConfigError(
                f"{one} has the classes {shortened(list(first))} and {other} {shortened(list(second))}, so one number "
                "would mean two classes: name all classes under subject, in the order of the outputs"
            )


def load_subject(config: Config, folder: Path, *, device: str | None = None) -> tuple[Subject, list[str]]:
    """The model with its weights, as a Subject, and what is worth saying about it."""
    entry = config.subject
    where = entry.device if device is None else device
    with named(config, "subject", "model"):
        model = _model(entry, folder, where)
        notes = list(getattr(model, "notes", ())) if not isinstance(model, nn.Module) else []
    if entry.weights is not None:
        with named(config, "subject", "weights"):
            model, said = _weighted(model, entry.weights, folder, entry.weights_entry)
            notes += said
    with named(config, "subject", "preprocess"):
        preprocess = _preprocess(entry.preprocess)
    with named(config, "subject", "classes"):
        classes = _classes(entry.classes, folder)
    with named(config, "subject"):
        return subject_of(entry, model, classes=classes, preprocess=preprocess, device=where), notes


def subject_of(
    entry: SubjectEntry, model: Any, *, classes: Sequence[str] | int | None, preprocess: Any, device: str
) -> Subject:
    """A model as the Subject that an entry describes."""
    own = None if isinstance(model, nn.Module) else getattr(model, "fingerprint", None)
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
        forward=None if entry.window is None else SlidingWindow(tuple(entry.window), entry.window_overlap),
        fingerprint=entry.fingerprint or (own() if callable(own) else None),
    )


def _model(entry: SubjectEntry, folder: Path, device: str) -> Any:
    """From a file, or what `module:name` is or gives."""
    suffix = Path(entry.model).suffix.lower()
    if suffix in _MODEL_FILES:
        how = {**entry.arguments, **({"device": device} if suffix == ".onnx" else {})}
        return called(entry.model, _MODEL_FILES[suffix], how, folder / entry.model)
    if ":" not in entry.model:
        raise ConfigError(f"{entry.model!r} is no model: expected package.module:name, or a file .pt2 or .onnx")
    found = imported(entry.model)
    model = found if isinstance(found, nn.Module) else called(entry.model, found, entry.arguments)
    if not callable(model):
        raise ConfigError(f"{entry.model} gives {shortened(model)}: expected an nn.Module, or a function of a batch")
    return model


def _weighted(model: Any, given: str | list[str], folder: Path, entry: str | None) -> tuple[Any, list[str]]:
    """The model with its weights; with several, an ensemble of copies."""
    if not isinstance(model, nn.Module):
        raise ConfigError(f"weights {given} were given, but the model is no nn.Module and cannot take them")
    if isinstance(given, str):
        return model, list(load_weights(model, folder / given, entry=entry))
    members = [copy.deepcopy(model) for _ in given]
    notes = [
        note
        for member, path in zip(members, given, strict=True)
        for note in load_weights(member, folder / path, entry=entry)
    ]
    return Ensemble(members), list(dict.fromkeys(notes))


def _preprocess(given: NormaliseEntry | str | None) -> Callable[[Any], Any] | None:
    if given is None:
        return None
    if isinstance(given, NormaliseEntry):
        return normalise(given)
    found: Any = imported(given)
    if not callable(found):
        raise ConfigError(f"preprocess {given} is {shortened(found)}: expected a function of a batch of inputs")
    return found  # type: ignore[no-any-return]


def normalise(entry: NormaliseEntry) -> Normalise:
    """The normalisation that an entry describes."""
    mean, std = ((v,) if isinstance(v, int | float) else tuple(v) for v in (entry.mean, entry.std))
    return Normalise(entry.scale, mean, std, entry.bgr, entry.channels_last)


def _classes(given: int | str | list[str] | None, folder: Path) -> list[str] | int | None:
    if isinstance(given, int) and given < 1:
        raise ConfigError(f"classes is {given}: expected one or more")
    if not isinstance(given, str):
        return given
    try:
        lines = (folder / given).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read the class names from {folder / given}: {reason}") from error
    names = [line.strip() for line in lines if line.strip()]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if not names or twice is not None:
        trouble = "holds no class names" if not names else f"names the class {twice!r} twice"
        raise ConfigError(f"{folder / given} {trouble}: expected one name per line, each once")
    return names
