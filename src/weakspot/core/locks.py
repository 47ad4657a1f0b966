"""Locks of files. Runs are written on Linux and macOS; elsewhere, where there are no such locks, they can be read."""

from typing import IO

from weakspot.core.errors import RunError


def lock(file: int | IO[str], *, wait: bool) -> None:
    """Take the lock of an open file; held by another process, it is waited for, or is a `BlockingIOError`."""
    try:
        import fcntl
    except ModuleNotFoundError as error:
        raise RunError(
            "weakspot writes Runs on Linux and macOS only: this system has no locks of files (fcntl), so two processes "
            "could write over each other; Runs can be read, compared and judged here"
        ) from error
    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
