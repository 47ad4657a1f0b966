"""Nets that fail in ways of their own at one input, and a plan over several rooms."""

import os
import signal
import time
import warnings
from pathlib import Path

import torch
from torch import nn

from weakspot.core.engine import LocalEngine
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.plan import Plan
from weakspot.core.run import Run
from weakspot.core.source import limited
from weakspot.core.subject import Subject
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.registry import steps_for

SPECIAL = 99.0
"""The input at which the nets below do what they do."""
HOW = ExecutionOptions(batch_size=4, shard_size=8, workers=0, threads=1)


def family() -> list[int]:
    """This process and what it started, and what that started: other tests may have a Ray of their own."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            children.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
        except OSError:
            continue
    found, waiting = [], [os.getpid()]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


class AtOneInput(nn.Module):
    """Doubles its inputs; at the special one it does something else, once: what was done is told by a file."""

    def __init__(self, folder: Path, pause: float = 0.0):
        super().__init__()
        self.mark, self.pause = folder / "mark", pause

    def forward(self, inputs):
        time.sleep(self.pause)
        if bool((inputs == SPECIAL).any()) and not self.mark.exists():
            self.mark.touch()
            self.do()
        return inputs * 2.0

    def do(self):
        raise ValueError("no model for such inputs")


class Dying(AtOneInput):
    def do(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Hanging(AtOneInput):
    def do(self):
        time.sleep(600)


class HangingAtFirst(AtOneInput):
    """Hangs at any batch, as long as fewer than so many did before; not where it was made, and is tried beforehand.

    How often stands in a file: a model with another attribute would be another model.
    """

    def __init__(self, folder: Path, times: float):
        super().__init__(folder)
        self.folder, self.home = folder, os.getpid()
        self.times = times

    @property
    def times(self) -> float:
        return float((self.folder / "times").read_text())

    @times.setter
    def times(self, times: float) -> None:
        (self.folder / "times").write_text(str(times))

    def forward(self, inputs):
        if os.getpid() != self.home and len(list(self.folder.glob("hung-*"))) < self.times:
            (self.folder / f"hung-{os.getpid()}").touch()
            time.sleep(600)
        return inputs * 2.0


class Odd(AtOneInput):
    def do(self):
        warnings.warn("this input is odd", UserWarning, stacklevel=1)


class AlwaysDying(AtOneInput):
    def do(self):
        self.mark.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


class AlwaysFailing(AtOneInput):
    def do(self):
        self.mark.unlink()
        raise ValueError("no model for such inputs")


def samples(count, *special):
    """So many samples of three numbers, the special input at these places."""
    values = torch.arange(count * 3, dtype=torch.float32).reshape(count, 3) % 7
    for place in special:
        values[place] = SPECIAL
    return ArraySource(values.numpy(), ids=[f"s{place}" for place in range(count)])


def exported(folder, *, free):
    """The file of an exported net, three numbers in and two out, of a free or a fixed batch size."""
    net, shapes = nn.Sequential(nn.Linear(3, 2)), ({0: torch.export.Dim("batch")},) if free else None
    torch.export.save(torch.export.export(net, (torch.zeros(2, 3),), dynamic_shapes=shapes), folder / "net.pt2")
    return folder / "net.pt2"


class Interrupted(Exception):
    pass


class StopsAfter(LocalEngine):
    """This process, until so many shards are done."""

    def __init__(self, shards):
        self.left = shards

    def run(self, work, shards, progress):
        for shard in shards:
            if self.left == 0:
                raise Interrupted
            super().run(work, [shard], progress)
            self.left -= 1


class Noted:
    """Keeps what it is told; raises once so many samples are done."""

    def __init__(self, stop_after=None):
        self.done, self.said, self._stop_after = 0, [], stop_after

    def begin(self, what, *, total, done=0):
        self.total, self.done = total, done

    def advance(self, samples):
        self.done += samples
        if self._stop_after is not None and self.done >= self._stop_after:
            raise Interrupted

    def tell(self, message):
        self.said.append(message)

    def end(self):
        pass


QUESTIONS = {
    "coverage": {"criteria": ["nc", "kmnc", "idc"], "kmnc": {"sections": 20}, "baseline": False, "agreement": False},
    "robustness": {"looks": 6},
    "classes": {},
}


def several_rooms(folder, *, net, engine=None, threads=1, count=64, progress=None):
    """Questions of three rooms to the embedded net; every byte that the Run keeps."""
    data = {"train": limited(digits.train(), count), "test": limited(digits.test(), count)}
    how = ExecutionOptions(batch_size=8, shard_size=8, workers=1, threads=threads)
    subject = Subject(net, classes=10, scores="logits")
    Plan.of(steps_for(QUESTIONS)).run(
        subject, data, Run.create(folder), execution=how, engine=engine, progress=progress
    )
    return contents(folder)


def contents(folder):
    """Every byte that a run keeps."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in files.items() if name != ".lock"}
