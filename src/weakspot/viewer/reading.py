"""Reading a Run that may be damaged, may come from somebody else, and may be written to while it is read."""

import os
import stat
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock, RLock
from typing import Any, TypeVar

from weakspot.core.digest import digest_bytes
from weakspot.core.errors import RunError
from weakspot.core.finding import FORMAT, TABLE, UPGRADES, VERSION, Estimate, Finding, Picture, check_name, read_index
from weakspot.core.run import MANIFEST, Run

T = TypeVar("T")
MOST_INDEX_BYTES = 16 << 20
MOST_PICTURE_BYTES = 64 << 20
MOST_TABLE_BYTES = 2 << 30
MOST_CELLS = 200_000_000
"""Of a table in memory: a damaged or made-up file may ask for more than the machine has."""
_OF_A_FINDING = ("head", "columns", "finding")
_SCALAR = (str, int, float, bool, type(None))
_TRIES = 4
_PAUSE = 0.05
_TRUSTED = 30.0
"""Seconds after which what was damaged is read again: a Run may be on its way from another machine."""


class NotThereError(RunError):
    """What was asked for is not in the Run."""


class RunReader:
    """A Run as its manifest is at one moment: what is damaged is told, and does not stop the rest.

    A Finding counts as it stands in the manifest: one whose index has another digest is being replaced, or damaged.
    """

    def __init__(self, run: Run, *, before: "RunReader | None" = None):
        self.run = run
        self._manifest = checked_manifest(run)
        self._lock = Lock()
        self._making: dict[Hashable, RLock] = {}
        self._troubled: float | None = None
        self._kept: dict[Hashable, Any] = {} if before is None else before.lasting(self._manifest["findings"])

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.run.folder.resolve().name

    def manifest(self) -> dict[str, Any]:
        """What `run.json` says."""
        return self._manifest

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once as long as the manifest stays as it is; errors are kept, too."""
        with self._lock:
            making = self._making.setdefault(key, RLock())
        with making:  # one lock for each key, so that nobody waits for what somebody else needs
            if key not in self._kept:
                self._kept[key] = _made(make)
            found: Any = self._kept[key]
        if isinstance(found, RunError):
            self._troubled = self._troubled or time.monotonic()
            raise found
        return found  # type: ignore[no-any-return]

    @property
    def stale(self) -> bool:
        """Whether something was damaged some time ago, so that it is worth looking whether it still is."""
        return self._troubled is not None and time.monotonic() - self._troubled > _TRUSTED

    def lasting(self, digests: Mapping[str, str]) -> dict[Hashable, Any]:
        """What is kept of Findings that another manifest names, too."""
        same = {name for name, digest in self._manifest["findings"].items() if digests.get(name) == digest}
        return {key: found for key, found in list(self._kept.items()) if _lasts(key, found, same)}

    def names(self) -> list[str]:
        """The Findings, in the order in which they were made."""
        return list(self.manifest()["findings"])

    def head(self, name: str) -> Finding:
        """A Finding without table, arrays and pictures: quick, however large it is."""
        return self._finding("head", name, _read_head)

    def finding(self, name: str) -> Finding:
        """A Finding with everything; arrays are mapped, not read."""
        return self._finding("finding", name, _read_whole)

    def _finding(self, kind: str, name: str, read: Callable[[Path], Finding]) -> Finding:
        if name not in self._manifest["findings"]:
            raise NotThereError(f"the Run has no Finding {name!r}; examine with the question that gives it")
        return self.kept((kind, name), lambda: self._current(name, read))

    def _current(self, name: str, read: Callable[[Path], Finding]) -> Finding:
        """As the manifest names it; while an examination replaces it, both are briefly at odds."""
        trouble = other = RunError(f"{name} is not the Finding that the manifest names: examine again")
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE)
            try:
                found = read(self._folder(name))
            except RunError as error:
                trouble = error
                continue
            except Exception as error:  # a made-up file can fail in any way, and must not stop the viewer
                trouble = RunError(f"{name} is damaged: {type(error).__name__}; examine again")
                continue
            if found.digest in (self._manifest["findings"][name], checked_manifest(self.run)["findings"].get(name)):
                return found
            trouble = other
        raise trouble

    def _folder(self, name: str) -> Path:
        folder = self.run.finding_folder(name)
        for place in (folder.parent, folder):
            if place.is_symlink():
                raise RunError(f"{name} is damaged: {place.name} leads out of the Run; copy it into the Run")
        return folder

    def columns(self, name: str) -> list[str]:
        """The columns of a Finding's table, without reading the table."""
        self.head(name)
        return self.kept(("columns", name), lambda: _columns(self._folder(name)))

    def heads(self) -> dict[str, Finding]:
        """Every Finding that can be read, without table, arrays and pictures."""
        found = {}
        for name in self.names():
            with suppress(RunError):
                found[name] = self.head(name)
        return found

    def damaged(self) -> dict[str, str]:
        """The Findings that cannot be read, each with what is wrong: the index of all, the rest of those in use."""
        told = {}
        for name in self.names():
            try:
                self.head(name)
            except RunError as error:
                told[name] = str(error)
            opened = self._kept.get(("finding", name))
            if isinstance(opened, RunError):
                told[name] = str(opened)
        return told


