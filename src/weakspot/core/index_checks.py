"""Checks the index of a Finding or Run, and pictures, before they are used: they may be made up."""

import errno
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from weakspot.core.errors import RunError
from weakspot.core.guarded_open import read_json, read_plain

MOST_PICTURE_BYTES = 64 << 20
MOST_PIXELS = 100_000_000
"""Of a picture: a few bytes can ask whoever shows it for any number of them."""
_PNG_HEAD = 24
"""Bytes of a PNG up to and with its width and height."""
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_WORDS: dict[type, str] = {dict: "mapping", list: "list", str: "text", int: "whole number"}
_PARTS: dict[str, type] = {
    "name": str, "about": str, "summary": list, "arrays": list, "media": list, "files": dict, "provenance": dict,
}  # fmt: skip
_MAY_LACK: dict[str, type] = {"outputs": dict, "array_files": dict, "renamed_columns": dict}
_OF_PROVENANCE: dict[str, type] = {
    "parameters": dict, "subject": str, "data": str, "samples": int, "execution": dict, "versions": dict,
    "skipped": dict,
}  # fmt: skip
Upgrades = Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]
"""From an index of version n to one of version n + 1."""


def check_name(name: str) -> None:
    """Names become file names, so they keep to letters, digits, '_', '-' and '.'."""
    if not _SAFE_NAME.fullmatch(name):
        raise RunError(f"{name!r} cannot be a name: expected letters, digits, '_', '-' and '.', not beginning with '.'")


def read_index(path: Path, expected: str, version: int, upgrades: Upgrades) -> dict[str, Any]:
    """Read a JSON index and bring it up to `version`, refusing another format or a newer version."""
    try:
        index: dict[str, Any] = read_json(path, links=False)
    except OSError as error:
        raise (
            too_many_open(error) or RunError(f"cannot read {path}: {error.strerror}; is this a weakspot run?")
        ) from error
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}; restore it or examine again") from error
    except RecursionError as error:
        raise RunError(f"{path} is damaged: nested too deep; restore it or examine again") from error
    if not isinstance(index, dict) or index.get("format") != expected:
        raise RunError(f"{path} is not a {expected} file; is this a weakspot run?")
    if not isinstance(index.get("version"), int):
        raise RunError(f"{path} is damaged: it says no format version; restore it or examine again")
    if index["version"] > version:
        raise RunError(
            f"{path} has format version {index['version']}, this weakspot reads up to {version}: upgrade weakspot"
        )
    for older in range(index["version"], version):
        if older not in upgrades:
            raise RunError(f"{path} has format version {older}, which this weakspot no longer reads: examine again")
        try:
            index = upgrades[older](index)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(f"{path} is damaged: {error}; restore it or examine again") from error
    return index


def too_many_open(error: OSError) -> RunError | None:
    """The error where a file cannot be opened since too many are open; None where another reason is given."""
    if error.errno not in (errno.EMFILE, errno.ENFILE):
        return None
    return RunError(
        f"cannot read {error.filename}: this process may open no more files; nothing is damaged: raise the limit, as "
        "with `ulimit -n 65536` in the shell, and start again"
    )


def other_kinds(
    held: Mapping[str, Any], kinds: Mapping[str, type], *, needed: bool = True
) -> Iterator[tuple[str, str]]:
    """The entries of a mapping that are of another kind than expected, or lack where they are needed, with the kind."""
    for key, kind in kinds.items():
        if not isinstance(held.get(key), kind) and (needed or held.get(key) is not None):
            yield key, _WORDS[kind]


def odd_parts(index: Mapping[str, Any]) -> Iterator[str]:
    """What of a Finding's index is of another kind than the format says, the outermost first."""
    yield from (f"{key!r} is no {kind}" for key, kind in other_kinds(index, _PARTS))
    yield from (f"{key!r} is no {kind}" for key, kind in other_kinds(index, _MAY_LACK, needed=False))
    odd = other_kinds(index["provenance"], _OF_PROVENANCE, needed=False)
    yield from (f"'provenance.{key}' is no {kind}" for key, kind in odd)
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], dict) for pair in index["summary"]):
        yield "its summary is no list of names and numbers"
    if not all(isinstance(entry, list) and [*map(type, entry)] == [str, str, str] for entry in index["media"]):
        yield "its media are no list of keys, files and captions"
    if not all(isinstance(name, str) for name in index["arrays"]):
        yield "its arrays are no list of names"


def read_picture(path: Path) -> bytes:
    """The content of a picture that lies in the folder itself; a `ValueError` where it has too many pixels."""
    content = read_plain(path, most=MOST_PICTURE_BYTES, links=False)
    if len(content) >= _PNG_HEAD and content[12:16] == b"IHDR":
        width, height = struct.unpack(">II", content[16:_PNG_HEAD])
        if width * height > MOST_PIXELS:
            raise ValueError(f"{path.name} has {width:,} × {height:,} pixels, expected {MOST_PIXELS:,} at most")
    return content
