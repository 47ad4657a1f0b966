"""Opens files that somebody else may have made: plain files only, no larger than expected, and no links out of a Run.

Reading a FIFO would never end, a link can lead to any other file, and a few bytes can unpack to any amount of memory.
What is refused raises an `OSError`, or a `ValueError` where the content is at fault, with the reason, and is reported
like any other file that cannot be read.
"""

import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

MOST_JSON_BYTES = 64 << 20
"""Of a manifest or an index: they hold words and numbers, and at most a line for each sample that was left out."""
SMALL = 1 << 16
"""Bytes of an array that need not stay in its file."""
_DEEPEST = 100
"""Levels of lists and mappings in JSON: Python's own functions fail at about a thousand."""
_PADDING = 1 << 20
"""Bytes that may follow the end of a file's content."""
_LINK = "a link"
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def other_kind(path: str | Path, *, links: bool = True) -> str | None:
    """What lies there in the place of a plain file, in words; None where it is one. Without `links` a link is none."""
    mode = Path(path).stat(follow_symlinks=links).st_mode
    return None if stat.S_ISREG(mode) else _kind(mode)


def check_plain(path: str | Path, *, links: bool = True) -> None:
    """Refuse what is no plain file, before a library opens it by its name; without `links` a link to one, too."""
    other = other_kind(path, links=links)
    if other == _LINK:
        raise _refused(errno.ELOOP, "it is a link, which could lead anywhere: copy the file itself there", path)
    if other is not None:
        raise _refused(errno.EINVAL, f"it is {other}, expected a plain file", path)


_PLAINLY = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
"""Systems other than POSIX have no such flags; that a path is no link was looked up before."""


def open_plain(
    path: str | Path, *, most: int | None = None, links: bool = True, flags: int = os.O_RDONLY, mode: str = "rb"
) -> IO[Any]:
    """Open a plain file of at most `most` bytes; without `links` only the file itself, not a link to one."""
    return os.fdopen(plain_descriptor(path, most=most, links=links, flags=flags), mode)


def plain_descriptor(path: str | Path, *, most: int | None = None, links: bool = True, flags: int = os.O_RDONLY) -> int:
    """What `open_plain` makes a file of."""
    with suppress(FileNotFoundError):  # opening it says so, or makes it
        check_plain(path, links=links)
    number = os.open(path, flags | _PLAINLY | (0 if links else _NO_LINKS), 0o666)
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):  # it became another between the two
            raise _refused(errno.EINVAL, f"it is {_kind(status.st_mode)}, expected a plain file", path)
        if most is not None and status.st_size > most:
            raise _refused(errno.EFBIG, f"it has {status.st_size:,} bytes, expected {most:,} at most", path)
    except OSError:
        os.close(number)
        raise
    return number


def read_plain(path: str | Path, *, most: int, links: bool = True) -> bytes:
    """The content of a plain file of at most `most` bytes."""
    with open_plain(path, most=most, links=links) as file:
        content: bytes = file.read(most + 1)
    if len(content) > most:  # it grew meanwhile, or does not say how large it is
        raise _refused(errno.EFBIG, f"it has more than {most:,} bytes", path)
    return content


def read_lines(path: str | Path, *, most: int = MOST_JSON_BYTES) -> list[str]:
    """The lines of a text file in UTF-8."""
    return read_plain(path, most=most).decode("utf-8").splitlines()


def read_json(path: str | Path, *, most: int = MOST_JSON_BYTES, links: bool = True) -> Any:
    """What a JSON file holds."""
    return parse_json(read_plain(path, most=most, links=links))


def parse_json(content: bytes) -> Any:
    """What JSON in UTF-8 holds; a `ValueError` for what is nested too deeply, or can't be written as text again."""
    try:
        value = json.loads(content.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_depth(value)
    if b"\\u" in content:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError("it holds half of a surrogate pair, which is not text") from error
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        mappings = [part for item in level if isinstance(item, dict) for part in item.values()]
        level = [part for item in level if isinstance(item, list) for part in item] + mappings
        if not level:
            return
    raise ValueError("it is nested too deeply")


def map_array(path: str | Path, *, links: bool = True) -> np.ndarray:
    """The array in an npy file, memory-mapped; a `ValueError` where it is damaged, or would run code."""
    check_plain(path, links=links)
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:  # of a damaged header numpy and Python's own parser raise many kinds
        raise ValueError(str(error).strip().partition("\n")[0][:200] or "its header is damaged") from error


def let_small_go(mapped: np.ndarray) -> np.ndarray:
    """A small array in memory instead: each one that is mapped keeps a file open, and a process may open few."""
    if mapped.nbytes > SMALL:
        return mapped
    copied = np.array(mapped)
    copied.flags.writeable = False
    return copied


def memory_bytes() -> int:
    """The memory of this machine, or of the container that this process is in."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        return min(whole, int(_CGROUP.read_text()))
    return whole


def check_fits(size: int, what: str, advice: str, *, share: float = 0.5) -> None:
    """Refuse to unpack more than a share of the memory at once, as a header or a few bytes may ask for."""
    if size > share * memory_bytes():
        raise ValueError(
            f"{what} would take {size / 1e9:,.1f} GB at once, and this machine has {memory_bytes() / 1e9:,.1f} GB of "
            f"memory: {advice}"
        )


def check_unpacked(path: Path, expected: int) -> None:
    """Refuse a file that is larger than what it holds by its header: gzip looks at every zero after its end."""
    size = path.stat().st_size
    if size > 1.1 * expected + _PADDING:
        raise ValueError(f"{path} has {size:,} bytes, and by its header it holds {expected:,}")


def _refused(number: int, reason: str, path: str | Path) -> OSError:
    return OSError(number, reason, str(path))


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISLNK, _LINK), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"),
    )  # fmt: skip
    return next((kind for holds, kind in kinds if holds(mode)), "a device")