class WatchedRun:
    """A Run that an examination may be writing to: whoever asks gets it as it is now, and keeps it so."""

    def __init__(self, run: Run):
        self.run = run
        self._lock = Lock()
        self._signature: tuple[int, ...] = ()
        self._reader: RunReader | None = None

    def now(self) -> RunReader:
        """The Run as its manifest is now; the same reader as long as that stays as it is and nothing is damaged."""
        with self._lock:
            signature = _signature(self.run.folder / MANIFEST)
            if self._reader is None or signature != self._signature or self._reader.stale:
                self._reader, self._signature = RunReader(self.run, before=self._reader), signature
            return self._reader


def _signature(path: Path) -> tuple[int, ...]:
    """Changes with the file."""
    try:
        told = path.stat()
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; was the Run moved?") from error
    if told.st_size > MOST_INDEX_BYTES:
        raise RunError(f"{path} has {told.st_size} bytes, more than any manifest: restore it or examine again")
    return told.st_ino, told.st_mtime_ns, told.st_size


def _made(make: Callable[[], T]) -> T | RunError:
    try:
        return make()
    except RunError as error:
        return error


def _lasts(key: Hashable, found: Any, same: set[str]) -> bool:
    """Whether what is kept is a Finding that the new manifest names, too."""
    return isinstance(key, tuple) and key[0] in _OF_A_FINDING and key[1] in same and not isinstance(found, RunError)


def checked_manifest(run: Run) -> dict[str, Any]:
    """The manifest, with every part of the kind that the format says."""
    try:
        manifest = run.manifest()
    except RecursionError as error:
        raise RunError(f"{run.folder / MANIFEST} is damaged: nested too deep; restore it or examine again") from error
    wanted = {"subject": dict, "data": dict, "findings": dict}
    odd = [key for key, kind in wanted.items() if not isinstance(manifest.get(key), kind)]
    odd += [f"data.{key}" for key, own in manifest.get("data", {}).items() if not isinstance(own, dict)] * (not odd)
    if odd:
        raise RunError(f"{run.folder / MANIFEST} is damaged: {odd[0]} is no mapping; restore it or examine again")
    return {**manifest, "findings": {name: digest for name, digest in manifest["findings"].items() if _plain(name)}}


def _plain(name: str) -> bool:
    try:
        check_name(name)
    except RunError:
        return False
    return True


def _read_head(folder: Path) -> Finding:
    """What the index alone says."""
    index, digest = _index(folder)
    summary = {str(name): _estimate(entry) for name, entry in index["summary"]}
    media = {str(key): Picture(b"", str(caption)) for key, _, caption in index["media"]}
    head = Finding(_text(index["name"]), _text(index["about"]), summary, media=media, provenance=index["provenance"])
    _check_provenance(head)
    head.__dict__["digest"] = digest
    return head


def _read_whole(folder: Path) -> Finding:
    index, _ = _index(folder)
    media = {file for _, file, _ in index["media"]}
    for name in {*index["files"], *media, *(f"{array}.npy" for array in index["arrays"])}:
        check_name(name)
        _check_file(folder / name, MOST_PICTURE_BYTES if name in media else None)
    if TABLE in index["files"]:
        _check_table(folder / TABLE)
    found = Finding.load(folder)
    _check_provenance(found)
    return found


def _index(folder: Path) -> tuple[dict[str, Any], str]:
    path = folder / "finding.json"
    _check_file(path, MOST_INDEX_BYTES)
    digest = digest_bytes(path.read_bytes())
    return read_index(path, FORMAT, VERSION, UPGRADES), digest


def _check_file(path: Path, most: int | None = None) -> None:
    """Only plain files that lie in the Run itself are opened, and what is read at once is not larger than expected."""
    try:
        told = os.lstat(path)
    except OSError as error:
        raise RunError(f"{path.parent.name} is damaged: {path.name}: {error.strerror}; examine again") from error
    if not stat.S_ISREG(told.st_mode):
        raise RunError(f"{path.parent.name} is damaged: {path.name} is no file of the Run; copy it there")
    if most is not None and told.st_size > most:
        raise RunError(f"{path.parent.name} is damaged: {path.name} has {told.st_size} bytes; examine again")


def _check_table(path: Path) -> None:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        told = file.metadata
        size = sum(told.row_group(number).total_byte_size for number in range(told.num_row_groups))
        cells = told.num_rows * max(1, told.num_columns)
    if size > MOST_TABLE_BYTES or cells > MOST_CELLS:
        raise RunError(f"{path.parent.name} is damaged: its table claims {cells} cells; examine again")


def _columns(folder: Path) -> list[str]:
    from pyarrow import ArrowException, parquet

    if not (folder / TABLE).exists():
        return []
    _check_file(folder / TABLE)
    try:
        return list(parquet.read_schema(folder / TABLE).names)
    except (ArrowException, OSError, ValueError) as error:
        raise RunError(f"{folder.name} is damaged: its table cannot be read; examine again") from error


def _estimate(entry: Any) -> Estimate:
    numbers: dict[str, Any] = {
        key: float(item) if item in ("Infinity", "-Infinity") else item for key, item in entry.items()
    }
    found = Estimate(**numbers)
    ends = (found.low, found.high, found.confidence)
    if not isinstance(found.value, _SCALAR) or not all(end is None or _is_number(end) for end in ends):
        raise RunError("a Finding is damaged: a number of its summary is none; examine again")
    return replace(found, about=_text(found.about))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise RunError("a Finding is damaged: its name or description is no text; examine again")
    return value


def _check_provenance(finding: Finding) -> None:
    if not isinstance(finding.provenance, dict) or not isinstance(finding.about, str):
        raise RunError(f"{finding.name} is damaged: its provenance is no mapping; examine again")
