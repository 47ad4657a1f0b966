"""Checks that model, data and probes can be sent to other processes and machines."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from weakspot.core.errors import ConfigError
from weakspot.core.subject import Subject
from weakspot.core.user_code import is_user_code

_DEEPEST = 12


def users_modules() -> list[ModuleType]:
    """The loaded modules that are neither weakspot's nor installed: other machines do not have them."""
    return [module for name, module in list(sys.modules.items()) if name != "__main__" and _is_users(module)]


def _is_users(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and file.endswith(".py") and is_user_code(file)


@contextmanager
def users_code_travels(cloudpickle: Any) -> Iterator[None]:
    """Send the user's own classes and functions as they are, not by the names of modules that must be there, too."""
    registered = []
    try:
        for module in users_modules():
            cloudpickle.register_pickle_by_value(module)
            registered.append(module)
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


@contextmanager
def on_cpu(subject: Subject) -> Iterator[None]:
    """The model's weights in main memory while they are packed: where they go there may be another GPU, or none."""
    model: Any = subject.model
    first = next(model.parameters(), None) if isinstance(model, torch.nn.Module) else None
    if first is None or first.device.type == "cpu":
        yield
        return
    device = first.device
    model.to("cpu")
    try:
        yield
    finally:
        model.to(device)


def unmade(model: Any) -> tuple[Any, dict[str, Any]]:
    """A model that cannot be pickled: how it is made (function, arguments), as `travels_as` says, and its weights."""
    return model.travels_as, model.state_dict()


def made_again(parts: tuple[Any, dict[str, Any]]) -> Any:
    """The model of which these are the parts."""
    (function, arguments), weights = parts
    model = function(*arguments)
    model.load_state_dict(weights)
    return model


def cannot_travel(what: str, thing: Any, dumps: Callable[[Any], bytes], reason: Exception) -> ConfigError:
    """What to tell the user of something that cannot be sent: which object it is, and what to do."""
    path, item, why = unpicklable(what, thing, dumps) or (what, thing, reason)
    return ConfigError(
        f"{what} cannot be sent to Ray's workers: {path} is a {type(item).__module__}.{type(item).__qualname__} "
        f"({str(why).strip().partition(chr(10))[0]}); make such a thing where it is first used, leave it out with "
        "__getstate__ or __reduce__ in its class, or use the engine local"
    )


def unpicklable(name: str, thing: Any, dumps: Callable[[Any], bytes]) -> tuple[str, Any, Exception] | None:
    """The innermost part that cannot be pickled: how it is reached, what it is, and why not."""
    return _search(name, thing, dumps, set(), 0)


def _search(
    name: str, thing: Any, dumps: Callable[[Any], bytes], seen: set[int], depth: int
) -> tuple[str, Any, Exception] | None:
    if id(thing) in seen or depth > _DEEPEST:
        return None
    seen.add(id(thing))
    try:
        dumps(thing)
    except Exception as error:  # whatever the user's objects raise
        inner = (_search(f"{name}{step}", part, dumps, seen, depth + 1) for step, part in _parts(thing))
        return next((culprit for culprit in inner if culprit is not None), (name, thing, error))
    return None


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, and how it is reached."""
    if isinstance(thing, Mapping):
        yield from ((f"[{key!r}]", value) for key, value in thing.items())
    elif isinstance(thing, list | tuple | set):
        yield from ((f"[{number}]", value) for number, value in enumerate(thing))
    elif isinstance(thing, partial):
        yield from ((".func", thing.func), (".args", thing.args), (".keywords", thing.keywords))
    elif isinstance(thing, MethodType):
        yield ".__self__", thing.__self__
    elif isinstance(thing, FunctionType):
        names = thing.__code__.co_freevars
        yield from ((f":{n}", cell.cell_contents) for n, cell in zip(names, thing.__closure__ or (), strict=True))
        used_globals = ((n, thing.__globals__[n]) for n in thing.__code__.co_names if n in thing.__globals__)
        yield from ((f":{n}", value) for n, value in used_globals)
    else:
        yield from ((f".{key}", value) for key, value in getattr(thing, "__dict__", {}).items())
