"""What identifies a model: the user's code, the values that it uses, weights, and packages by version.

Code is taken as it was compiled, not as it stands in a file: that is what runs, also where the file was edited since,
and where there is none, as in a notebook. Nothing depends on where files lie.
"""

import io
import logging
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import partial
from importlib.util import resolve_name
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn

from weakspot.core.digest import canonical, code_bytes, digest, digest_bytes, digest_file
from weakspot.core.reach import (
    DESCRIPTORS,
    METHODS,
    Import,
    globals_in,
    imports_in,
    is_installed,
    members_of,
    names_in,
    parts_of,
    used_names,
    users_module,
    version_of,
)
from weakspot.core.tensors import tensor_digest
from weakspot.core.user_code import is_user_code, is_users_module

_SCALARS = (bool, int, float, complex, str, bytes)
_WORDS = (torch.dtype, torch.layout, torch.memory_format, range, slice, type(...), type(NotImplemented))
_BUILTINS = (
    BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, MethodWrapperType, ClassMethodDescriptorType,
    np.ufunc,
)  # fmt: skip
_WITHOUT_EFFECT = (logging.Logger, type(threading.Lock()), type(threading.RLock()), weakref.ref, torch.device)
"""What does not change an answer, or, as a device, must not make another model of it."""
_CODE = (FunctionType, MethodType, partial, type, nn.Module)
OF_MODULES = frozenset(vars(nn.Module()))
"""What every module has."""
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_MOST, _DEEPEST = 200_000, 60
"""Values that are looked at in all, numbers and text not counted, and how many may lie inside one another."""
_PLAIN_DEPTH, _MANY = 6, 1000
"""How deep settings may be, and what is a long list."""


