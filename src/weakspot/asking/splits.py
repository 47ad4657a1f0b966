"""From an entry under `data` to a source of samples."""

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weakspot.asking.config import DataEntry, Kind, SubjectEntry
from weakspot.asking.wrapping import source_of
from weakspot.core.errors import ConfigError
from weakspot.core.guarded_open import open_plain, read_lines
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.data.sources import (
    ArraySource,
    Framing,
    Grouped,
    IdxSource,
    ImageFolder,
    ImageManifest,
    ImageZip,
    NiftiFolder,
    WithMetadata,
    is_nifti_folder,
)
from weakspot.looks import StoredSamples
from weakspot.registry import called, imported

_KINDS: dict[str, Kind] = {".zip": "zip", ".csv": "csv", ".tsv": "csv", ".npz": "npz", ".npy": "npy", ".idx": "idx"}


def load_source(split: str, entry: DataEntry, folder: Path, subject: Subject, said: SubjectEntry) -> Source:
    """The data of one split, with its metadata."""
    kind = entry.kind or _kind(entry.path, folder)
    _check_options(entry, kind)
    names = None if isinstance(said.classes, int) else subject.classes
    source = _READERS[kind](split, entry, folder, names, subject)
    if entry.metadata is not None:
        options = _given(entry, delimiter="delimiter") | ({"id_column": entry.metadata_id} if entry.metadata_id else {})
        source = WithMetadata(source, folder / entry.metadata, **options)
    return source if entry.group is None else Grouped(source, entry.group)


def attacked_split(entry: DataEntry, data: Mapping[str, Source], subject: Subject, sets: Path | None) -> Source:
    """Another split, attacked; made when it is first read, and kept in the folder `sets`."""
    from weakspot.attacks import attacked

    odd = sorted(entry.model_fields_set - {"path", "attack", "arguments"})
    if odd:
        raise ConfigError(f"{odd[0]} means nothing for an attacked split: it takes path, attack, arguments")
    if entry.path not in data:
        names = ", ".join(data) or "none"
        raise ConfigError(f"path is {entry.path!r}: expected the split to attack, one of {names}")
    made: Any = attacked(data[entry.path], subject, {**entry.arguments, "attack": entry.attack}, folder=sets)
    options = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in entry.arguments.items())
    made.made = f"the split {entry.path}, attacked by {entry.attack}" + (f" with {options}" if options else "")
    return made  # type: ignore[no-any-return]


def _kind(path: str, folder: Path) -> Kind:
    """What a path is: told by its end, and by whether it names a function."""
    if ":" in path and not (folder / path).exists():
        return "function"
    name = path.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix in _KINDS:
        return _KINDS[suffix]
    if name.endswith("-ubyte"):
        return "idx"
    return "nifti" if is_nifti_folder(folder / path) else "folder"


_FRAMING = ("size", "shorter_side", "crop", "interpolation")
_TAKES: dict[Kind, frozenset[str]] = {
    "folder": frozenset({"mode", "follow_links", *_FRAMING}),
    "zip": frozenset({"mode", "folder", *_FRAMING}),
    "csv": frozenset("mode targets path_column id_column root separator delimiter".split()) | frozenset(_FRAMING),
    "npz": frozenset({"inputs", "targets", "channels"}),
    "npy": frozenset({"targets", "channels"}),
    "idx": frozenset({"targets"}),
    "nifti": frozenset({"spacing", "orientation", "normalise", "sequences", "cases", "follow_links"}),
    "function": frozenset({"arguments", "inputs", "targets"}),
}
_EVERYWHERE = {"path", "kind", "metadata", "metadata_id", "group"}


def framed(entry: Any, framing: Mapping[str, Any], folder: Path) -> Any:
    """An entry of image files with the framing that the model states, where it has none of its own."""
    said = {"path": entry} if isinstance(entry, str) else entry
    if not framing or not isinstance(said, Mapping) or said.keys() & set(_FRAMING) or "attack" in said:
        return entry
    kind = said.get("kind") or _kind(str(said.get("path")), folder)
    return {**said, **framing} if kind in ("folder", "zip", "csv") else entry


def _check_options(entry: DataEntry, kind: Kind) -> None:
    allowed = _TAKES[kind] | _EVERYWHERE | ({"delimiter"} if entry.metadata else set())
    odd = sorted(entry.model_fields_set - allowed)
    if odd:
        takes = ", ".join(sorted(_TAKES[kind]))
        raise ConfigError(f"{odd[0]} means nothing for data of kind {kind}: it takes {takes}, metadata, group")
    if kind != "csv" and isinstance(entry.targets, list):
        raise ConfigError(f"targets is {entry.targets}: data of kind {kind} have one; columns are for csv")


