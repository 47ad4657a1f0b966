"""What code can reach: names that it mentions, modules that it imports, methods of a class that it uses."""

import dis
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property, partialmethod
from importlib import import_module, metadata
from importlib.util import find_spec
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from weakspot._version import __version__
from weakspot.core.user_code import is_user_code, is_users_module

DESCRIPTORS = (staticmethod, classmethod, property, cached_property, partialmethod)
METHODS = (FunctionType, *DESCRIPTORS)
"""What members of a class that are code may be."""
_CONSTRUCTION = frozenset({"__init__", "__new__", "__init_subclass__", "__post_init__", "__set_name__"})
"""What these leave behind is looked at itself."""


class Import(NamedTuple):
    """One import statement inside a function."""

    level: int
    module: str
    names: tuple[str, ...]


def names_in(code: CodeType) -> set[str]:
    """Every global name and attribute that code mentions, functions inside it included."""
    inner = (names_in(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


def globals_in(code: CodeType) -> set[str]:
    """The names that code looks up in global variables: an attribute of the same name is something else."""
    looked_up = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
    inner = (globals_in(part) for part in code.co_consts if isinstance(part, CodeType))
    return {step.argval for step in dis.get_instructions(code) if step.opname in looked_up}.union(*inner)


def imports_in(code: CodeType) -> Iterator[Import]:
    """The imports that are made when code runs: level and names are loaded right before."""
    loaded: list[Any] = [None, None]
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            level, names = loaded[-2:]
            yield Import(level or 0, step.argval or "", tuple(names or ()))
        loaded.append(step.argval)
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from imports_in(part)


def parts_of(member: Any) -> list[Any]:
    """The functions behind a member of a class, and what they are given."""
    if isinstance(member, property):
        return [part for part in (member.fget, member.fset, member.fdel) if part is not None]
    if isinstance(member, partialmethod):
        return [member.func, member.args, member.keywords]
    if isinstance(member, cached_property):
        return [member.func]
    return [member.__func__] if isinstance(member, staticmethod | classmethod) else [member]


def members_of(kind: type) -> Mapping[str, Any]:
    """What is written in a class itself, without what Python adds to it."""
    members = {name: item for name, item in sorted(vars(kind).items()) if name != "_abc_impl"}
    return {name: item for name, item in members.items() if not _dunder(name) or isinstance(item, METHODS)}


def used_names(kind: type, begin: str | None) -> set[str]:
    """All names that a class's methods mention: those that `begin` leads to and the special ones, or with None all."""
    codes: dict[str, list[CodeType]] = {}
    for base in kind.__mro__:
        if is_users_module(str(base.__module__)):
            for name, member in members_of(base).items():
                codes.setdefault(name, []).extend(p.__code__ for p in parts_of(member) if isinstance(p, FunctionType))
    if begin is None:
        waiting = set(codes)
    else:
        waiting = {begin} | {name for name in codes if _dunder(name) and name not in _CONSTRUCTION}
    used = set(waiting)
    while waiting:
        mentioned = set[str]().union(*map(names_in, codes.pop(waiting.pop(), [])))
        used |= mentioned
        waiting |= mentioned & codes.keys()
    return used


def users_module(name: str) -> ModuleType | None:
    """A module that code imports as it runs, loaded now if it is the user's own; None where it is not, or not there."""
    if name in sys.modules:
        return sys.modules[name]
    parent = name.rpartition(".")[0]
    if parent and not hasattr(users_module(parent), "__path__"):
        return None
    return import_module(name) if not is_installed(name) and find_spec(name) is not None else None


def is_installed(module: str) -> bool:
    """Whether a module is of Python or of an installed package, loaded or not."""
    top = module.partition(".")[0]
    if module in sys.modules or top in sys.stdlib_module_names:
        return not is_users_module(module)
    spec = find_spec(top)
    places = [] if spec is None else [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    return any(not is_user_code(f"{location}/") for location in places)


@cache
def version_of(package: str) -> str | None:
    """The version of an installed package, without what names its build, such as +cpu."""
    if package == "weakspot":
        return __version__
    version = _distribution_version(package) or next(
        map(_distribution_version, _distributions().get(package, ())), None
    )
    version = version or getattr(sys.modules.get(package), "__version__", None)
    return version.partition("+")[0] if isinstance(version, str) else None


def _distribution_version(name: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return None


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
