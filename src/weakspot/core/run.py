"""A Run: a folder of Findings with a manifest. Read and written without torch; the format is in `docs/format.md`."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from weakspot.core.errors import Damaged, RunBusy, RunError
from weakspot.core.files import make_folder, tidy, write_text, writing
from weakspot.core.finding import Finding, verify
from weakspot.core.guarded_open import open_plain
from weakspot.core.index_checks import check_name, other_kinds, read_index
from weakspot.core.locks import lock

FORMAT = "weakspot-run"
VERSION = 1
MANIFEST = "run.json"

_PARTS = {"subject": dict, "data": dict, "findings": dict, "asked": list}
_OF_SUBJECT = {"model": str, "fingerprint": str, "task": str, "classes": list}
_OF_SPLIT = {"fingerprint": str, "samples": int, "skipped": dict}

UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From a manifest of version n to one of version n + 1."""


@dataclass(frozen=True)
class Run:
    """A folder of Findings. `Run.open` reads one that exists, `Run.create` makes one or continues it."""

    folder: Path
    _verified: dict[str, object] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The Findings of which every byte was read, with what changes when a file of theirs does."""

    def __repr__(self) -> str:
        try:
            held = f"{len(names := self.names())} Finding{'s' * (len(names) != 1)}"
        except RunError:
            held = "damaged"
        return f"{type(self).__name__}({str(self.folder)!r}, {held})"

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """A Run that exists."""
        run = cls(Path(folder))
        run.manifest()
        return run

    @classmethod
    def create(cls, folder: str | Path) -> Self:
        """A new Run, or the one already in that folder; any other folder that is not empty is refused."""
        run = cls(Path(folder))
        if (run.folder / MANIFEST).exists():
            return cls.open(folder)
        if run.folder.exists() and (not run.folder.is_dir() or _occupied(run.folder)):
            raise RunError(f"{folder} is not empty and holds no weakspot run: choose another folder")
        try:
            make_folder(run.folder)
        except OSError as error:
            raise RunError(f"cannot write to {folder}: {error.strerror}; choose another folder") from error
        run._write({"subject": {}, "data": {}, "findings": {}})  # first of all: a folder without it is no run
        with writing(run.folder):
            make_folder(run.folder / "findings")
        return run

    def manifest(self) -> dict[str, Any]:
        """What `run.json` says, brought up to this version's form, with every part of the kind that the format says."""
        manifest = read_index(self.folder / MANIFEST, FORMAT, VERSION, UPGRADES)
        odd = next(_odd_parts(manifest), None)
        if odd is not None:
            raise RunError(f"{self.folder / MANIFEST} is damaged: {odd}; restore it or examine again")
        return manifest

    def names(self) -> list[str]:
        """The names of the Findings, in the order in which they were made."""
        return list(self.manifest()["findings"])

    def __contains__(self, name: str) -> bool:
        return name in self.manifest()["findings"]

    def __getitem__(self, name: str) -> Finding:
        """A Finding; when it is first opened, every byte is held against the manifest."""
        self.head(name)  # before anything large is read
        folder = self.own_folder(name)
        signature = _signature(folder)
        if self._verified.get(name) != signature:
            verify(folder)
        finding = self._checked(name, Finding.load(folder))
        self._verified[name] = signature
        return finding

    def head(self, name: str) -> Finding:
        """What the index of a Finding says, which is as the manifest names it: quick, however large the Finding is."""
        self._named(name)
        return self._checked(name, Finding.load_head(self.own_folder(name)))

    def __iter__(self) -> Iterator[Finding]:
        """All Findings; where any is damaged, an error names all that are."""
        findings, errors = [], []
        for name in self.names():
            try:
                findings.append(self[name])
            except Damaged as error:
                errors.append(error)
        if len(errors) > 1:
            raise RunError(" · ".join(map(str, errors)))
        if errors:
            raise errors[0]
        return iter(findings)

    def verify(self) -> None:
        """Raise if any byte of any Finding differs from what the manifest says."""
        self._verified.clear()
        iter(self)

    def _named(self, name: str) -> str:
        """The digest that the manifest names for a Finding."""
        digests: dict[str, str] = self.manifest()["findings"]
        if name not in digests:
            raise RunError(f"{self.folder} has no Finding {name!r}; it has: {', '.join(digests) or 'none yet'}")
        return digests[name]

    def _checked(self, name: str, finding: Finding) -> Finding:
        if finding.digest != self._named(name) or finding.name != name:
            raise Damaged(self.finding_folder(name), "it is not the Finding that the manifest names")
        return finding

    def finding_folder(self, name: str) -> Path:
        """Where a Finding of that name lies."""
        check_name(name)
        return self.folder / "findings" / name

    def own_folder(self, name: str) -> Path:
        """Where a Finding of that name lies, in the Run itself: a link could lead anywhere."""
        folder = self.finding_folder(name)
        for path in (folder.parent, folder):
            if path.is_symlink():
                raise Damaged(name, f"{path} is a link that leads out of the Run", "copy it into the Run")
        return folder

    def work_folder(self, key: str) -> Path:
        """Where the finished shards of an unfinished probe lie."""
        return self.folder / "work" / key

    def save(self, finding: Finding) -> None:
        """Keep a Finding: first its folder, then its line in the manifest."""
        finding.save(self.own_folder(finding.name))
        manifest = self.manifest()
        manifest["findings"][finding.name] = finding.digest
        self._write(manifest)

    def describe(self, *, subject: Mapping[str, Any], data: Mapping[str, Any], asked: Iterable[str] = ()) -> None:
        """Note in the manifest what was examined, and the Findings that were asked for besides those before."""
        before = self.manifest()
        names = list(dict.fromkeys([*before.get("asked", []), *asked]))
        self._write({**before, "subject": subject, "data": data, "asked": names})

    @contextmanager
    def described(self, *, subject: Mapping[str, Any], data: Mapping[str, Any], asked: Iterable[str]) -> Iterator[None]:
        """Describe what is examined; where it fails before anything came of it, Findings stay what they were."""
        before = self.manifest()
        self.describe(subject=subject, data=data, asked=asked)
        try:
            yield
        except (Exception, SystemExit):
            begun = any((self.folder / "work").glob("*/shard-*"))
            if before["findings"] and not begun and self.manifest()["findings"] == before["findings"]:
                self._write(before)
            raise

    def note_answers(self, answers: Mapping[str, Any]) -> None:
        """Note in the manifest the models' outputs for a few samples, so that a changed model is noticed."""
        before = self.manifest()
        if before.get("answers") != answers:
            self._write({**before, "answers": answers})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process from writing to the same Run; reading needs no lock."""
        path = self.folder / ".lock"
        with writing(path):  # a Run from elsewhere may hold a link, and what it leads to is not to be changed
            file = open_plain(path, links=False, flags=os.O_RDWR | os.O_CREAT, mode="r+")
        with file:
            try:
                lock(file, wait=False)
            except BlockingIOError:
                file.seek(0)
                raise RunBusy(
                    f"{self.folder} is being written by process {file.read().strip() or 'unknown'}: "
                    "wait for it, stop it, or choose another folder"
                ) from None
            with writing(path):  # without a buffer, which a full disk would let fail once more when it is closed
                os.ftruncate(file.fileno(), 0)
                os.pwrite(file.fileno(), str(os.getpid()).encode(), 0)
            tidy(self.folder)
            tidy(self.folder / "findings")
            yield

    def _write(self, manifest: Mapping[str, Any]) -> None:
        parts = {key: manifest[key] for key in ("subject", "data", "answers", "asked", "findings") if key in manifest}
        ordered = {"format": FORMAT, "version": VERSION, **parts}
        write_text(self.folder / MANIFEST, json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def _signature(folder: Path) -> object:
    """Kind, number, size and time of every file; None where they cannot be listed."""
    try:
        held = [(entry.name, entry.stat(follow_symlinks=False)) for entry in os.scandir(folder)]
    except OSError:
        return None
    return sorted((name, state.st_mode, state.st_ino, state.st_size, state.st_mtime_ns) for name, state in held)


def _occupied(folder: Path) -> bool:
    return any(not path.name.startswith(".") for path in folder.iterdir())


def _odd_parts(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What of a manifest is of another kind than the format says, the outermost first."""
    yield from _described("", other_kinds({"asked": [], **manifest}, _PARTS))
    subject, data, findings = manifest["subject"], manifest["data"], manifest["findings"]
    yield from _described("findings.", other_kinds(findings, dict.fromkeys(findings, str)))
    yield from _described("data.", other_kinds(data, dict.fromkeys(data, dict)))
    for name, split in data.items():
        yield from _described(f"data.{name}.", other_kinds(split, _OF_SPLIT, needed=False))
    yield from _described("subject.", other_kinds(subject, _OF_SUBJECT, needed=False))
    for key, names in (("asked", manifest.get("asked", [])), ("subject.classes", subject.get("classes") or [])):
        if not all(isinstance(name, str) for name in names):
            yield f"{key} holds something else than names"


def _described(path: str, odd: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"{path}{key} is no {kind}" for key, kind in odd)