class CodeTrace:
    """Follows a model's code and values; `of` each part, then one `digest`. `unknown` lists what could not be read.

    every_method: follow all methods of networks, and not only what their `forward` needs.
    """

    def __init__(self, *, every_method: bool = False) -> None:
        self.unknown: set[str] = set()
        self._every_method = every_method
        self._names_used: dict[type, set[str]] = {}
        self._pieces: dict[str, set[str]] = {}
        self._packages: dict[str, str] = {}
        self._open: set[int] = set()
        self._left = _MOST
        self._waiting: list[Callable[[], None]] = []
        self._met: dict[Any, Any] = {}
        """What was followed already, held so that its id stays its own."""
        self._ways: list[tuple[Any, Callable[[Any, str], Any]]] = [
            (Enum, lambda value, where: [self._class(type(value)), value.name]),
            (PurePath, self._path),
            ((Tensor, np.ndarray), self._array),
            (np.generic, lambda value, where: self.of(value.item(), where)),
            (nn.Module, self._model),
            (type, lambda value, where: self._class(value)),
            (ModuleType, lambda value, where: value.__name__),
            (FunctionType, self._function),
            (MethodType, lambda value, where: self._list([value.__self__, value.__func__], where)),
            (partial, lambda value, where: self._list([value.func, value.args, value.keywords], where)),
            (DESCRIPTORS, lambda value, where: self._list(parts_of(value), where)),
            (_BUILTINS, self._builtin),
            (Mapping, self._mapping),
            (AbstractSet, lambda value, where: sorted(self._list(sorted(value, key=repr), where), key=digest)),
            ((list, tuple, deque), self._sequence),
            (_WORDS, lambda value, where: repr(value)),
            (_WITHOUT_EFFECT, lambda value, where: _name(type(value))),
            (torch.jit.ScriptFunction, lambda value, where: value.code),
            (io.IOBase, lambda value, where: self._cannot(where, "an open file", value)),
        ]

    def of(self, value: Any, where: str) -> Any:
        """A value as plain JSON; code that it leads to is followed by `digest`. `where` names it to the user."""
        if value is None or isinstance(value, _SCALARS):
            return self._scalar(value, where)
        self._left -= 1
        if id(value) in self._open:
            return {"again": _name(type(value))}
        if self._left < 0 or len(self._open) > _DEEPEST:
            return self._cannot(where.partition(".")[0], "more than can be looked at", value)
        self._open.add(id(value))
        try:
            if hasattr(value, "__canonical__") and not isinstance(value, type):
                return canonical(value)
            way = next((way for kinds, way in self._ways if isinstance(value, kinds)), self._object)
            return way(value, where)
        finally:
            self._open.discard(id(value))

    def digest(self, *parts: Any) -> str:
        """Of what `of` gave, and of all code that it leads to."""
        while self._waiting:
            self._waiting.pop()()
        return digest([parts, {name: sorted(pieces) for name, pieces in self._pieces.items()}, self._packages])

    def _cannot(self, where: str, what: str, value: Any) -> str:
        self.unknown.add(f"{where}: {what}")
        return _name(type(value))

    def _later(self, key: Any, thing: Any, follow: Callable[[], None]) -> None:
        """Follow something once, and not deeper and deeper inside what is being looked at."""
        if key not in self._met:
            self._met[key] = thing
            self._waiting.append(follow)

    def _add(self, key: str, value: Any) -> None:
        self._pieces.setdefault(key, set()).add(digest(self.of(value, key)))

    def _scalar(self, value: Any, where: str) -> Any:
        if isinstance(value, str) and value.startswith("/") and len(value) > 1 and _lies_there(Path(value)):
            return self._path(Path(value), where)
        return value if isinstance(value, str | bool | int | None) else f"{type(value).__name__} {value!r}"

    def _path(self, value: PurePath, where: str) -> Any:
        """A relative path as it is; of others a file by its name and a folder not at all: projects may be moved."""
        if not value.is_absolute():
            return value.as_posix()
        self._cannot(where, f"what lies at the path {value.name}", value)
        return {"path": "" if Path(value).is_dir() else value.name}

    def _array(self, value: Any, where: str) -> Any:
        try:
            return tensor_digest(value) if isinstance(value, Tensor) else canonical(value)
        except Exception:  # tensors without content, on no device, of other libraries, objects in arrays
            return self._cannot(where, f"a {_name(type(value))} whose values cannot be read", value)

    def _sequence(self, value: Any, where: str) -> Any:
        items = self._list(value, where)
        return items if type(value) in (list, tuple) else {"is": self._class(type(value)), "items": items}

    def _list(self, value: Any, where: str) -> list[Any]:
        if len(value) > _MANY and all(isinstance(item, _SCALARS) for item in value):
            return [digest_bytes(repr(list(value)).encode())]
        return [self.of(item, where) for item in value]

    def _mapping(self, value: Mapping[Any, Any], where: str) -> Any:
        if len(value) > _MANY and all(isinstance(item, _SCALARS) for pair in value.items() for item in pair):
            return [_name(type(value)), digest_bytes(repr(sorted(value.items(), key=repr)).encode())]
        pairs = [[self.of(key, where), self.of(item, f"{where}.{key}")] for key, item in value.items()]
        return {"is": self._class(type(value)), "items": sorted(pairs, key=digest)}

    def _object(self, value: Any, where: str) -> Any:
        """An object by its class and attributes; private ones of other people's only where plain."""
        kind = type(value)
        if kind.__module__ == "typing" or isinstance(value, GenericAlias | UnionType):
            return repr(value)
        if callable(value) and hasattr(value, "__wrapped__"):
            return [self._class(kind), self.of(value.__wrapped__, where)]
        users, held = _users(kind) or kind.__module__.startswith("weakspot."), attributes(value)
        kept = {name: item for name, item in held.items() if users or not name.startswith("_") or is_plain(item)}
        if not users and (not kept or len(kept) < len(held)) and kind is not object:
            self._cannot(where, f"parts of a {_name(kind)}", value)
        return {
            "is": self._class(kind),
            "holds": {name: self.of(kept[name], f"{where}.{name}") for name in sorted(kept)},
        }

    def _builtin(self, value: Any, where: str) -> Any:
        """Compiled code: by its name and package; of the user's own also by the file that it comes from."""
        home = getattr(value, "__module__", None) or ""
        file = getattr(sys.modules.get(home), "__file__", None)
        if home and file and is_user_code(file):
            self._cannot(where, f"compiled code, told by the file {Path(file).name} alone", value)
            self._pieces.setdefault(home, set()).add(digest_file(Path(file)))
        self._package(home)
        holder = getattr(value, "__self__", None)
        bound = None if holder is None or isinstance(holder, ModuleType | type) else self.of(holder, where)
        return [f"{home}:{getattr(value, '__qualname__', value.__name__)}", bound]

    def _function(self, value: FunctionType, where: str) -> Any:
        home = value.__globals__.get("__name__") or "__main__"
        name = f"{home}:{value.__qualname__}"
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != type(cell)()]
        if not is_users_module(home):
            self._package(home)
            behind = [*cells, getattr(value, "__wrapped__", None)]  # a decorator holds what it was put on
            return {"function": name, "holds": self._list([part for part in behind if isinstance(part, _CODE)], where)}
        self._later(id(value), value, lambda: self._follow(value, home))
        code = digest_bytes(code_bytes(value.__code__))
        return {
            "function": name,
            "code": code,
            "holds": self._list([value.__defaults__, value.__kwdefaults__, *cells], where),
        }

    def _follow(self, function: FunctionType, home: str) -> None:
        """What a function finds in global variables and in what it imports."""
        code, there = function.__code__, function.__globals__
        names = frozenset(names_in(code))
        for name in sorted(globals_in(code) & there.keys()):
            self._found(home, name, there[name], names)
        for made in imports_in(code):
            self._imported(made, there.get("__package__") or home.rpartition(".")[0], names)

    def _found(self, home: str, name: str, value: Any, names: frozenset[str]) -> None:
        if isinstance(value, ModuleType):
            self._later((value.__name__, names), value, lambda: self._in_module(value, names))
        elif not name.startswith("__"):
            key = f"{home}.{name}"
            self._later((key, id(value)), value, lambda: self._add(key, value))

    def _in_module(self, module: ModuleType, names: frozenset[str]) -> None:
        if not is_users_module(module.__name__):
            self._package(module.__name__)
            return
        for name in sorted(names & vars(module).keys()):
            self._found(module.__name__, name, vars(module)[name], names)

    def _imported(self, made: Import, package: str, names: frozenset[str]) -> None:
        """An import inside a function, made now where the module is the user's own: it will be when the model runs."""
        try:
            name = resolve_name("." * made.level + made.module, package or None)
            loaded = [users_module(name), *(users_module(f"{name}.{part}") for part in made.names)]
        except Exception as error:  # whatever the user's modules raise
            self._cannot(made.module, f"a module that cannot be imported ({type(error).__name__})", made)
            return
        self._package(name)
        for module in loaded:
            if module is not None:
                self._found(name, module.__name__, module, names)

    def _class(self, kind: type) -> str:
        """Its name; the code of the user's own is followed, with that of its bases."""
        if any(_users(base) for base in kind.__mro__):
            self._later(id(kind), kind, lambda: self._follow_class(kind))
        for base in kind.__mro__:
            self._package(str(base.__module__))
        return _name(kind)

    def _follow_class(self, kind: type) -> None:
        """The code of all methods; what is found in global variables for those that are used, see `used_names`."""
        used = self._used(kind)
        for base in (base for base in kind.__mro__ if _users(base)):
            methods = {}
            for name, member in members_of(base).items():
                if isinstance(member, METHODS) and name not in used:
                    methods[name] = [digest_bytes(code_bytes(p.__code__)) for p in parts_of(member) if _is_function(p)]
                elif isinstance(member, METHODS) or name in used or is_plain(member):
                    methods[name] = self.of(member, f"{_name(kind)}.{name}")
            self._pieces.setdefault(f"{_name(kind)} {_name(base)}", set()).add(digest(methods))

    def _used(self, kind: type) -> set[str]:
        """The names that matter: a network is only asked for its answers, so what its training needs does not count."""
        if kind not in self._names_used:
            begin = "forward" if issubclass(kind, nn.Module) and not self._every_method else None
            self._names_used[kind] = used_names(kind, begin)
        return self._names_used[kind]

    def _package(self, module: str) -> None:
        """Note the installed package that a module belongs to; Python's own is known by the code that it compiled."""
        top = module.partition(".")[0]
        if top and top not in sys.stdlib_module_names and top not in self._packages and is_installed(module):
            self._packages[top] = version_of(top) or ""
            if not self._packages[top]:
                self.unknown.add(f"{top}: the version of an installed package")

    def _model(self, model: nn.Module, where: str) -> Any:
        """A network: its weights, and class, attributes, hooks and graph of each of its modules."""
        if id(model) in self._met:
            return {"module": _name(type(model))}
        parts = dict(model.named_modules())
        self._met |= {id(part): part for part in parts.values()}
        described = {name: self._part(part, f"{where}.{name}" if name else where) for name, part in parts.items()}
        tensors: dict[str, Any] = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        further = {name: value for name, value in self._saved(model, where).items() if name not in tensors}
        weights = {name: self.of(tensor, f"{where}.{name}") for name, tensor in {**tensors, **further}.items()}
        shown = _ADDRESS.sub("", repr(model))
        return {"module": _name(type(model)), "shown": shown, "parts": described, "weights": weights}

    def _part(self, part: nn.Module, where: str) -> Any:
        used: Any = self._used(type(part))
        description: list[Any] = [self._class(type(part))]
        held = {name: value for name, value in sorted(vars(part).items()) if name not in OF_MODULES}
        kept = {name: self.of(item, f"{where}.{name}") for name, item in held.items() if _matters(name, item, used)}
        hooks = [hook for kind in (part._forward_pre_hooks, part._forward_hooks) for hook in kind.values()]
        description += [kept, self._list([hook for hook in hooks if not _weakspots(hook)], where)]
        graph = part.graph if isinstance(part, fx.GraphModule) else vars(part).get("graph")
        if isinstance(graph, fx.Graph):
            called = [node.target for node in graph.nodes if isinstance(node.target, FunctionType)]
            description += [_ADDRESS.sub("", str(graph)), self._list(called, where)]
        if isinstance(part, torch.jit.ScriptModule):
            self._cannot(where, "a TorchScript module, told by its code and weights alone", part)
            description.append(_ADDRESS.sub("", getattr(part, "code", "")))
        return description

    def _saved(self, model: nn.Module, where: str) -> dict[str, Any]:
        """What a module saves of itself; quantized ones keep their weights nowhere else."""
        try:
            return dict(model.state_dict())
        except Exception:  # a network need not be one that can be saved
            self._cannot(where, "what its state_dict() would hold", model)
            return {}


