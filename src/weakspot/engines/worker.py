"""What a worker does in its own process, on any machine. It knows nothing of Ray."""

import os
import pickle
import shutil
import socket
import tempfile
import threading
import time
import traceback
import warnings
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from weakspot.core.engine import peak_memory
from weakspot.core.errors import SubjectError
from weakspot.core.examine import run_shard
from weakspot.core.files import remove_folder
from weakspot.core.job import Job, Shard, versions
from weakspot.core.locks import lock
from weakspot.core.own_process import allow_many_files, keep_freed_memory
from weakspot.core.sample_check import CheckedSource
from weakspot.core.subject import Subject
from weakspot.core.user_code import with_frames

_SCRATCH = "weakspot-worker-"
_SETTLED = 60.0
"""Seconds after which a worker has surely locked the folder that it made."""


@dataclass(frozen=True)
class Trouble:
    """An exception on its way to another process, with the places where it came about."""

    error: bytes | None
    kind: str
    message: str
    frames: tuple[tuple[str, int | None, str], ...]
    text: str

    @classmethod
    def of(cls, error: Exception) -> "Trouble":
        """An exception to send; one that cannot be sent is replaced by its name and message."""
        frames = tuple((f.filename, f.lineno, f.name) for f in traceback.extract_tb(error.__traceback__))
        text, packed = "".join(traceback.format_exception(error)), None
        with suppress(Exception):
            packed = pickle.dumps(error)
            pickle.loads(packed)
        return cls(packed, type(error).__name__, str(error), frames, text)

    def exception(self) -> Exception:
        """The exception, as it would have been raised here."""
        error: Exception | None = None
        with suppress(Exception):
            error = pickle.loads(self.error) if self.error is not None else None
        error = error or type(self.kind, (RuntimeError,), {})(self.message)
        with_frames(error, [traceback.FrameSummary(*frame, lookup_line=False) for frame in self.frames])
        error.add_note(f"in a worker:\n{self.text}")
        return error


