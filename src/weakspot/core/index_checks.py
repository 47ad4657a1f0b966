"""Checks the index of a Finding or Run, and pictures, before they are used: they may be made up."""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weakspot.core.guarded_open import read_plain

MOST_PICTURE_BYTES = 64 << 20
MOST_PIXELS = 100_000_000
"""Of a picture: a few bytes can ask whoever shows it for any number of them."""
_PNG_HEAD = 24
"""Bytes of a PNG up to and with its width and height."""
_WORDS: dict[type, str] = {dict: "mapping", list: "list", str: "text", int: "whole number"}
_PARTS: dict[str, type] = {
    "name": str, "about": str, "summary": list, "arrays": list, "media": list, "files": dict, "provenance": dict,
}  # fmt: skip
_MAY_LACK: dict[str, type] = {"outputs": dict, "array_files": dict, "renamed_columns": dict}
_OF_PROVENANCE: dict[str, type] = {
    "parameters": dict, "subject": str, "data": str, "samples": int, "execution": dict, "versions": dict,
    "skipped": dict,
}  # fmt: skip


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
