"""Which layers a model has: found by watching one forward pass, so that only what really runs is listed."""

import fnmatch
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.look import Forward

Side = Literal["input", "output", "activated"]

ROOT = "(model)"
"""The name of the model itself, where it is a layer."""
_CHANNELS_LAST = (nn.Linear, nn.LayerNorm, nn.Embedding, nn.MultiheadAttention, nn.RMSNorm)
_CHANNELS_FIRST = (
    nn.modules.conv._ConvNd,
    nn.modules.batchnorm._NormBase,
    nn.GroupNorm,
    nn.modules.pooling._MaxPoolNd,
    nn.modules.pooling._AvgPoolNd,
)
_WEIGHTED = (nn.Linear, nn.modules.conv._ConvNd)
_NORMALISATIONS = frozenset({"batch_norm", "instance_norm", "group_norm", "layer_norm", "rms_norm"})
_ACTIVATIONS = frozenset(
    "relu relu_ relu6 leaky_relu leaky_relu_ prelu rrelu elu elu_ selu selu_ celu celu_ gelu silu silu_ mish hardswish "
    "hardswish_ hardtanh hardtanh_ softplus softsign tanh tanh_ sigmoid sigmoid_ hardsigmoid hardsigmoid_ logsigmoid "
    "threshold threshold_ clamp clamp_".split()
)


@dataclass(frozen=True)
class Layer:
    """One use of one module. A module that runs twice gives two layers, `name` and `name#2`."""

    name: str
    use: int
    kind: str
    shape: tuple[int, ...]
    """Of the output for one sample."""
    input_shape: tuple[int, ...]
    channel_dim: int
    """Of the output with the batch in front: which dimension counts neurons."""
    weighted: bool
    """Convolution or linear: what "all" layers means."""
    activation: str | None = None
    """The activation that follows directly, or after a normalisation."""

    @property
    def label(self) -> str:
        """The name by which the layer is asked for."""
        return self.name if self.use == 1 else f"{self.name}#{self.use}"


@dataclass(frozen=True)
class Point:
    """One place in the model whose values are taken."""

    name: str
    use: int
    side: Side
    channel_dim: int
    channels: int

    def __hash__(self) -> int:  # quick: points are looked up for every layer of every batch
        return hash(self.name) + self.use

    @property
    def label(self) -> str:
        """The layer's name, with its use and side where they are not the first and the output."""
        use = "" if self.use == 1 else f"#{self.use}"
        return f"{self.name}{use}" + ("" if self.side == "output" else f" ({self.side})")


class ActivationWatch(TorchFunctionMode):
    """Follows marked tensors through a normalisation to the activation applied to them, module or function alike."""

    def __init__(self) -> None:
        super().__init__()
        self._marked: dict[int, tuple[Tensor, list[Any]]] = {}
        self.reached: list[tuple[Any, str]] = []

    def mark(self, tensor: Tensor, mark: Any) -> None:
        """Report `mark` when an activation is applied to this tensor. The tensor is held, so its id stays its own.

        A tensor may bear several marks: the output of a normalisation is that of the layer before it too.
        """
        self._marked.setdefault(id(tensor), (tensor, []))[1].append(mark)

    def forget(self) -> None:
        """Let go of the tensors that no activation was applied to."""
        self._marked.clear()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        follows = name in _ACTIVATIONS or name in _NORMALISATIONS
        marked = self._marked.pop(id(args[0]), None) if follows and args else None
        result = func(*args, **(kwargs or {}))
        for mark in marked[1] if marked is not None else ():
            if name in _ACTIVATIONS:
                self.arrived(mark, name, result)
            else:
                self.mark(result, mark)
        return result

    def arrived(self, mark: Any, name: str, result: Tensor) -> None:
        """Called once per mark."""
        self.reached.append((mark, name))


def first_tensor(value: Any, where: str) -> Tensor:
    """The tensor itself, or the first one in a tuple, list or mapping."""
    if isinstance(value, Tensor):
        return value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    for item in items:
        if isinstance(item, Tensor):
            return item
    raise SubjectError(f"layer {where} gives {type(value).__name__}, which holds no tensor: choose another layer")