def attributes(value: Any) -> dict[str, Any]:
    """What an object holds, in its dictionary and its slots."""
    slots = [name for base in type(value).__mro__ for name in _tuple(vars(base).get("__slots__", ()))]
    held = {
        name: getattr(value, name) for name in slots if name not in ("__dict__", "__weakref__") and hasattr(value, name)
    }
    return {**held, **getattr(value, "__dict__", {})}


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is a setting: numbers, text, tensors, and containers or objects of nothing else."""
    if value is None or isinstance(value, (*_SCALARS, *_WORDS, Enum, Tensor, np.ndarray, np.generic, PurePath)):
        return True
    if depth > _PLAIN_DEPTH or isinstance(value, (*_CODE, ModuleType, Callable)):  # type: ignore[arg-type]
        return False
    if isinstance(value, Mapping):
        return all(is_plain(key, depth + 1) and is_plain(item, depth + 1) for key, item in value.items())
    if isinstance(value, list | tuple | AbstractSet | deque):
        return all(is_plain(item, depth + 1) for item in value)
    public = [item for name, item in attributes(value).items() if not name.startswith("_")]
    return bool(public) and all(is_plain(item, depth + 1) for item in public)


def _matters(name: str, value: Any, used: set[str]) -> bool:
    """Whether an attribute of a module counts: what is used by its name, and every setting that is not private."""
    private = name.startswith("_") and name.lstrip("_") not in used and "getattr" not in used
    return name in used or (not private and is_plain(value))


def _weakspots(hook: Any) -> bool:
    """Whether a hook is weakspot's own."""
    function = hook.func if isinstance(hook, partial) else getattr(hook, "__func__", hook)
    home = function.__globals__["__name__"] if isinstance(function, FunctionType) else type(function).__module__
    return str(home).partition(".")[0] == "weakspot"


def _lies_there(path: PurePath) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # no name that a file can have
        return False


def _users(kind: type) -> bool:
    return is_users_module(str(kind.__module__))


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_function(part: Any) -> bool:
    return isinstance(part, FunctionType)


def _tuple(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)
