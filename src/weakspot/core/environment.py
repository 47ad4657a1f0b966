"""What this process may use, and its environment variables for a while."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Set a variable, and give it back as it was."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before
