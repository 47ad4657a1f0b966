"""From the entries of `weakspot.yaml` to a Subject and its data."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from weakspot.asking import imported
from weakspot.cli.config import Config, DataEntry, SubjectEntry
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.data.sources import ArraySource, ImageFolder


@contextmanager
def modules_beside(folder: Path) -> Iterator[None]:
    """Let modules in `folder` be imported, as Python does for a script that lies there."""
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.resolve()))


def load(config: Config, folder: Path, *, device: str | None = None) -> tuple[Subject, dict[str, Source]]:
    """The subject and all splits; relative paths start at `folder`."""
    with modules_beside(folder):
        subject = load_subject(config.subject, folder, device=device)
        named = None if isinstance(config.subject.classes, int) else subject.classes
        data = {split: load_source(split, entry, folder, named) for split, entry in config.data.items()}
    return subject, data


def load_subject(entry: SubjectEntry, folder: Path, *, device: str | None = None) -> Subject:
    """The model with its weights, as a Subject."""
    model = imported(entry.model)
    if not isinstance(model, nn.Module):
        model = _called(entry.model, model, entry.arguments)
    if entry.weights is not None:
        _load_weights(model, folder / entry.weights)
    return Subject(
        model,
        task=entry.task,
        classes=_classes(entry.classes, folder),
        scores=entry.scores,
        bounds=entry.bounds,
        output=entry.output,
        preprocess=None if entry.preprocess is None else imported(entry.preprocess),
        device=device or entry.device,
        cuda_graphs=entry.cuda_graphs,
    )


def _called(reference: str, factory: Any, arguments: dict[str, Any]) -> Any:
    try:
        return factory(**arguments)
    except TypeError as error:
        raise ConfigError(f"{reference} cannot be called with {arguments or 'no arguments'}: {error}") from error


def _load_weights(model: Any, path: Path) -> None:
    if not isinstance(model, nn.Module):
        raise ConfigError(f"weights {path} were given, but the model is no nn.Module and cannot take them")
    try:
        state = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"cannot read weights {path}: {error}; expected a safetensors file") from error
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise ConfigError(f"weights {path} do not fit the model: {error}") from error


def _classes(given: Path | int | list[str] | None, folder: Path) -> list[str] | int | None:
    if not isinstance(given, Path):
        return given
    try:
        return (folder / given).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read the class names from {folder / given}: {error.strerror}") from error


def load_source(split: str, entry: str | DataEntry, folder: Path, classes: tuple[str, ...] | None) -> Source:
    """A folder of images, an npz file, or `module:function` that gives a source."""
    if isinstance(entry, str) and ":" in entry and not (folder / entry).exists():
        made: Source = imported(entry)()
        return made
    wanted = DataEntry(path=Path(entry)) if isinstance(entry, str) else entry
    path = folder / wanted.path
    if path.suffix == ".npz":
        return _load_arrays(split, path, wanted)
    return ImageFolder(path, classes=classes, mode=wanted.mode, size=wanted.size)


def _load_arrays(split: str, path: Path, entry: DataEntry) -> ArraySource:
    try:
        with np.load(path, allow_pickle=False) as stored:
            names = (entry.inputs or f"x_{split}", entry.targets or f"y_{split}")
            if names[0] not in stored:
                raise DataError(f"{path} has no array {names[0]!r}: choose inputs from {', '.join(stored.files)}")
            if entry.targets is not None and entry.targets not in stored:
                raise DataError(f"{path} has no array {entry.targets!r}: choose targets from {', '.join(stored.files)}")
            targets = stored.get(names[1])
            return ArraySource(stored[names[0]], targets, channels=entry.channels)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
