"""The directive `public-names`: everything that a module or package offers, from its docstrings."""

import inspect
import re
from importlib import import_module
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from numpy.typing import ArrayLike
from plain_docstrings import restructured
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import stringify_annotation

from weakspot.core.probe import Probe
from weakspot.registry import offered

NDARRAY = re.compile(r"~?numpy\.ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?numpy\.dtype\[(~?[\w.]+)\]\]")


def setup(app: Any) -> dict[str, bool]:
    """Add the directive, and shorten the types in signatures."""
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-process-signature", shortened)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def shortened(app: Any, what: str, name: str, thing: Any, options: Any, *signature: str | None) -> tuple[Any, ...]:
    """Arguments and result of a signature with numpy's types under the names that people know."""
    return tuple(part and with_known_names(part) for part in signature)


def with_known_names(types: str) -> str:
    """The text of types, shorter.

    >>> with_known_names("~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]]")
    'NDArray[~numpy.float64]'
    """
    for mode in ("smart", "fully-qualified-except-typing"):
        types = types.replace(stringify_annotation(ArrayLike, mode), "ArrayLike")
    return NDARRAY.sub(r"NDArray[\1]", types).replace("<factory>", "...")


def public_names(module: ModuleType) -> list[str]:
    """What `__all__` names; without it the classes and functions that are defined in the module."""
    names = getattr(module, "__all__", None) or [name for name, thing in vars(module).items() if _is_own(thing, module)]
    return [name for name in names if not name.startswith("_")]


def _is_own(thing: Any, module: ModuleType) -> bool:
    return (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__ == module.__name__


def probes_of(package: str) -> list[str]:
    """The full names of the probes of a package, such as `weakspot.coverage`."""
    named = (reference.replace(":", ".") for reference in offered().values())
    return sorted(name for name in named if name.startswith(f"{package}."))


def documented(name: str, thing: Any) -> list[str]:
    """The directive of autodoc for something, and its options."""
    if not inspect.isclass(thing):
        if inspect.isroutine(thing):
            return [f".. autofunction:: {name}", ""]
        return [f".. autodata:: {name}", *(["   :no-value:"] if "<class" in repr(thing) else []), ""]
    kind = "exception" if issubclass(thing, BaseException) else "class"
    hidden = ["   :exclude-members: observe, close"] if issubclass(thing, Probe) and thing is not Probe else []
    return [f".. auto{kind}:: {name}", "   :members:", *hidden, ""]


class PublicNames(SphinxDirective):
    """`public-names:: weakspot.looks`: the docstring, and every public name; `:probes:` lists its probes instead."""

    required_arguments = 1
    option_spec = {"probes": lambda value: True}  # noqa: RUF012  # docutils reads it from the class

    def run(self) -> list[nodes.Node]:
        """What autodoc makes of the names."""
        lines = self._probes() if "probes" in self.options else self._names()
        return self.parse_text_to_nodes(StringList(lines, source=self.arguments[0]))

    def _names(self) -> list[str]:
        module = import_module(self.arguments[0])
        told = restructured(inspect.getdoc(module) or "")
        for name in public_names(module):
            told += documented(f"{module.__name__}.{name}", getattr(module, name))
        return told

    def _probes(self) -> list[str]:
        package = import_module(self.arguments[0])
        exported = [getattr(package, name) for name in public_names(package)]
        told: list[str] = []
        for name in probes_of(package.__name__):
            module, _, own = name.rpartition(".")
            thing = getattr(import_module(module), own)
            told += [] if any(thing is other for other in exported) else documented(name, thing)
        return told
