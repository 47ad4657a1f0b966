"""Reading a Run that may be damaged, may come from somebody else, and may be written to while it is read."""

import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock, RLock
from typing import Any, TypeVar

from weakspot.core.errors import RunError
from weakspot.core.finding import TABLE, Finding, column_names, finding_index, verify
from weakspot.core.guarded_open import open_plain
from weakspot.core.index_checks import check_name
from weakspot.core.run import MANIFEST, Run

T = TypeVar("T")
MOST_CELLS = 200_000_000
"""Of a table in memory: a damaged or made-up file may ask for more than the machine has."""
_OF_A_FINDING = ("head", "columns", "finding")
_TRIES = 4
_PAUSE = 0.05
_TRUSTED = 30.0
"""Seconds after which what was damaged is read again: a Run may be on its way from another machine."""


class NotThereError(RunError):
    """What was asked for is not in the Run."""


class RunReader:
    """A Run as its manifest is at one moment: what is damaged is reported, and the rest can be read.

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
            value: Any = self._kept[key]
        if isinstance(value, RunError):
            self._troubled = self._troubled or time.monotonic()
            raise value
        return value  # type: ignore[no-any-return]

    @property
    def stale(self) -> bool:
        """Whether something was found damaged some time ago, so that it should be read again."""
        return self._troubled is not None and time.monotonic() - self._troubled > _TRUSTED

    def lasting(self, digests: Mapping[str, str]) -> dict[Hashable, Any]:
        """What is kept of Findings that another manifest names, too."""
        same = {name for name, digest in self._manifest["findings"].items() if digests.get(name) == digest}
        return {key: value for key, value in list(self._kept.items()) if _lasts(key, value, same)}

    def names(self) -> list[str]:
        """The Findings, in the order in which they were made."""
        return list(self.manifest()["findings"])

    def head(self, name: str) -> Finding:
        """A Finding without table, arrays and pictures: quick, however large it is."""
        return self._finding("head", name, Finding.load_head)

    def finding(self, name: str) -> Finding:
        """A Finding with everything; arrays are mapped, not read."""
        return self._finding("finding", name, _read_whole)

    def _finding(self, kind: str, name: str, read: Callable[[Path], Finding]) -> Finding:
        if name not in self._manifest["findings"]:
            raise NotThereError(f"the Run has no Finding {name!r}; examine with the question that makes it")
        return self.kept((kind, name), lambda: self._current(name, read))

    def _current(self, name: str, read: Callable[[Path], Finding]) -> Finding:
        """As the manifest names it; while an examination replaces it, both are briefly at odds."""
        trouble = other = RunError(f"{name} is not the Finding that the manifest names: examine again")
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE)
            try:
                finding = read(self.run.own_folder(name))
            except RunError as error:
                trouble = error
                continue
            except Exception as error:  # a made-up file can fail in any way, and must not stop the viewer
                trouble = RunError(f"{name} is damaged: {type(error).__name__}; examine again")
                continue
            if finding.digest in (self._manifest["findings"][name], checked_manifest(self.run)["findings"].get(name)):
                return finding
            trouble = other
        raise trouble

    def columns(self, name: str) -> list[str]:
        """The columns of a Finding's table, without reading the table."""
        self.head(name)
        return self.kept(("columns", name), lambda: _columns(self.run.own_folder(name)))

    def heads(self) -> dict[str, Finding]:
        """Every Finding that can be read, without table, arrays and pictures."""
        heads = {}
        for name in self.names():
            with suppress(RunError):
                heads[name] = self.head(name)
        return heads

    def damaged(self) -> dict[str, str]:
        """The Findings that cannot be read, each with what is wrong: the index of all, the rest of those in use."""
        problems = {}
        for name in self.names():
            try:
                self.head(name)
            except RunError as error:
                problems[name] = str(error)
            opened = self._kept.get(("finding", name))
            if isinstance(opened, RunError):
                problems[name] = str(opened)
        return problems


class WatchedRun:
    """A Run that an examination may be writing to: every request gets a view of it that no longer changes."""

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
        status = path.stat()
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; was the Run moved?") from error
    return status.st_ino, status.st_mtime_ns, status.st_size


def _made(make: Callable[[], T]) -> T | RunError:
    try:
        return make()
    except RunError as error:
        return error


def _lasts(key: Hashable, value: Any, same: set[str]) -> bool:
    """Whether what is kept is a Finding that the new manifest names, too."""
    return isinstance(key, tuple) and key[0] in _OF_A_FINDING and key[1] in same and not isinstance(value, RunError)


def checked_manifest(run: Run) -> dict[str, Any]:
    """The manifest, without Findings of which the name leads elsewhere."""
    manifest = run.manifest()
    return {**manifest, "findings": {name: digest for name, digest in manifest["findings"].items() if _plain(name)}}


def _plain(name: str) -> bool:
    try:
        check_name(name)
    except RunError:
        return False
    return True


def _read_whole(folder: Path) -> Finding:
    """A Finding of which every byte is as it was written."""
    verify(folder)
    if TABLE in finding_index(folder)["files"]:
        _check_table(folder / TABLE)
    return Finding.load(folder)


def _check_table(path: Path) -> None:
    """Refuse a table of more cells than the viewer can join to others."""
    from pyarrow import parquet

    with open_plain(path, links=False) as file:
        footer = parquet.read_metadata(file)
    cells = footer.num_rows * max(1, footer.num_columns)
    if cells > MOST_CELLS:
        raise RunError(f"{path.parent.name} is damaged: its table claims {cells} cells; examine again")


def _columns(folder: Path) -> list[str]:
    """The names of the table's columns, without reading it."""
    from pyarrow import ArrowException, parquet

    try:
        with open_plain(folder / TABLE, links=False) as file:
            return column_names(finding_index(folder), parquet.read_schema(file).names)
    except FileNotFoundError:
        return []
    except (ArrowException, OSError, ValueError) as error:
        raise RunError(f"{folder.name} is damaged: its table cannot be read; examine again") from error
