"""Digests: one short, stable name for a value, so that equal work is recognised and never done twice."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from functools import cache, partial
from math import isfinite, isnan
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from weakspot.core.environment import cores
from weakspot.core.errors import ConfigError
from weakspot.core.guarded_open import open_plain

_LARGE, _PIECE = 64 << 20, 16 << 20
"""Bytes of an array from which on its digest is that of pieces, and of each piece."""


def canonical(value: Any) -> Any:
    """`value` as plain JSON, independent of dictionary order, process and machine.

    >>> canonical({"b": (1, 2), "a": {3}})
    {'b': [1, 2], 'a': [3]}
    """
    if hasattr(value, "__canonical__") and not isinstance(value, type):
        return value.__canonical__()
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else f"{'-' if value < 0 else ''}Infinity"  # JSON has neither
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return canonical(value.item())
    if isinstance(value, Path | ModuleType):
        return str(value) if isinstance(value, Path) else value.__name__
    if isinstance(value, np.ndarray) or hasattr(value, "detach"):
        return _canonical_array(value)
    if isinstance(value, type):
        return f"{value.__module__}:{value.__qualname__}"
    if is_dataclass(value) and not isinstance(value, type):
        return {"is": canonical(type(value)), **{f.name: canonical(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, Mapping):
        return {_key(key): canonical(item) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((canonical(item) for item in value), key=str)
    if isinstance(value, Sequence):
        return [canonical(item) for item in value]
    if callable(value):
        return canonical_callable(value)
    raise ConfigError(
        f"an option of type {type(value).__qualname__} cannot be recorded: expected numbers, text, lists, mappings, "
        "dataclasses or functions; give it a method __canonical__() that returns one of these"
    )


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(canonical(key), sort_keys=True)


def _canonical_array(values: Any) -> dict[str, Any]:
    """An array, or a tensor (known by its ways, so that torch is not loaded), by its content; objects by theirs."""
    array = values if isinstance(values, np.ndarray) else values.detach().cpu().numpy()
    if array.dtype.hasobject:
        content = digest_bytes(to_json(array.ravel().tolist()).encode())
    else:
        content = _array_digest(np.ascontiguousarray(array))
    return {"array": content, "shape": array.shape, "dtype": str(array.dtype)}


def _array_digest(array: np.ndarray) -> str:
    """SHA-256 of the bytes; of a large array that of its pieces' digests, which all cores work out together."""
    if array.nbytes <= _LARGE:
        return digest_bytes(array)
    data = array.reshape(-1).view(np.uint8)
    with ThreadPoolExecutor(cores()) as pool:
        pieces = list(pool.map(digest_bytes, (data[i : i + _PIECE] for i in range(0, len(data), _PIECE))))
    return digest_bytes("".join(pieces).encode())


def canonical_callable(function: Any) -> Any:
    """A function by its name, its code and what it holds, so that another one is not taken for it.

    What it finds in global variables is not looked at.
    """
    if isinstance(function, partial):
        return {"partial": [canonical(part) for part in (function.func, function.args, function.keywords)]}
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return {
        "function": f"{function.__module__}:{name}",
        "code": digest_bytes(code_bytes(code)) if code else None,
        "holds": [canonical(item) for item in _held(function) if item is not function],
    }


def _held(function: Any) -> list[Any]:
    """Defaults and closure of a function, the object of a bound method, the weights or attributes of an object."""
    if isinstance(function, MethodType):
        return [function.__self__, *_held(function.__func__)]
    if isinstance(function, FunctionType):
        cells = [cell.cell_contents for cell in function.__closure__ or () if cell != type(cell)()]
        return [function.__defaults__, function.__kwdefaults__, *cells]
    if hasattr(function, "state_dict"):
        return [repr(function), function.state_dict()]
    return [getattr(function, "__dict__", {})]


def code_bytes(code: CodeType) -> bytes:
    """What a piece of code does, without where it stands: no file, no line numbers."""
    arguments = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_varnames)
    outline = repr((arguments, code.co_names)).encode()
    return b"\0".join([outline, code.co_code, code.co_exceptiontable, *map(_constant_bytes, code.co_consts)])


def _constant_bytes(item: Any) -> bytes:
    if isinstance(item, CodeType):
        return code_bytes(item)
    if isinstance(item, tuple | frozenset):
        parts = [_constant_bytes(part) for part in item]
        ordered = sorted(parts) if isinstance(item, frozenset) else parts  # sets have no order
        return b"(" + b",".join(ordered) + b")"
    return repr(item).encode()


@cache
def class_code(kind: type) -> str:
    """A digest of the modules in which a class and its bases are written, so that an edited one is not taken for it.

    Read once per class: a file that is edited while it is in use changes nothing before it is loaded again. weakspot's
    own frame is left out: its version says enough.
    """
    modules = {base.__module__ for base in kind.__mro__ if not base.__module__.startswith("weakspot.core")}
    written = {name: getattr(sys.modules.get(name), "__file__", None) for name in modules}
    files = {name: Path(file) for name, file in written.items() if file and name not in sys.stdlib_module_names}
    return digest({name: digest_file(path, links=True) for name, path in files.items() if path.is_file()})


def to_json(value: Any) -> str:
    """Canonical JSON text: sorted keys, no spaces; what UTF-8 cannot write stands as an escape."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode()


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`, in hexadecimal.

    >>> digest({"a": 1, "b": [2]}) == digest({"b": (2,), "a": 1})
    True
    """
    return digest_bytes(to_json(value).encode())


def digest_bytes(data: Any) -> str:
    """SHA-256 of anything that has a buffer."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path, *, most: int | None = None, links: bool = False) -> str:
    """SHA-256 of a plain file of at most `most` bytes, read in blocks; with `links` also where a link leads to it."""
    with open_plain(path, most=most, links=links) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it is opened for bytes
