"""Faster inference options, measured on one batch: how much faster each is, and what it changes."""

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

CHOICES = {
    "as it is": InferenceOptions(),
    "channels_last": InferenceOptions(channels_last=True),
    "bf16": InferenceOptions(precision="bf16"),
    "bf16, channels_last": InferenceOptions(precision="bf16", channels_last=True),
    "compile": InferenceOptions(compile=True),
}
_REPEATS = 5


@dataclass(frozen=True)
class Tried:
    """One choice of inference options: its speed and what it changes; or why it fails.

    per_second: images per second.
    speedup: that rate over the plain one, the median of a few comparisons.
    slowest, fastest: the smallest and largest of these; with 1 between them, it is not sure which is faster.
    changed: how far the outputs differ from the plain ones.
    """

    name: str
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
    """Run one batch five times with each choice, in turn with plain float32: other work on the machine then slows both.

    `compile` can take a minute, so only where asked.
    """
    there = inputs.to(subject.device)
    for name, options in CHOICES.items():
        if options.compile and not compile:
            continue
        twin = subject.with_inference_options(options)
        try:
            with twin.borrowed() as plain, torch.no_grad():
                quick = twin.quick(compiled=True)
                changed = disagreement(iter([there]), plain, quick, twin.task, twin.scores)
                tried = _timed(name, plain, quick, there, changed)
        except (WeakspotError, RuntimeError) as error:
            tried = Tried(name, None, None, {}, str(error).strip().partition("\n")[0])
        yield tried


def _timed(name: str, plain: Forward, quick: Forward, inputs: Tensor, changed: dict[str, float]) -> Tried:
    """The best rate of a few runs, and how each run compares with a plain one just before."""
    if CHOICES[name] == InferenceOptions():
        best = min(_seconds(quick, inputs) for _ in range(_REPEATS))
        return Tried(name, len(inputs) / best, 1.0, changed)
    turns = [(_seconds(plain, inputs), _seconds(quick, inputs)) for _ in range(_REPEATS)]
    ratios = [usual / taken for usual, taken in turns]
    rate = len(inputs) / min(taken for _, taken in turns)
    return Tried(name, rate, median(ratios), changed, slowest=min(ratios), fastest=max(ratios))


def _seconds(forward: Forward, inputs: Tensor) -> float:
    """How long one run takes, waiting for the device."""
    begun = time.perf_counter()
    forward(inputs).cpu()
    return time.perf_counter() - begun
