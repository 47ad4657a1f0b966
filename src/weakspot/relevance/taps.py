"""Hooks that record which module runs, and the tensors whose relevance is asked for; they are always removed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from torch import Tensor, nn

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.layers import ROOT


class Taps:
    """Follows a forward pass through the modules and catches the inputs and outputs of the wanted layers.

    A layer ``name`` is caught at its output, ``name:input`` at its input. The second use of a layer in one pass is
    ``name#2`` (``name#2:input``).
    """

    def __init__(self, model: nn.Module, layers: Iterable[str]) -> None:
        self.model = model
        self.caught: dict[str, Tensor] = {}
        self._names = named_modules(model)
        self._wanted = _wanted(layers, set(self._names.values()))
        self._uses: Counter[str] = Counter()
        self._stack: list[tuple[str, nn.Module]] = []

    @property
    def running(self) -> tuple[str, nn.Module]:
        """Name of the innermost running module (with ``#2`` at its second use), and the module."""
        return self._stack[-1] if self._stack else (ROOT, self.model)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Hooks on every module, for the time of one forward pass."""
        handles = []
        try:
            for module in self._names:
                handles.append(module.register_forward_pre_hook(self._enter, with_kwargs=True))
                # first, so that others' hooks are given the tensor that goes on
                handles.append(module.register_forward_hook(self._leave, always_call=True, prepend=True))
            yield
        finally:
            for handle in handles:
                handle.remove()
            self._stack.clear()

    def check(self) -> None:
        """Raise where a wanted layer did not run."""
        if missing := [layer for layer in self._wanted if layer not in self.caught]:
            raise SubjectError(
                f"expected the forward pass to run the layers {missing}, but it did not use them; "
                "leave them out of `layers`, or name the module that does the work"
            )

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = self._names[module]
        self._uses[name] += 1
        use = name if self._uses[name] == 1 else f"{name}#{self._uses[name]}"
        self._stack.append((use, module))
        if f"{name}:input" in self._wanted:
            return self._catch(f"{use}:input", (args, kwargs))
        return None

    def _leave(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        use, _ = self._stack.pop()
        if self._names[module] in self._wanted and output is not None:
            return self._catch(use, output)
        return None

    def _catch(self, key: str, values: Any) -> Any:
        """Keep a copy of the first floating tensor, and hand a copy of that on.

        The tensor itself may go other ways too, whose relevance is not this layer's; and what is handed on may be
        overwritten in place.
        """

        def keep(tensor: Tensor) -> Tensor:
            if key in self.caught:
                return tensor
            self.caught[key] = tensor.clone()
            return self.caught[key].clone()

        return map_tensors(values, keep)


def map_tensors(values: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to every floating tensor in nested tuples, lists and dictionaries."""
    if isinstance(values, Tensor):
        return function(values) if values.is_floating_point() else values
    if isinstance(values, dict):
        return type(values)((key, map_tensors(value, function)) for key, value in values.items())
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*(map_tensors(value, function) for value in values))
    if isinstance(values, list | tuple):
        return type(values)(map_tensors(value, function) for value in values)
    return values


def named_modules(model: nn.Module) -> dict[nn.Module, str]:
    """Every module and its name; Keras keeps its layers apart from torch's."""
    names = {module: name or ROOT for name, module in model.named_modules()}
    for layer in getattr(model, "_flatten_layers", list)():
        names.setdefault(layer, layer.name)
    return names


def _wanted(layers: Iterable[str], names: set[str]) -> list[str]:
    if isinstance(layers, str):
        raise ConfigError(f"layers must be a list of names, got the single string {layers!r}; write [{layers!r}]")
    wanted = list(layers)
    for layer in wanted:
        name = layer.removesuffix(":input")
        if name not in names:
            near = get_close_matches(name, names, n=3, cutoff=0.3)
            raise ConfigError(
                f"layers must name modules of the model, got {layer!r}; did you mean {' or '.join(near) or 'another'}? "
                "`dict(model.named_modules())` lists them"
            )
    return wanted
