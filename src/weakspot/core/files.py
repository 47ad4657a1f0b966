"""Atomic, durable writes: no reader meets half a file or folder, nor does anyone after `kill -9` or a power cut.

What is written gets its name only when its content is on the disk, and its name is on the disk before anything is
written that counts on it.
"""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weakspot.core.errors import RunError
from weakspot.core.guarded_open import check_plain


@contextmanager
def writing(target: Path, *, also: type[Exception] = OSError) -> Iterator[None]:
    """Turn a full disk or a missing permission into a message with the place; `also`: what a library makes of it."""
    try:
        yield
    except (OSError, also) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"cannot write {target}: {reason}; check free space and permissions") from error


@contextmanager
def whole_folder(target: Path, *, first_wins: bool = False) -> Iterator[Path]:
    """A scratch folder beside `target` that becomes `target` when the block ends well, and vanishes otherwise.

    A rename is all or nothing; an older `target` is replaced, or, where the first is to win, left as it is.
    """
    with writing(target):
        scratch = _beside(target, "partial")
    try:
        with writing(target):
            make_folder(target.parent)
            scratch.mkdir()
        yield scratch
        with writing(target):
            _sync_tree(scratch)
            put_first(scratch, target) if first_wins else replace_folder(scratch, target)
            sync(target.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """The path of a scratch file that becomes `target` when the block ends well, and vanishes otherwise."""
    with writing(target):
        scratch = _beside(target, "partial")
    try:
        yield scratch
        with writing(target):
            sync(scratch)
            scratch.replace(target)
            sync(target.parent)
    finally:
        with suppress(OSError):
            scratch.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with writing(path), whole_file(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, where they are missing."""
    try:
        folder.mkdir()
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
        return
    sync(folder.parent)


def sync(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems know no such thing for folders
            raise
    finally:
        os.close(number)


def _sync_tree(folder: Path) -> None:
    for path in folder.iterdir():
        _sync_tree(path) if path.is_dir() else sync(path)
    sync(folder)


def _beside(path: Path, ending: str) -> Path:
    """A hidden name that nobody else has, in the same folder, so that it can be renamed."""
    if not path.name:  # an empty path, or "/"
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.{ending}")


def put_first(source: Path, target: Path) -> None:
    """Put folder `source` at `target`, unless another process was faster: a full folder is not renamed over."""
    try:
        source.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def replace_folder(source: Path, target: Path) -> None:
    """Put folder `source` in the place of `target`; after a kill in between, `tidy` brings the old one back."""
    if not target.exists():
        source.rename(target)
        return
    old = _beside(target, "replaced")
    target.rename(old)
    source.rename(target)
    sync(target.parent)  # before the old one goes
    _remove(old)


def remove_folder(folder: Path) -> None:
    """Remove a folder, or what lies in its place; a kill meanwhile leaves all of it or nothing under its name."""
    old = _beside(folder, "partial")
    with suppress(OSError):
        folder.rename(old)
        _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def check_own_file(path: Path) -> None:
    """Refuse, as an error of the Run, what is no plain file that lies where it seems to."""
    try:
        check_plain(path, links=False)
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from error


def tidy(folder: Path) -> None:
    """Clear what a killed process left in `folder`, and bring back what it took away without a successor."""
    for old in folder.glob(".*.replaced"):
        put_first(old, old.with_name(old.name[1:].rsplit(".", 2)[0]))
    for path in (*folder.glob(".*.partial"), *folder.glob(".*.replaced")):
        _remove(path)
