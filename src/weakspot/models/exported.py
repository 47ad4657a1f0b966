"""A `torch.export` archive (.pt2): with a free batch size a module whose layers can be looked into."""

import io
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram, unflatten
from torch.nn import functional as F

from weakspot.core.digest import digest_file
from weakspot.core.environment import environment
from weakspot.core.errors import ConfigError, SubjectError, WeakspotError
from weakspot.models.archive_check import plain_archive
from weakspot.models.batches import in_batches_of

aten = torch.ops.aten
_TENSORS_ONLY = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
"""Lets torch load tensors and nothing that could run code, whatever it tries."""


def _batch_norm(values: Tensor, weight: Any, bias: Any, mean: Any, var: Any, *how: Any) -> Tensor:
    """The operator's arguments in the order of the function; the last one chooses a library."""
    return F.batch_norm(values, mean, var, weight, bias, *how[:3])


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    aten.relu.default: F.relu,
    aten.relu_.default: F.relu,
    aten.gelu.default: F.gelu,
    aten.silu.default: F.silu,
    aten.sigmoid.default: torch.sigmoid,
    aten.tanh.default: torch.tanh,
    aten.leaky_relu.default: F.leaky_relu,
    aten.elu.default: F.elu,
    aten.hardtanh.default: F.hardtanh,
    aten.hardswish.default: F.hardswish,
    aten.conv1d.default: F.conv1d,
    aten.conv2d.default: F.conv2d,
    aten.conv3d.default: F.conv3d,
    aten.linear.default: F.linear,
    aten.batch_norm.default: _batch_norm,
    aten.layer_norm.default: lambda values, *arguments: F.layer_norm(values, *arguments[:4]),
    aten.group_norm.default: lambda values, *arguments: F.group_norm(values, *arguments[:4]),
    aten.dropout.default: F.dropout,
    aten.add.Tensor: torch.add,
    aten.mul.Tensor: torch.mul,
    aten.matmul.default: torch.matmul,
    aten.cat.default: torch.cat,
    aten.flatten.using_ints: torch.flatten,
    aten.mean.dim: torch.mean,
    aten.softmax.int: torch.softmax,
    aten.max_pool2d.default: F.max_pool2d,
    aten.avg_pool2d.default: F.avg_pool2d,
    aten.adaptive_avg_pool2d.default: F.adaptive_avg_pool2d,
}
"""The functions behind operators, called alike: those who watch a model know these."""
_CONVOLUTIONS = {aten.conv1d.default: nn.Conv1d, aten.conv2d.default: nn.Conv2d, aten.conv3d.default: nn.Conv3d}
_TRAINING = {aten.dropout.default: 2, aten.batch_norm.default: 5, aten.feature_dropout.default: 2}
"""Operators that behave differently in training, with the place of the argument that says so."""


def load_exported(path: str | Path) -> "nn.Module | FixedBatchModel":
    """The model in an archive: an `nn.Module`, or a black box where its batch size is fixed."""
    file = Path(path)
    if not file.is_file():
        raise ConfigError(f"cannot read the model {file}: there is no such file")
    archive = plain_archive(file)
    with _reported_as_unreadable(file):
        program = _load(archive)
        _check_evaluation(file, program)
        smallest, largest = batch_sizes(file, program)
        module = _unflattened(program)
    if smallest == largest:
        return FixedBatchModel(file, module, int(smallest))
    module.register_forward_pre_hook(_BatchLimits(file.name, smallest, largest))
    module.travels_as = load_exported, (file.resolve(),)  # type: ignore[assignment]  # torch's own cannot be pickled
    return module


