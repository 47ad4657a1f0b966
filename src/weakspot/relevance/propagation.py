"""`relevance`: forward and backward pass in one call. `propagation`: around a forward pass that you make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

import weakspot.relevance.operations  # noqa: F401  (fills the table of operations)
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.relevance.composites import Composite, epsilon_plus
from weakspot.relevance.gradients import GradientTimesInput, GradientTrace, IntegratedGradients, LogitFinder, PathTrace
from weakspot.relevance.result import Relevance
from weakspot.relevance.starts import Start
from weakspot.relevance.taps import Taps
from weakspot.relevance.trace import Rows, RuleTrace, Trace
from weakspot.relevance.tracer import Tracer

Method = Composite | GradientTimesInput | IntegratedGradients


def relevance(
    model: nn.Module,
    inputs: Any,
    *,
    method: Method | None = None,
    start: Start | None = None,
    layers: Iterable[str] = (),
    rows: Rows = None,
    output: Callable[[Any], Tensor] | None = None,
    conservation: bool = True,
) -> Relevance:
    """Relevance of the inputs, and of inner layers, for outputs of the model.

    inputs: a tensor, a tuple of positional or a mapping of keyword arguments.
    method: a composite of rules (default `epsilon_plus()`), `GradientTimesInput()` or `IntegratedGradients()`.
    start: which outputs to explain (default: the winning logit).
    layers: names of modules, ``"block.conv"`` for the output of one, ``"block.conv:input"`` for its input.
    rows: limits it to some samples.
    output: picks the tensor to explain out of what the model returns.
    conservation: whether to measure how much relevance is lost on the way.

    The model runs in the mode it is in, and is given back as it was.

    >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).eval()
    >>> relevance(model, torch.ones(5, 4), layers=["1"]).layers["1"].shape
    torch.Size([5, 3])
    """

    def forward(values: Any) -> Tensor:
        returned = _called(model, values)
        return _picked(returned if output is None else output(returned))

    with propagation(model, method, layers=layers, conservation=conservation, forward=forward) as trace:
        outputs = forward(trace.watch(inputs))
    return trace.relevance(outputs, start=start, rows=rows)


@contextmanager
def propagation(
    model: nn.Module,
    method: Method | None = None,
    *,
    layers: Iterable[str] = (),
    conservation: bool = True,
    forward: Callable[[Any], Tensor] | None = None,
) -> Iterator[Trace]:
    """Observe one forward pass of the model, however it is called, and leave the model as it was.

    forward: what `IntegratedGradients` calls again; by default the model itself.

    >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).eval()
    >>> with propagation(model, layers=["0"]) as trace:
    ...     outputs = model(trace.watch(torch.ones(5, 4)))
    >>> trace.relevance(outputs, rows=outputs[:, 0] > 0).layers["0"].shape
    torch.Size([5, 3])
    """
    method = epsilon_plus() if method is None else method
    _check(model)
    layers = list(layers) if not isinstance(layers, str) else layers
    taps = Taps(model, layers)
    with borrowed(model), ExitStack() as stack:
        stack.enter_context(taps.attached())
        if isinstance(method, Composite):
            tracer = Tracer(method, taps, measure=conservation)
            stack.enter_context(tracer.opaque(model.modules()))
            yield RuleTrace(stack.enter_context(tracer))
        elif isinstance(method, GradientTimesInput | IntegratedGradients):
            stack.enter_context(torch.enable_grad())
            finder = stack.enter_context(LogitFinder())
            if isinstance(method, GradientTimesInput):
                yield GradientTrace(taps, finder)
            else:
                yield PathTrace(taps, finder, method, lambda values: _point(model, layers, forward or model, values))
        else:
            raise ConfigError(f"method must be a Composite, GradientTimesInput or IntegratedGradients, got {method!r}")


@contextmanager
def borrowed(model: nn.Module) -> Iterator[None]:
    """Let the model work on copies of its buffers, and put the originals back, also after an exception."""
    kept = [
        (module._buffers, name, buffer)
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    copies = {id(buffer): buffer.detach().clone() for _, _, buffer in kept}
    try:
        for buffers, name, buffer in kept:
            buffers[name] = copies[id(buffer)]
        yield
    finally:
        for buffers, name, buffer in kept:
            buffers[name] = buffer


def _point(
    model: nn.Module, layers: Iterable[str], forward: Callable[[Any], Tensor], values: Any
) -> tuple[Tensor, list[Tensor]]:
    """One more forward pass: the logits, and the tensors whose gradients are wanted."""
    with propagation(model, GradientTimesInput(), layers=layers) as trace:
        outputs = forward(trace.watch(values))
    return trace.logits(outputs), trace.targets()


def _called(model: nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)


def _picked(output: Any) -> Tensor:
    if not isinstance(output, Tensor):
        raise SubjectError(
            f"expected the model to return a tensor, got {type(output).__name__}; say which one to explain with "
            "`output=lambda returned: returned[0]`"
        )
    return output


def _check(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        raise SubjectError(f"expected a torch.nn.Module, got {type(model).__name__}; relevance needs a model's inside")
    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule | nn.DataParallel) or type(module).__name__ == "OptimizedModule":
            raise SubjectError(
                f"{name or 'the model'} is a {type(module).__name__}, whose operations cannot be seen; "
                "give the plain module it was made from"
            )
