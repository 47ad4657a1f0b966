"""Settings of processes of weakspot's own, the command line and Ray's workers. Importing weakspot changes none."""

import ctypes
import sys
from contextlib import suppress

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # as malloc.h numbers them
_LARGEST = (1 << 30, 32 << 20)
"""Older versions of the C library refuse more than the second."""
_OPEN_FILES = 1 << 16


def allow_many_files() -> None:
    """Let the process open as many files as it may: each mapped array holds one open, and 1,024 is a usual limit."""
    try:
        import resource
    except ModuleNotFoundError:  # a system without such limits
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    with suppress(OSError, ValueError):  # some systems allow less than they say
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def keep_freed_memory() -> bool:
    """Let the C library keep memory that was freed, for results of up to a gigabyte; whether it does.

    Otherwise every result of more than some megabytes gets fresh pages from the operating system each time, and making
    these can take longer than computing what goes there. Another C library than that of GNU is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return any(mallopt(_MMAP_THRESHOLD, size) == 1 == mallopt(_TRIM_THRESHOLD, size) for size in _LARGEST)
