"""A trial of a few samples, where what makes a Finding may take a short way and say how long the whole takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class TrialRun:
    """A trial on `tried` of `whole` samples; `seconds` is what the Finding of all would take, where that is known."""

    tried: int
    whole: int
    seconds: float | None = None


_current: ContextVar[TrialRun | None] = ContextVar("weakspot_trial", default=None)


def trial_run() -> TrialRun | None:
    """The trial that this is part of; None where the work is meant."""
    return _current.get()


@contextmanager
def trying(tried: int, whole: int) -> Iterator[TrialRun]:
    """What is done inside is a trial."""
    run = TrialRun(tried, whole)
    token = _current.set(run)
    try:
        yield run
    finally:
        _current.reset(token)
