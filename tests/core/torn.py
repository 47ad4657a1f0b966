"""A power cut, played: what was not waited for (`fsync`) is lost, half there or zeroed, when it comes."""

import os
import random
import shutil
import stat
from pathlib import Path


class PowerCut(BaseException):
    """The machine is off: nothing after it counts."""


class Disk:
    """Notes in `with` what `os.fsync` waited for below a folder; after `survives` calls that matter, the power goes.

    A file has the content that it had when it was last waited for, and a folder the names. What was not waited for is
    lost, or whole, or half, or zeros, as `chance` has it; so are names. `left` is the folder as it is found when the
    power is back. What was there before is on the disk.
    """

    def __init__(self, folder: Path, left: Path, *, survives: float = float("inf"), chance: random.Random):
        self._folder, self._left, self._survives, self._chance = folder, left, survives, chance
        self.calls = 0
        self._files: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._open: list[int] = []
        """Kept open, so that no number of a file is given twice."""
        self._real = {name: getattr(os, name) for name in ("fsync", "rename", "replace", "mkdir", "unlink", "rmdir")}

    def __enter__(self) -> "Disk":
        for path in (self._folder, *self._folder.rglob("*")):  # what was there before lasts
            self._wait_for(path.stat().st_ino, os.open(path, os.O_RDONLY))
        for name in self._real:
            setattr(os, name, self._counted(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)
        for number in self._open:
            os.close(number)

    def _counted(self, name):
        def call(*arguments, **options):
            if self.calls >= self._survives:
                if not self._left.exists():
                    self._restore(self._folder, self._left, self._folder.stat().st_ino)
                raise PowerCut
            self.calls += 1
            answer = self._real[name](*arguments, **options)
            if name == "fsync":
                self._wait_for(os.fstat(arguments[0]).st_ino, os.dup(arguments[0]))
            return answer

        return call

    def _wait_for(self, inode: int, descriptor: int) -> None:
        self._open.append(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self._names[inode] = {entry.name: entry.inode() for entry in os.scandir(descriptor)}
        else:
            self._files[inode] = os.pread(descriptor, os.fstat(descriptor).st_size, 0)

    def _restore(self, now: Path, left: Path, inode: int) -> None:
        """Put what is on the disk of folder `now` into `left`."""
        self._real["mkdir"](left)
        there = {entry.name: entry.inode() for entry in os.scandir(now)} if now.is_dir() else {}
        lasting = self._names.get(inode, {})
        paths = {entry.inode(): Path(entry.path) for entry in self._everything()}
        for name, number in (there if self._chance.random() < 0.5 else lasting).items():
            path = paths.get(number)
            if (path is not None and path.is_dir()) or number in self._names:
                self._restore(path or Path(os.devnull), left / name, number)
            else:
                (left / name).write_bytes(self._content(number, path))

    def _everything(self):
        for folder, _, _ in os.walk(self._folder):
            yield from os.scandir(folder)

    def _content(self, number: int, path: Path | None) -> bytes:
        lasting = self._files.get(number, b"")
        now = lasting if path is None else path.read_bytes()
        if lasting == now:
            return now
        kept = [lasting, now, now[: len(now) // 2], bytes(len(now))]
        return self._chance.choice(kept)


def cut(work, folder: Path, left: Path, *, survives: int, chance: random.Random) -> bool:
    """Let `work` write to a folder until the power goes; whether it went, and then `left` is what there is."""
    shutil.rmtree(left, ignore_errors=True)
    with Disk(folder, left, survives=survives, chance=chance):
        try:
            work()
        except PowerCut:
            return True
    return left.exists()


def calls_of(work, folder: Path) -> int:
    """How many calls that matter `work` makes."""
    with Disk(folder, folder / "unused", chance=random.Random(0)) as disk:
        work()
        return disk.calls
