"""A disk that is full, for tests."""

import resource
from contextlib import contextmanager


@contextmanager
def files_end_at(size):
    """No file grows beyond so many bytes, whoever writes it and in which language."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
