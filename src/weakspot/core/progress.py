"""How long work reports its progress. The command line draws a bar; a library call is silent unless given one."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

LOGGER = logging.getLogger("weakspot")
"""Everything that weakspot logs goes here."""


class Progress(Protocol):
    """Receives messages about the work."""

    def begin(self, what: str, *, total: int, done: int = 0) -> None:
        """A pass over `total` samples begins; `done` of them were finished by an earlier, interrupted run."""

    def advance(self, samples: int) -> None:
        """So many more samples are done."""

    def tell(self, message: str) -> None:
        """Something that the user should know."""

    def end(self) -> None:
        """The pass is over."""


class Silent:
    """Says nothing."""

    def begin(self, what: str, *, total: int, done: int = 0) -> None:
        """Nothing."""

    def advance(self, samples: int) -> None:
        """Nothing."""

    def tell(self, message: str) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class Logged(Silent):
    """Logs what goes on under the name `weakspot`: passes for information, what the user should know as a warning."""

    def begin(self, what: str, *, total: int, done: int = 0) -> None:
        """A pass and its size."""
        LOGGER.info("%s: %d samples%s", what, total, f", {done} of them done before" if done else "")

    def tell(self, message: str) -> None:
        """A warning."""
        LOGGER.warning("%s", message)


_shown: ContextVar[Progress] = ContextVar("weakspot_progress")


def shown_progress() -> Progress:
    """Where to say how far it is, for what makes a Finding."""
    return _shown.get(Silent())


@contextmanager
def showing(progress: Progress | None) -> Iterator[None]:
    """What is done inside says there how far it is."""
    token = _shown.set(progress or Silent())
    try:
        yield
    finally:
        _shown.reset(token)


def say(progress: Progress | None, message: str) -> None:
    """Say what the user should know; where no progress is shown, it is logged as a warning."""
    if progress is None:
        LOGGER.warning("%s", message)
    else:
        progress.tell(message)