@dataclass
class News:
    """What happened since it was last asked."""

    moved: list[tuple[int, int]] = field(default_factory=list)
    """Shards, and by how many samples each moved on."""
    said: list[str] = field(default_factory=list)
    warned: list[tuple[str, type[Warning], str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class ShardOutcome:
    """What became of a shard: files to be fetched where the worker cannot write to the Run; or the trouble with it."""

    batch_size: int
    seconds: float
    skipped: bool = False
    files: tuple[tuple[int, str, int], ...] = ()
    trouble: Trouble | None = None
    news: News = field(default_factory=News)
    """All that was said since the shard before, heard already or not."""


class _NotWantedError(BaseException):
    """The shard was done by another: no error of the model or the data, so nothing that catches those may catch it."""


class _Telling:
    """The progress of one shard, kept until the driver asks."""

    def __init__(self, worker: "Worker", shard: int):
        self._worker, self._shard = worker, shard

    def begin(self, what: str, *, total: int, done: int = 0) -> None:
        """Nothing: the driver knows."""

    def advance(self, samples: int) -> None:
        """Note it; stop here where nobody waits for the shard any longer."""
        self._worker.note(moved=(self._shard, samples))
        if self._worker.not_wanted(self._shard):
            raise _NotWantedError

    def tell(self, message: str) -> None:
        """Note it."""
        self._worker.note(said=message)

    def end(self) -> None:
        """Nothing."""


class Worker:
    """One copy of the model, and shards done with it one after another.

    Its methods but `take` and `work` may be called while a shard is being done.
    """

    def __init__(self, device: str):
        keep_freed_memory()  # the process is the worker's own
        allow_many_files()
        self._threads, self._device = 1, device
        self._lock, self._any = threading.Lock(), threading.Event()
        self._news, self._kept = News(), News()
        self._forgotten: set[int] = set()
        self._scratch = _claimed_folder()
        self._subject: tuple[str, Subject] | None = None
        self._source: tuple[str, CheckedSource] | None = None
        self._loan = ExitStack()
        self._job: Job | None = None
        self._direct = False
        warnings.showwarning = self._warned  # type: ignore[assignment]  # it takes where to print, too

    def about(self) -> dict[str, Any]:
        """Where it runs and with what."""
        here = {"node": socket.gethostname(), "process": os.getpid(), "scratch": self._scratch}
        return {**here, "versions": versions()}

    def take_subject(self, key: str, subject: Subject) -> None:
        """Keep a model for the jobs to come, on the device on which the worker computes."""
        subject.device = torch.device(self._device)
        self._loan.close()
        self._loan.enter_context(subject.borrowed())  # for good: nobody else uses this copy
        self._subject = key, subject

    def take_source(self, key: str, source: CheckedSource) -> None:
        """Keep data for the jobs to come."""
        self._source = key, source

    def take(self, shell: Job, work: Path, probe: str, discard: bool) -> bool:
        """Be ready for the shards of a job; whether it can write to where they go, which a file shows."""
        assert self._subject and self._source, "model and data come first"
        self._threads = shell.execution.threads or 1
        self._direct = not discard and _same_folder(work, probe)
        target = work if self._direct else self._scratch / "work"
        self._job = shell.filled(self._subject[1], self._source[1], target)
        with self._lock:
            self._news, self._kept, self._forgotten = News(), News(), set()
        return self._direct

    def work(self, shard: Shard, batch_size: int) -> ShardOutcome:
        """Do one shard, with batches no larger than what is known to fit."""
        assert self._job is not None, "a job comes first"
        torch.set_num_threads(self._threads)  # each thread has a number of its own
        job, begun = self._job, time.perf_counter()
        job.batch_size = min(job.batch_size, batch_size)
        trouble, skipped = None, self.not_wanted(shard.number)
        try:
            if not skipped:
                run_shard(job, shard, _Telling(self, shard.number))
        except _NotWantedError:
            skipped = True
        except SystemExit as error:  # it would end the worker, and the next one at the same sample
            trouble = Trouble.of(SubjectError(f"your own code ended a worker with sys.exit({error.code!r})"))
        except Exception as error:
            trouble = Trouble.of(error)
        files = () if skipped or trouble or self._direct else self._files(job, shard)
        with self._lock:
            kept, self._kept = self._kept, News()
        return ShardOutcome(job.batch_size, time.perf_counter() - begun, skipped, files, trouble, kept)

    def _files(self, job: Job, shard: Shard) -> tuple[tuple[int, str, int], ...]:
        folders = [(index, job.shard_folder(index, shard.number)) for index in shard.missing]
        return tuple((i, path.name, path.stat().st_size) for i, folder in folders for path in sorted(folder.iterdir()))

    def read(self, index: int, shard: int, name: str, offset: int, size: int) -> bytes:
        """A piece of a file of a shard that was done."""
        assert self._job is not None, "a job comes first"
        with (self._job.shard_folder(index, shard) / name).open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def drop(self, shard: Shard) -> None:
        """The files of a shard have been fetched, or nobody wants them."""
        if self._job is not None and not self._direct:
            for index in shard.missing:
                remove_folder(self._job.shard_folder(index, shard.number))

    def forget(self, shard: int) -> None:
        """Another was faster: skip the shard, or stop at the next batch."""
        self._forgotten.add(shard)

    def not_wanted(self, shard: int) -> bool:
        """Whether nobody waits for the shard any longer."""
        return shard in self._forgotten

    def note(self, *, moved: tuple[int, int] | None = None, said: str | None = None) -> None:
        """Keep for the driver what happened."""
        with self._lock:
            self._news.moved += [moved] if moved else []
            for news in (self._news, self._kept):
                news.said += [said] if said else []
        self._any.set()

    def _warned(self, message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        with self._lock:
            for news in (self._news, self._kept):
                news.warned.append((str(message), category, filename, lineno))
        self._any.set()

    def news(self, wait: float) -> News:
        """What happened since it was last asked; gathered for so many seconds."""
        time.sleep(wait)
        self._any.wait(10 * wait)
        with self._lock:
            news, self._news = self._news, News()
        self._any.clear()
        return _summed(news)

    def memory(self) -> tuple[int, int | None]:
        """The most memory it had at once, in bytes: its own, and on its GPU if it has one."""
        return peak_memory(), torch.cuda.max_memory_reserved() if self._device == "cuda" else None


def _summed(news: News) -> News:
    moved: dict[int, int] = {}
    for shard, samples in news.moved:
        moved[shard] = moved.get(shard, 0) + samples
    return News(list(moved.items()), news.said, news.warned)


def _same_folder(work: Path, probe: str) -> bool:
    """Whether this is the folder in which the driver wrote a file of that name, and it can be written to."""
    mine = work / f"{probe}-{os.getpid()}"
    try:
        if not (work / probe).is_file():
            return False
        mine.touch()
    except OSError:
        return False
    mine.unlink()
    return True


def _claimed_folder() -> Path:
    """A folder for shards on this machine, held by a lock; what workers left behind that were killed is removed."""
    for old in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _SETTLED:
                with (old / "lock").open("a") as file:
                    lock(file, wait=False)
                    shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_SCRATCH))
    lock(os.open(folder / "lock", os.O_CREAT | os.O_WRONLY), wait=True)  # held as long as the process lives
    return folder
