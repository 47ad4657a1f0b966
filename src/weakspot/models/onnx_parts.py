"""Which other files an ONNX file refers to: large weights may lie beside it, under any name.

The file is a Protocol Buffers message; of it only what leads to tensors is read, so that no further package is needed.
"""

from collections.abc import Iterator
from pathlib import Path

from weakspot.core.digest import digest_file
from weakspot.core.errors import ConfigError

_INSIDE = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
"""Which field of which message holds which message, as numbered in onnx.proto."""
_KEY, _VALUE = 1, 2


def digests(path: Path) -> list[str]:
    """The digest of an ONNX file and of every file that it refers to; one that is not there cannot be in use."""
    files = [path, *(path.parent / name for name in external_files(path))]
    return [digest_file(file) if file.is_file() else f"no {file.name}" for file in files]


def external_files(path: Path) -> list[str]:
    """The files that the tensors of an ONNX file refer to, as it names them: relative to its folder, sorted."""
    content = path.read_bytes()
    if content[4:8] == b"ORTM":  # onnxruntime's own format, which holds all weights itself
        return []
    try:
        return sorted(set(_locations(memoryview(content), "model")))
    except (IndexError, ValueError) as error:
        raise ConfigError(f"{path} is not an ONNX file: {error or 'it ends too early'}") from error


def _locations(message: memoryview, kind: str) -> Iterator[str]:
    if kind == "entry":
        entry = {number: bytes(field).decode() for number, field in _fields(message)}
        if entry.get(_KEY) == "location":
            yield entry.get(_VALUE, "")
        return
    for number, field in _fields(message):
        if number in _INSIDE[kind]:
            yield from _locations(field, _INSIDE[kind][number])


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields that have a length, with their numbers; the others are numbers and are passed over."""
    offset = 0
    while offset < len(message):
        key, offset = _number(message, offset)
        how = key & 7
        if how == 2:
            size, offset = _number(message, offset)
            if offset + size > len(message):
                raise ValueError("it ends too early")
            yield key >> 3, message[offset : offset + size]
            offset += size
        elif how == 0:
            _, offset = _number(message, offset)
        elif how in (1, 5):
            offset += 8 if how == 1 else 4
        else:
            raise ValueError(f"a field of kind {how} is not known")


def _number(message: memoryview, offset: int) -> tuple[int, int]:
    """A whole number in seven bits per byte, lowest first, and the place after it."""
    value, shift = 0, 0
    while message[offset] & 128:
        value |= (message[offset] & 127) << shift
        offset, shift = offset + 1, shift + 7
    return value | message[offset] << shift, offset + 1