class FixedBatchModel:
    """A callable that runs an exported model whose batch size is fixed; layers cannot be looked into across batches."""

    def __init__(self, path: Path, module: nn.Module, size: int):
        self._path, self._module, self._size = path, module, size

    @property
    def notes(self) -> tuple[str, ...]:
        """What the fixed batch size costs."""
        return (
            f"{self._path.name} was exported for batches of {self._size}: samples are run {self._size} at a time, and "
            "questions about layers cannot be asked; export it with dynamic_shapes to free the batch size",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process reads the file again."""
        return load_exported, (self._path.resolve(),)

    def fingerprint(self) -> str:
        """Of the file."""
        return digest_file(self._path, links=True)

    def __call__(self, inputs: Tensor) -> Any:
        """Outputs for any number of inputs, on their device."""
        return in_batches_of(self._size, self._module.to(inputs.device), inputs)


class _BatchLimits:
    """Says which batch sizes a model takes, before torch raises an error that is hard to understand."""

    def __init__(self, name: str, smallest: float, largest: float):
        self._name, self._smallest, self._largest = name, smallest, largest

    def __call__(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        if not self._smallest <= len(arguments[0]) <= self._largest:
            raise SubjectError(
                f"{self._name} was exported for batches of {self._smallest} to {self._largest}, and got "
                f"{len(arguments[0])}: choose another batch size, or export it with dynamic_shapes for any"
            )


@contextmanager
def _reported_as_unreadable(file: Path) -> Iterator[None]:
    try:
        yield
    except WeakspotError:
        raise
    except Exception as error:  # torch raises many kinds for archives that are damaged or of another version
        reason = str(error).strip().partition("\n")[0][:200]
        raise ConfigError(f"cannot read the model {file}: {type(error).__name__}: {reason}") from error


def _load(archive: io.BytesIO) -> ExportedProgram:
    with environment(*_TENSORS_ONLY), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about its own future
        return torch.export.load(archive)


def _check_evaluation(file: Path, program: ExportedProgram) -> None:
    for node in program.graph.nodes:
        argument = _TRAINING.get(node.target)
        if argument is not None and len(node.args) > argument and node.args[argument] is True:
            raise ConfigError(
                f"{file} was exported in training mode ({node.target} draws or learns at every call): call "
                "model.eval() before torch.export.export"
            )


def batch_sizes(file: Path, program: ExportedProgram) -> tuple[float, float]:
    """The smallest and largest batch an exported model takes."""
    names = program.graph_signature.user_inputs
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    if len(nodes) != 1 or not isinstance(nodes[0].meta.get("val"), Tensor) or not nodes[0].meta["val"].ndim:
        raise ConfigError(f"{file} takes {len(names)} inputs: export the model with one tensor, a batch of samples")
    size = nodes[0].meta["val"].shape[0]
    if isinstance(size, int):
        return size, size
    limits = program.range_constraints[size.node.expr]
    largest = int(limits.upper) if str(limits.upper).isdigit() else math.inf
    return max(int(limits.lower), 1), largest


def _unflattened(program: ExportedProgram) -> nn.Module:
    """The modules that were exported, with functions and layers as those who watch a model know them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about its own future
        module = unflatten(program)
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            layer = _as_layer(child)
            if layer is not None:
                setattr(parent, name, layer)
        if isinstance(getattr(parent, "graph", None), fx.Graph):
            _name_functions(parent)
    return module


def _name_functions(module: nn.Module) -> None:
    for node in module.graph.nodes:  # type: ignore[union-attr]
        if node.op == "call_function":
            node.target = _FUNCTIONS.get(node.target, node.target)
    getattr(module, "finalize", lambda: None)()


def _as_layer(module: nn.Module) -> nn.Module | None:
    """A convolution or linear layer in the place of a module that is nothing else; None for all others."""
    graph = getattr(module, "graph", None)
    calls = [node for node in graph.nodes if node.op == "call_function"] if isinstance(graph, fx.Graph) else []
    if len(calls) != 1 or not _is_weighted(module, calls[0]):
        return None
    weight, bias = (module._parameters.get(name) for name in ("weight", "bias"))
    if weight is None:
        return None
    with torch.device("meta"):
        layer = _empty_layer(calls[0], weight, bias is not None)
    layer.register_parameter("weight", weight)
    layer.register_parameter("bias", bias)
    return layer


def _is_weighted(module: nn.Module, call: fx.Node) -> bool:
    read = [node.target for node in call.args[1:3] if isinstance(node, fx.Node)]
    computes_weighted = call.target in _CONVOLUTIONS or call.target == aten.linear.default
    return computes_weighted and not call.kwargs and read == ["weight", "bias"][: len(read)] and "weight" in read


def _empty_layer(call: fx.Node, weight: Tensor, bias: bool) -> nn.Module:
    if call.target == aten.linear.default:
        return nn.Linear(weight.shape[1], weight.shape[0], bias=bias)
    said: list[Any] = [_sizes(argument) for argument in call.args[3:]]
    stride, padding, dilation, groups = said + [1, 0, 1, 1][len(said) :]
    kind: Any = _CONVOLUTIONS[call.target]  # type: ignore[index]
    return kind(  # type: ignore[no-any-return]
        weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]),
        stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias,
    )  # fmt: skip


def _sizes(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple | fx.immutable_collections.immutable_list) else value
