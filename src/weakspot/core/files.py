"""Writing so that a reader, or the same program after `kill -9`, never meets half a file or half a folder."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weakspot.core.errors import RunError
from weakspot.core.guarded_open import other_kind


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn a full disk or a missing permission into a message that names the place."""
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write {target}: {error.strerror or error}; check free space and permissions") from error


@contextmanager
def whole_folder(target: Path, *, first_wins: bool = False) -> Iterator[Path]:
    """A scratch folder beside `target` that becomes `target` when the block ends well, and vanishes otherwise.

    A rename is all or nothing; an older `target` is replaced, or, where the first is to win, left as it is.
    """
    scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        with writing(target):
            scratch.mkdir(parents=True)
        yield scratch
        with writing(target):
            put_first(scratch, target) if first_wins else replace_folder(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def put_first(source: Path, target: Path) -> None:
    """Put folder `source` at `target`, unless another process was faster: a full folder is not renamed over."""
    try:
        source.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def replace_folder(source: Path, target: Path) -> None:
    """Put folder `source` in the place of `target`; after a kill in between, `tidy` brings the old one back."""
    if target.exists():
        old = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.replaced")
        target.rename(old)
        source.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        source.rename(target)


def remove_folder(folder: Path) -> None:
    """Remove a folder if it is there; a process killed meanwhile leaves all of it or nothing under its name."""
    old = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.partial")
    with suppress(OSError):
        folder.rename(old)
        shutil.rmtree(old, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        with writing(path):
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(path)
    finally:
        with suppress(OSError):
            scratch.unlink()


def check_plain(path: Path) -> None:
    """Refuse what is no plain file that lies where it seems to: a folder, a link, a pipe that never ends."""
    try:
        other = other_kind(path, links=False)
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from error
    if other is not None:
        raise RunError(f"{path} is {other}: expected a plain file; remove it, or put a file in its place")


def tidy(folder: Path) -> None:
    """Clear what a killed process left in `folder`, and bring back what it took away without a successor."""
    for old in folder.glob(".*.replaced"):
        put_first(old, old.with_name(old.name[1:].rsplit(".", 2)[0]))
    for path in (*folder.glob(".*.partial"), *folder.glob(".*.replaced")):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