def list_layers(model: nn.Module, forward: Forward, inputs: Tensor) -> list[Layer]:
    """Every module that runs in one forward pass, in the order in which they finish, with its activation."""
    layers: list[Layer] = []
    uses: Counter[str] = Counter()
    watch = ActivationWatch()

    def note(name: str, module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        uses[name] += 1  # also of calls that are no layers: the taps count every call
        if not arguments or not isinstance(arguments[0], Tensor) or not _has_tensor(output):
            return
        tensor = first_tensor(output, name)
        alike = (layer.channel_dim for layer in reversed(layers) if layer.shape == tensor.shape[1:])
        layers.append(_layer(name, uses[name], module, arguments[0], tensor, next(alike, 1)))
        watch.mark(tensor, len(layers) - 1)

    with _hooks(model, note), torch.no_grad(), watch:
        forward(inputs)
    for index, activation in watch.reached:
        layers[index] = replace(layers[index], activation=activation)
    return layers


def _has_tensor(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else (value,)
    return any(isinstance(item, Tensor) for item in items)


def _layer(name: str, use: int, module: nn.Module, first_input: Tensor, output: Tensor, before: int) -> Layer:
    """What one call shows; a module that does not say where its channels are has them where `before` says."""
    last = isinstance(module, _CHANNELS_LAST) or output.ndim == 2
    first = isinstance(module, _CHANNELS_FIRST)
    return Layer(
        name=name,
        use=use,
        kind=type(module).__name__,
        shape=tuple(output.shape[1:]),
        input_shape=tuple(first_input.shape[1:]),
        channel_dim=output.ndim - 1 if last else 1 if first else before,
        weighted=isinstance(module, _WEIGHTED),
    )


def module_named(model: nn.Module, name: str) -> nn.Module:
    """The module of a layer."""
    return model if name == ROOT else model.get_submodule(name)


@contextmanager
def _hooks(model: nn.Module, note: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for name, module in model.named_modules():
            if name or isinstance(module, _WEIGHTED):  # a convolution alone is a layer, too
                hook = partial(_noted, note, name or ROOT)
                stack.callback(module.register_forward_hook(hook, with_kwargs=True).remove)
        yield


def _noted(note: Any, name: str, module: nn.Module, args: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
    note(name, module, (*args, *named.values()), output)


def select_layers(layers: Sequence[Layer], chosen: str | Sequence[str], side: Side) -> tuple[Point, ...]:
    """The points that a choice means: "all" (convolutions and linears), "penultimate", names or patterns."""
    if chosen == "penultimate":
        return (_point(_weighted(layers, chosen)[-1], "input"),)
    if chosen == "all":
        return tuple(_point(layer, side) for layer in _weighted(layers, chosen))
    patterns = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    named = [layer for layer in layers if any(fnmatch.fnmatchcase(layer.label, pattern) for pattern in patterns)]
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(layer.label, pattern) for layer in layers):
            raise ConfigError(_no_such_layer(pattern, layers))
    return tuple(_point(layer, side) for layer in named)


def _weighted(layers: Sequence[Layer], chosen: str) -> list[Layer]:
    weighted = [layer for layer in layers if layer.weighted]
    if not weighted:
        raise SubjectError(f"the model has no convolution or linear layer: name the layer instead of {chosen!r}")
    return weighted


def _point(layer: Layer, side: Side) -> Point:
    if side == "activated" and layer.activation is None:
        side = "output"  # nothing follows directly: the layer's own output is its activated value
    shape, dim = (layer.input_shape, _input_channel_dim(layer)) if side == "input" else (layer.shape, layer.channel_dim)
    if not shape:
        raise SubjectError(f"layer {layer.label} has one number per sample and no channels: choose another layer")
    return Point(layer.name, layer.use, side, dim, shape[dim - 1])


def _input_channel_dim(layer: Layer) -> int:
    last = layer.channel_dim == len(layer.shape) or len(layer.input_shape) == 1
    return len(layer.input_shape) if last else 1


def _no_such_layer(pattern: str, layers: Sequence[Layer]) -> str:
    labels = [layer.label for layer in layers]
    near = get_close_matches(pattern, labels, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`weakspot layers` lists them"
    return f"no layer is called or matches {pattern!r}: {hint}"
