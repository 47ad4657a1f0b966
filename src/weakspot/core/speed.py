"""Trying the faster ways to run a model, so that a user can choose one knowing what it brings and what it changes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from weakspot.core.errors import WeakspotError
from weakspot.core.look import Forward
from weakspot.core.subject import Subject
from weakspot.core.ways import Ways, disagreement

ALL_WAYS = {
    "as it is": Ways(),
    "channels_last": Ways(channels_last=True),
    "bf16": Ways(precision="bf16"),
    "bf16, channels_last": Ways(precision="bf16", channels_last=True),
    "compile": Ways(compile=True),
}
_REPEATS = 5


@dataclass(frozen=True)
class Tried:
    """One way: images per second, that rate as a multiple of the plain one, what it changes; or why it fails."""

    way: str
    per_second: float | None
    speedup: float | None
    changed: dict[str, float]
    trouble: str = ""


def try_ways(subject: Subject, inputs: Tensor, *, compile: bool = False) -> Iterator[Tried]:
    """Run one batch in every way, the best of five times each; `compile` can take a minute, so only where asked."""
    there = inputs.to(subject.device)
    base: float | None = None
    for name, ways in ALL_WAYS.items():
        if ways.compile and not compile:
            continue
        twin = subject.in_ways(ways)
        try:
            with twin.borrowed() as plain, torch.no_grad():
                quick = twin.quick(compiled=True)
                changed = disagreement(iter([there]), plain, quick, twin.task, twin.scores)
                rate = len(there) / _seconds(quick, there)
        except (WeakspotError, RuntimeError) as error:
            yield Tried(name, None, None, {}, str(error).strip().partition("\n")[0])
            continue
        base = base or rate
        yield Tried(name, rate, rate / base, changed)


def _seconds(forward: Forward, inputs: Tensor) -> float:
    """The shortest of a few runs, waiting for the device each time."""
    best = float("inf")
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        forward(inputs).cpu()
        best = min(best, time.perf_counter() - begun)
    return best
