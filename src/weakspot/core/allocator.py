"""Keeping memory that was freed, in processes of weakspot's own: the command line and Ray's workers."""

import ctypes
import sys

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # as malloc.h numbers them
_LARGEST = (1 << 30, 32 << 20)
"""Older versions of the C library refuse more than the second."""


def keep_freed_memory() -> bool:
    """Let the C library keep memory that was freed, for results of up to a gigabyte; whether it does.

    Otherwise every result of more than some megabytes gets fresh pages from the operating system each time, and making
    these can take longer than computing what goes there. It is a setting of the whole process, so importing weakspot
    never does it. Another C library than that of GNU is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return any(mallopt(_MMAP_THRESHOLD, size) == 1 == mallopt(_TRIM_THRESHOLD, size) for size in _LARGEST)
