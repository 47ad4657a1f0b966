"""Puts a model into evaluation for a while and gives it back exactly as it was."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from weakspot.core.code import OF_MODULES, is_plain
from weakspot.core.errors import SubjectError


@contextmanager
def given_back(model: nn.Module) -> Iterator[None]:
    """Put training flags, buffers and settings back, and notice if parameters were written to."""
    training = [(module, module.training) for module in model.modules()]
    settings = [(module, _settings(module)) for module in model.modules()]
    named = [(module._buffers, dict(module._buffers)) for module in model.modules()]
    values = [(buffer, buffer.clone()) for buffer in model.buffers()]
    versions = [(id(parameter), parameter._version) for parameter in model.parameters()]
    try:
        yield
    finally:
        for module, flag in training:
            module.training = flag
        for module, values_before in settings:
            _put_back(module, values_before)
        for held, before in named:  # a forward may also put another tensor in a buffer's place
            held.clear()
            held.update(before)
        with torch.no_grad():
            for buffer, value in values:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)
    if versions != [(id(parameter), parameter._version) for parameter in model.parameters()]:
        raise SubjectError("the model's parameters changed while it was examined: its forward must not train it")


def _settings(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name not in OF_MODULES and is_plain(value)}


def _put_back(module: nn.Module, before: Mapping[str, Any]) -> None:
    """A forward may leave something behind, such as its last features: the next one would be of another model."""
    now = vars(module)
    for name in _settings(module).keys() - before.keys():
        del now[name]
    registered = {*module._parameters, *module._buffers, *module._modules}
    now.update({name: value for name, value in before.items() if name not in registered})


def move(model: nn.Module, device: torch.device, stack: ExitStack) -> None:
    """Put a model on a device, until the stack closes."""
    first = next(model.parameters(), None)
    if first is not None and first.device != device:
        stack.callback(model.to, first.device)
        model.to(device)