def _given(entry: DataEntry, **names: str) -> dict[str, Any]:
    """The options that were given, by the names the sources know."""
    return {to: getattr(entry, name) for name, to in names.items() if getattr(entry, name) is not None}


def _images(entry: DataEntry, **more: str) -> dict[str, Any]:
    options = _given(entry, mode="mode", **more)
    framing: dict[str, Any] = _given(entry, **{name: name for name in _FRAMING})
    if not framing:
        return options
    sides: dict[str, Any] = {name: tuple(side) if isinstance(side, list) else side for name, side in framing.items()}
    return {**options, "size": sides["size"] if framing.keys() == {"size"} else Framing(**sides)}


def _folder(split: str, entry: DataEntry, folder: Path, names: Any, subject: Subject) -> Source:
    return ImageFolder(folder / entry.path, classes=names, follow_links=entry.follow_links, **_images(entry))


def _zip(split: str, entry: DataEntry, folder: Path, names: Any, subject: Subject) -> Source:
    return ImageZip(folder / entry.path, classes=names, **_images(entry, folder="folder"))


def _csv(split: str, entry: DataEntry, folder: Path, names: Any, subject: Subject) -> Source:
    columns = {name: name for name in ("targets", "path_column", "id_column", "separator", "delimiter")}
    options = _images(entry, **columns)
    if entry.path.lower().endswith(".tsv"):
        options.setdefault("delimiter", "\t")
    root = None if entry.root is None else folder / entry.root
    return ImageManifest(folder / entry.path, task=subject.task, classes=names, root=root, **options)


def _npz(split: str, entry: DataEntry, folder: Path, names: Any, subject: Subject) -> Source:
    inputs = entry.inputs or f"x_{split}"
    targets = entry.targets if isinstance(entry.targets, str) else _stored_name(folder / entry.path, f"y_{split}")
    return ArraySource.npz(folder / entry.path, inputs=inputs, targets=targets, **_given(entry, channels="channels"))


def _stored_name(path: Path, name: str) -> str | None:
    """The name, where an npz file has an array of that name."""
    try:
        with open_plain(path) as file, zipfile.ZipFile(file) as archive:
            return name if f"{name}.npy" in archive.namelist() else None
    except (OSError, zipfile.BadZipFile):
        return None  # whoever reads it next says what is wrong


def _npy(split: str, entry: DataEntry, folder: Path, names: Any, subject: Subject) -> Source:
    targets = None if entry.targets is None else folder / str(entry.targets)
    return ArraySource.npy(folder / entry.path, targets, **_given(entry, channels="channels"))


def _idx(split: str, entry: DataEntry, folder: Path, names: Any, subject: Subject) -> Source:
    return IdxSource(folder / entry.path, None if entry.targets is None else folder / str(entry.targets))


def _nifti(split: str, entry: DataEntry, folder: Path, names: Any, subject: Subject) -> Source:
    options = _given(entry, **{name: name for name in ("spacing", "orientation", "normalise", "sequences")})
    if isinstance(subject.model, StoredSamples) and (entry.spacing or entry.orientation == "RAS"):
        raise ConfigError(
            "stored samples lie on the grid of the image files: leave out spacing, and orientation unless it is file"
        )
    cases = entry.cases
    if isinstance(cases, str):
        cases = [name for line in read_lines(folder / cases) for name in line.split()]
    mixed = isinstance(subject.model, StoredSamples)
    return NiftiFolder(folder / entry.path, cases=cases, follow_links=entry.follow_links, mixed=mixed, **options)


def _function(split: str, entry: DataEntry, folder: Path, names: Any, subject: Subject) -> Source:
    parts = _given(entry, inputs="inputs", targets="targets")
    return source_of(
        called(entry.path, imported(entry.path), entry.arguments), f"{entry.path} gives", names, parts=parts
    )


_READERS: dict[Kind, Callable[[str, DataEntry, Path, Any, Subject], Source]] = {
    "folder": _folder,
    "zip": _zip,
    "csv": _csv,
    "npz": _npz,
    "npy": _npy,
    "idx": _idx,
    "nifti": _nifti,
    "function": _function,
}
