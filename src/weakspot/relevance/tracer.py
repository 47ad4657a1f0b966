"""The forward pass under observation: every torch function that touches the data goes through its handler."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils.weak import WeakIdKeyDictionary

from weakspot.core.errors import SubjectError
from weakspot.relevance.carriers import Carrier, Terms
from weakspot.relevance.composites import Composite, Kind
from weakspot.relevance.ledger import Ledger
from weakspot.relevance.origins import UNKNOWN, Cell, Origin
from weakspot.relevance.rules import Rule
from weakspot.relevance.taps import Taps

T = TypeVar("T")
Handler = Callable[["Tracer", "Call"], Any]
HANDLERS: dict[Callable[..., Any], Handler] = {}


@dataclass(frozen=True)
class Call:
    """A torch function with its arguments, and those of them that depend on the inputs."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    operands: tuple[Tensor, ...]

    @property
    def name(self) -> str:
        """The function's plain name."""
        return str(getattr(self.function, "__name__", self.function)).strip("_")

    def compute(self, *operands: Tensor) -> Any:
        """The function's value with these operands in place of its own."""
        args, kwargs = self._with(dict(zip(map(id, self.operands), operands, strict=True)))
        return self.function(*args, **kwargs)

    def detached(self) -> Call:
        """The same call without any graph, to be kept: a graph must not hold what was made from it."""
        values = {id(tensor): tensor.detach() for tensor in _tensors((self.args, self.kwargs))}
        return Call(self.function, *self._with(values), tuple(values[id(operand)] for operand in self.operands))

    def holding(self, *constants: Tensor) -> Call:
        """The same call with these operands counted as constants."""
        kept = tuple(o for o in self.operands if not any(o is constant for constant in constants))
        return replace(self, operands=kept)

    def _with(self, replacements: dict[int, Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args = tuple(_exchanged(value, replacements) for value in self.args)
        return args, {key: _exchanged(value, replacements) for key, value in self.kwargs.items()}


class Tracer(TorchFunctionMode):
    """Gives every operation on the data a backward pass that carries relevance."""

    def __init__(self, composite: Composite, taps: Taps, *, measure: bool) -> None:
        super().__init__()
        self.composite = composite
        self.taps = taps
        self.ledger = Ledger(keep=measure)
        self._origins: Any = WeakIdKeyDictionary()
        self._cells: dict[int, list[Cell]] = defaultdict(list)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Handle one call; constants are computed without a graph."""
        kwargs = kwargs or {}
        if func is torch._C._set_grad_enabled:
            return None  # a model's own no_grad says nothing about relevance
        operands = self._operands(args, kwargs)
        if not operands:
            with torch.no_grad():
                return func(*args, **kwargs)
        if torch.is_inference_mode_enabled():
            raise SubjectError(f"{self.where} runs under torch.inference_mode; remove it, or use torch.no_grad there")
        if kwargs.get("out") is not None:
            raise self.no_rule(func, " for results written into `out`")
        handler = HANDLERS.get(func) or (_opened if _is_gated(func) else _looks)
        with torch.enable_grad():
            return handler(self, Call(func, args, kwargs, operands))

    @contextmanager
    def opaque(self, modules: Iterable[nn.Module]) -> Iterator[None]:
        """Treat modules of registered classes as single operations, for the time of one forward pass."""
        chosen = [module for module in modules if type(module) in HANDLERS and "forward" not in module.__dict__]
        try:
            for module in chosen:
                module.__dict__["forward"] = partial(self._whole, module, module.forward)
            yield
        finally:
            for module in chosen:
                module.__dict__.pop("forward", None)

    # --- what handlers use ------------------------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """The running layer, for messages."""
        name, module = self.taps.running
        return f"layer {name!r} ({type(module).__name__})"

    def follows(self, tensor: Any) -> bool:
        """Whether the value depends on the inputs."""
        if not isinstance(tensor, Tensor) or tensor.grad_fn is None:
            return False
        if self._origins.get(tensor) is None:
            if _reaches_carrier(tensor.grad_fn):
                raise SubjectError(self._unseen(tensor))
            return False
        maker = getattr(type(tensor.grad_fn), "_forward_cls", Carrier)
        if not issubclass(maker, Carrier):
            raise SubjectError(self._unseen(tensor))
        return True

    def origin(self, tensor: Tensor) -> Origin:
        """What is known of a tensor as it is now."""
        origin: Origin = self._origins.get(tensor, UNKNOWN)
        return origin if origin.version == tensor._version else replace(UNKNOWN, raw=origin.raw)

    def follow(self, output: T, origin: Origin) -> T:
        """Note the origin of every floating tensor in an output that carries relevance."""
        for tensor in _tensors((output,)):
            if tensor.grad_fn is not None and tensor.is_floating_point():
                self._origins[tensor] = replace(origin, version=tensor._version)
        return output

    def consume(self, operands: Iterable[Tensor]) -> list[Origin]:
        """Origins of tensors that are used now, and not as part of the layer that made them."""
        origins = [self.origin(operand) for operand in operands]
        for origin in origins:
            if origin.use is not None:
                origin.use.close(origin.stages)
        return origins

    def cell(self, tensor: Tensor) -> Cell:
        """Keep a tensor for the backward pass."""
        cell = Cell(tensor)
        self._cells[cell.memory].append(cell)
        return cell

    def before_overwriting(self, tensor: Tensor) -> None:
        """Bring to safety what is kept in memory that an in-place operation will overwrite."""
        for cell in self._cells.pop(tensor.untyped_storage()._cdata, []):
            cell.secure()

    def terms(self, operation: str, rule: str = "") -> Terms:
        """How an operation here treats its leftovers."""
        label = (self.taps.running[0], operation, rule)
        return Terms(label, self.ledger, self.composite.stabiliser, self.composite.bias)

    def rule(self, kind: Kind, *, first: bool) -> Rule:
        """The rule for a layer that runs here."""
        name, module = self.taps.running
        return self.composite.rule(kind, name.split("#")[0], module, first=first)

    def no_rule(self, function: Callable[..., Any], why: str = "") -> SubjectError:
        """The error for an operation that can't be handled."""
        name = resolve_name(function) or getattr(function, "__name__", repr(function))
        return SubjectError(
            f"operation {name} in {self.where} has no relevance rule{why}; register one with "
            f"weakspot.relevance.register({name}, ...): Pass() if it acts element by element, Share() if it is a "
            "weighted sum, Route() if it moves or selects values"
        )

    # --- the rest ---------------------------------------------------------------------------------------------------

    def _operands(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
        operands: dict[int, Tensor] = {id(t): t for t in _tensors((args, kwargs)) if self.follows(t)}
        return tuple(operands.values())

    def _whole(self, module: nn.Module, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction(), torch.enable_grad():
            if operands := self._operands(args, kwargs):
                return HANDLERS[type(module)](self, Call(forward, args, kwargs, operands))
            return forward(*args, **kwargs)

    def _unseen(self, tensor: Tensor) -> str:
        maker = type(tensor.grad_fn).__name__
        return (
            f"{self.where} uses a tensor made by {maker}, an operation that relevance cannot see (a custom "
            "autograd.Function, TorchScript or compiled code); expected plain torch functions; register the module "
            "class that contains it with weakspot.relevance.register(...)"
        )


def _looks(tracer: Tracer, call: Call) -> Any:
    """For functions without a rule: sizes, comparisons and the like may pass, values may not."""
    with torch.no_grad():
        output = call.compute(*(operand.detach() for operand in call.operands))
    if any(tensor.is_floating_point() for tensor in _tensors((output,))):
        raise tracer.no_rule(call.function)
    return output


def _opened(tracer: Tracer, call: Call) -> Any:
    """Run the body of a Python function of torch so that the operations inside it are seen."""
    function: Any = call.function
    ungated = {name: _never for name in function.__globals__ if name.startswith("has_torch_function")}
    names = {**function.__globals__, **ungated}
    body = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    body.__kwdefaults__ = function.__kwdefaults__
    with tracer:
        return body(*call.args, **call.kwargs)


def _is_gated(function: Callable[..., Any]) -> bool:
    """Whether it is a plain Python function that offers itself to interception before it does anything."""
    return inspect.isfunction(function) and any(n.startswith("has_torch_function") for n in function.__code__.co_names)


def _never(*_: Any) -> bool:
    return False


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
        elif isinstance(value, dict):
            yield from _tensors(value.values())


def _exchanged(value: Any, replacements: dict[int, Tensor]) -> Any:
    """A value with other tensors in the place of those with these identities, also in lists and tuples."""
    if isinstance(value, Tensor):
        return replacements.get(id(value), value)
    if type(value) in (list, tuple):
        return type(value)(_exchanged(item, replacements) for item in value)
    return value


def _reaches_carrier(node: Any) -> bool:
    """Whether a graph leads back to the inputs under observation."""
    seen, todo = set(), [node]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        maker = getattr(type(node), "_forward_cls", None)
        if maker is not None and issubclass(maker, Carrier):
            return True
        todo.extend(parent for parent, _ in node.next_functions)
    return False
