"""Ids of samples: text that can be written anywhere, each once, and the same wherever the data lie."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from weakspot.core.errors import DataError

_LONGEST = 200
"""Characters of a name in a message."""


def readable(name: str) -> str:
    r"""`name` as valid text: bytes of a file name that are no UTF-8 become `\xff` and the like.

    >>> readable(b"caf\xe9.png".decode("utf-8", "surrogateescape"))
    'caf\\xe9.png'
    """
    return name if _valid(name) else "".join(map(_escaped, name))


def _valid(name: str) -> bool:
    try:
        return bool(name.isascii() or name.encode() is not None)
    except UnicodeEncodeError:
        return False


def _escaped(character: str) -> str:
    code = ord(character)
    if not 0xD800 <= code <= 0xDFFF:
        return character
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def shown(name: str) -> str:
    r"""`name` for a message: what would break the line or steer the terminal is escaped, what is very long is cut.

    >>> shown("a\n\x1b[31m.png")
    'a\\n\\x1b[31m.png'
    """
    plain = readable(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…")
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


def numbered(count: int) -> tuple[str, ...]:
    """Ids for samples without names: their numbers, of one width.

    >>> numbered(11)[:2]
    ('00', '01')
    """
    width = len(str(max(count - 1, 0)))
    return tuple(f"{number:0{width}d}" for number in range(count))


def unique_ids(names: Iterable[Any], *, advice: str = "ids must be unique") -> tuple[str, ...]:
    """The names as ids: text, made readable; one that occurs twice is an error."""
    ids = tuple(map(_text, names))
    if len(set(ids)) == len(ids):
        return ids
    seen: dict[str, int] = {}
    for index, name in enumerate(ids):
        if seen.setdefault(name, index) != index:
            raise DataError(f"two samples have the id {name!r} (numbers {seen[name]} and {index}): {advice}")
    raise AssertionError("unreachable")


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise DataError(f"ids must be text, got {name!r}: use str()")
    return readable(str(name))


def hash_names(names: Sequence[str]) -> str:
    """One digest for many names."""
    sha256 = hashlib.sha256()
    for name in names:
        coded = name.encode("utf-8", "surrogatepass")
        sha256.update(b"%d:" % len(coded) + coded)
    return sha256.hexdigest()


def listed(names: Sequence[str], most: int = 8) -> str:
    """A few names for a message."""
    return ", ".join(map(shown, names[:most])) + (" …" if len(names) > most else "")
