"""The labels of a Run as they were given: a file that only grows, safe against `kill -9`, a full disk and two writers.

One line per change, `{"labels": {"eye-07": "open"}}`, null where a label was taken back; the last word on an image
counts. Needs no torch.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weakspot.core.errors import RunError
from weakspot.core.files import sync, writing
from weakspot.core.guarded_open import parse_json, plain_descriptor
from weakspot.core.locks import lock

FILE = "labels.jsonl"
Change = Mapping[str, str | None]
"""The new label of each image by its id, None for none."""
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class _Read:
    """How far the file was read, and the labels up to there."""

    file: int = 0
    end: int = 0
    lines: int = 0
    labels: Mapping[str, str | None] = field(default_factory=dict)


class LabelJournal:
    """`labels.jsonl` in a Run's folder; several threads and processes may read and write it at once."""

    def __init__(self, folder: Path):
        self.path = folder / FILE
        self._read = _Read()

    def labels(self) -> dict[str, str] | None:
        """The label of each image that has one; None where nothing was ever written. Reads what is new alone."""
        try:
            file = self._open(os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RunError(f"cannot read {self.path}: {error.strerror or error}; restore or remove it") from error
        try:
            read = self._read = self._further(file)
        finally:
            os.close(file)
        return {name: label for name, label in read.labels.items() if label is not None} if read.lines else None

    def add(self, change: Callable[[dict[str, str] | None], Change]) -> None:
        """Write one more line, which is on the disk when this returns, or nothing.

        change: gets the labels as they are, None where there is no file yet, and says what is to be different. Nobody
            else writes meanwhile.
        """
        with writing(self.path), self._alone() as file:
            end = _whole_lines(file)
            labels = change(self.labels() if end else None)
            line = json.dumps({"labels": dict(labels)}) + "\n"
            try:
                _append(file, end, line.encode())
            except OSError:
                os.ftruncate(file, end)  # half a line would hide the next one
                raise

    @contextmanager
    def _alone(self) -> Iterator[int]:
        new = not self.path.exists()
        file = self._open(os.O_RDWR | os.O_CREAT)
        try:
            lock(file, wait=True)
            if new:
                sync(self.path.parent)
            yield file
        finally:
            os.close(file)

    def _open(self, flags: int) -> int:
        """A plain file of the Run itself: a Run from elsewhere may hold a link that leads out of it."""
        return plain_descriptor(self.path, most=_MOST_BYTES, links=False, flags=flags)

    def _further(self, file: int) -> _Read:
        status, earlier = os.fstat(file), self._read
        if status.st_ino != earlier.file or status.st_size < earlier.end:
            earlier = _Read(status.st_ino)
        content = os.pread(file, status.st_size - earlier.end, earlier.end)
        lines = content.split(b"\n")[:-1]  # what follows the last newline is still being written, or never was
        if not lines:
            return earlier
        labels, number = dict(earlier.labels), earlier.lines
        for number, line in enumerate(lines, earlier.lines + 1):
            labels |= self._parsed(line, number)
        return _Read(status.st_ino, earlier.end + sum(len(line) + 1 for line in lines), number, labels)

    def _parsed(self, line: bytes, number: int) -> Change:
        try:
            change: Any = parse_json(line)
            labels = change["labels"]
            if all(isinstance(label, str | None) for label in labels.values()):
                return labels  # type: ignore[no-any-return]
            raise ValueError("a label is neither text nor null")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{self.path}, line {number} is damaged ({error}): restore the file, or delete that line"
            ) from error


def _whole_lines(file: int) -> int:
    """The length up to the end of the last whole line; what a killed writer left after it is taken away."""
    size = os.fstat(file).st_size
    if not size or os.pread(file, 1, size - 1) == b"\n":
        return size
    end = os.pread(file, size, 0).rfind(b"\n") + 1
    os.ftruncate(file, end)
    return end


def _append(file: int, end: int, line: bytes) -> None:
    written = 0
    while written < len(line):
        written += os.pwrite(file, line[written:], end + written)
    os.fsync(file)
