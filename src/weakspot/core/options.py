"""Options of a probe, checked against its annotations before anything runs."""

import math
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from pathlib import Path
from reprlib import Repr
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from weakspot.core.errors import ConfigError

_LARGEST = 2**63 - 1
_SCALARS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", types.NoneType: "none"}
_MANY = {int: "whole numbers", float: "numbers"}
FORMER_NAMES = {"samples": "looks", "cutoff": "threshold", "release": "early_stopping"}
"""Options that had another name before: whoever writes the old one is given the new one."""
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


class OptionError(ConfigError):
    """An option is not known, or its value is none it can have; `option` is its name."""

    def __init__(self, option: str, message: str):
        super().__init__(message)
        self.option = option

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.option, str(self))


def checked(option: str, value: Any, annotation: Any, *, of: str) -> Any:
    """The value as the annotation wants it (lists become tuples); one that does not fit is refused.

    >>> checked("layers", ["conv1", "fc"], str | tuple[str, ...], of="coverage")
    ('conv1', 'fc')
    """
    for candidate in (value, _tuples(value)):
        if fits(candidate, annotation):
            return candidate
    raise OptionError(option, f"{of}: {option} is {shortened(value)}, expected {described(annotation)}")


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value is one that an annotation allows. Numbers are finite; truth values are no numbers.

    >>> fits(5, float), fits("high", float), fits(True, int), fits(float("nan"), float)
    (True, False, False, False)
    """
    annotation = _plain(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in _SCALARS:
        return _fits_scalar(value, annotation)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in parts)
    if origin is not None:
        return _fits_container(value, origin, parts)
    return annotation is Any or not isinstance(annotation, type) or isinstance(value, annotation)


def _plain(annotation: Any) -> Any:
    """Without a name given to it, without what is annotated to it, and with None as a type."""
    if hasattr(annotation, "__value__"):
        return _plain(annotation.__value__)
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    return types.NoneType if annotation is None else annotation


def _fits_scalar(value: Any, kind: type) -> bool:
    if kind is int:
        return type(value) is int and abs(value) <= _LARGEST
    if kind is float:
        return isinstance(value, int | float) and type(value) is not bool and _finite(value)
    return isinstance(value, kind)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond what a float holds
        return False


def _fits_container(value: Any, origin: Any, parts: tuple[Any, ...]) -> bool:
    if origin is Callable:
        return callable(value)
    if origin is type:
        return isinstance(value, type)
    if not isinstance(value, origin) or isinstance(value, str | bytes):
        return False
    if issubclass(origin, Mapping):
        return all(fits(key, parts[0]) and fits(item, parts[1]) for key, item in value.items())
    if origin is tuple and (len(parts) != 2 or parts[1] is not Ellipsis):
        return len(value) == len(parts) and all(map(fits, value, parts))
    return not issubclass(origin, Collection) or all(fits(item, parts[0]) for item in value)


def described(annotation: Any) -> str:
    """What an annotation allows, in words.

    >>> described(int | None), described(tuple[str, ...]), described(Literal["a", "b"])
    ('a whole number or none', 'a list of text', "'a' or 'b'")
    """
    annotation = _plain(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(described, parts)))
    if origin is Literal:
        return " or ".join(part for part in (", ".join(map(repr, parts[:-1])), repr(parts[-1])) if part)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping from {described(parts[0])} to {described(parts[1])}"
    if origin is tuple and parts and parts[-1] is not Ellipsis:
        return f"a list of {len(parts)}: {', '.join(map(described, parts))}"
    if origin in (tuple, list, Sequence, AbstractSet, set, frozenset) and parts:
        return f"a list of {_MANY.get(parts[0]) or described(parts[0])}"
    return "anything" if annotation is Any else f"a {getattr(annotation, '__name__', annotation)}"


def shortened(value: Any) -> str:
    """A value as it is written, cut where it is long."""
    return str(value) if isinstance(value, Path) else _SHORT.repr(value)


def refuse_unknown(names: Collection[Any], options: Sequence[str], *, of: str) -> None:
    """Refuse options that there are not, naming those that there are.

    >>> refuse_unknown(["samples"], ["looks", "seed"], of="lesions")
    Traceback (most recent call last):
    weakspot.core.options.OptionError: lesions has no option 'samples'; it is called 'looks' now; it has: looks, seed
    """
    unknown = sorted(set(names) - set(options), key=str)
    if unknown:
        lost, have = ", ".join(map(repr, unknown)), ", ".join(options) or "none"
        new = FORMER_NAMES.get(str(unknown[0]))
        hint = f"it is called {new!r} now; " if new in options else nearest(unknown[0], options)
        raise OptionError(str(unknown[0]), f"{of} has no option {lost}; {hint}it has: {have}")


def nearest(name: Any, names: Sequence[str]) -> str:
    """A question whether something known was meant that is spelled nearly alike; nothing where there is none."""
    near = get_close_matches(str(name), names, n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
