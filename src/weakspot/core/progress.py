"""How long work reports its progress. The command line draws a bar; a library call is silent unless given one."""

import warnings
from typing import Protocol


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


def say(progress: Progress | None, message: str) -> None:
    """Say what the user should know; where no progress is shown, as a warning."""
    if progress is None:
        warnings.warn(message, stacklevel=4)
    else:
        progress.tell(message)
