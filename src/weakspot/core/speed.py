"""Trying the faster ways to run a model, so that a user can choose one knowing what it brings and what it changes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from weakspot.core.errors import WeakspotError
from weakspot.core.inference_options import InferenceOptions, disagreement
from weakspot.core.look import Forward
from weakspot.core.subject import Subject

ALL_WAYS = {
    "as it is": InferenceOptions(),
    "channels_last": InferenceOptions(channels_last=True),
    "bf16": InferenceOptions(precision="bf16"),
    "bf16, channels_last": InferenceOptions(precision="bf16", channels_last=True),
    "compile": InferenceOptions(compile=True),
}
_REPEATS = 5


@dataclass(frozen=True)
class Tried:
    """One way: images per second, that rate as a multiple of the plain one, what it changes; or why it fails.

    `speedup` is the middle of a few comparisons with the plain way, `slowest` and `fastest` their ends: if 1 lies
    between, it is not sure whether the way is faster. The plain way is not compared with itself.
    """

    way: str
    per_second: float | None
    speedup: float | None
    changed: dict[str, float]
    trouble: str = ""
    slowest: float | None = None
    fastest: float | None = None

    @property
    def sure(self) -> bool:
        """Whether all comparisons say the same."""
        return self.slowest is None or self.fastest is None or not self.slowest <= 1 <= self.fastest


def try_inference_options(subject: Subject, inputs: Tensor, *, compile: bool = False) -> Iterator[Tried]:
    """Run one batch five times in every way, by turns with the plain way: other work on the machine then slows both.

    `compile` can take a minute, so only where asked.
    """
    there = inputs.to(subject.device)
    for name, ways in ALL_WAYS.items():
        if ways.compile and not compile:
            continue
        twin = subject.with_inference_options(ways)
        try:
            with twin.borrowed() as plain, torch.no_grad():
                quick = twin.quick(compiled=True)
                changed = disagreement(iter([there]), plain, quick, twin.task, twin.scores)
                tried = _timed(name, plain, quick, there, changed)
        except (WeakspotError, RuntimeError) as error:
            tried = Tried(name, None, None, {}, str(error).strip().partition("\n")[0])
        yield tried


def _timed(way: str, plain: Forward, quick: Forward, inputs: Tensor, changed: dict[str, float]) -> Tried:
    """The best rate of a few runs, and how each run compares with one in the plain way just before."""
    if ALL_WAYS[way] == InferenceOptions():
        best = min(_seconds(quick, inputs) for _ in range(_REPEATS))
        return Tried(way, len(inputs) / best, 1.0, changed)
    turns = [(_seconds(plain, inputs), _seconds(quick, inputs)) for _ in range(_REPEATS)]
    ratios = [usual / taken for usual, taken in turns]
    rate = len(inputs) / min(taken for _, taken in turns)
    return Tried(way, rate, median(ratios), changed, slowest=min(ratios), fastest=max(ratios))


def _seconds(forward: Forward, inputs: Tensor) -> float:
    """How long one run takes, waiting for the device."""
    begun = time.perf_counter()
    forward(inputs).cpu()
    return time.perf_counter() - begun
