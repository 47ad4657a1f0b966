"""The Subject: the model under test, and the only place that knows about its normalisation, device and outputs."""

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weakspot.core.digest import canonical, digest
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.layers import Layer, list_layers
from weakspot.core.look import Forward
from weakspot.core.replay import Replays
from weakspot.core.tasks import TASKS, Scores, Task

OutputChoice = str | int | Callable[[Any], Tensor]


class Subject:
    """A model under test: an `nn.Module`, or any callable from a batch of inputs to outputs (a black box).

    task: classification, multilabel, regression, keypoints or segmentation.
    classes: their names, or how many there are.
    scores: whether outputs are "logits" or "probabilities"; said, never guessed, and asked for only where it matters.
    output: which tensor to take from a tuple (index), mapping or dataclass (name), or a function that takes it out.
    preprocess: from inputs as they are in the data to what the model wants; variations act before it.
    bounds: the smallest and largest value an input may have; what varies an input keeps to them.
    forward: from (model, inputs) to one complete prediction, for instance a sliding window over a volume.
    device: where to run, "auto" for a GPU when there is one; by default where the model's parameters are.
    cuda_graphs: on a GPU, record the forward pass once per batch shape and replay it: faster for small models, as long
        as the model does not decide in Python what to run.
    fingerprint: names a black box and its version; a module is fingerprinted by its weights and structure.
    """

    def __init__(
        self,
        model: nn.Module | Callable[[Tensor], Any],
        *,
        task: Task = "classification",
        classes: Sequence[str] | int | None = None,
        scores: Scores | None = None,
        output: OutputChoice | None = None,
        preprocess: Callable[[Tensor], Tensor] | None = None,
        bounds: tuple[float, float] | None = None,
        forward: Callable[[Any, Tensor], Any] | None = None,
        device: str | torch.device | None = None,
        cuda_graphs: bool = False,
        fingerprint: str | None = None,
    ):
        if not callable(model):
            raise ConfigError(f"a subject is an nn.Module or a callable, not {type(model).__name__}")
        if task not in TASKS:
            raise ConfigError(f"task {task!r} is not known: choose one of {', '.join(TASKS)}")
        if scores not in (None, "logits", "probabilities"):
            raise ConfigError(f"scores {scores!r} is not known: choose 'logits' or 'probabilities'")
        self.model = model
        self.task = task
        self.classes = _class_names(classes)
        self.scores = scores
        self.bounds = _checked_bounds(bounds)
        self.device = _device(device, model)
        self._output = output
        self._preprocess = preprocess
        self._forward = forward
        self._fingerprint = fingerprint
        self._cuda_graphs = cuda_graphs and self.device.type == "cuda"
        self._lent = False
        self._known: str | None = None
        self.replays: Replays | None = None
        """The recorded passes, while the model is borrowed and where `cuda_graphs` asks for them."""

    @property
    def white_box(self) -> bool:
        """Whether inner layers can be tapped: a module whose one call is one complete prediction."""
        return isinstance(self.model, nn.Module) and self._forward is None

    def fingerprint(self) -> str:
        """Changes whenever weights, structure, pre-processing or the choice of output change.

        While the model is borrowed it is worked out once: a forward may write to buffers, which are put back later.
        """
        if self._known is None:
            worked_out = self._work_out_fingerprint()
            self._known = worked_out if self._lent else None
            return worked_out
        return self._known

    def _work_out_fingerprint(self) -> str:
        if self._fingerprint is None and not isinstance(self.model, nn.Module):
            raise ConfigError(
                "a callable has no weights to tell one version from another, so its results could be mixed up: give "
                "the subject fingerprint='name and version'"
            )
        identity = self._fingerprint or _module_fingerprint(self.model)  # type: ignore[arg-type]
        adapters = [self._output, self._preprocess, self._forward, self.bounds, self.scores]
        return digest([identity, self.task, self.classes, *map(_adapter_identity, adapters)])

    def describe(self) -> dict[str, Any]:
        """What a Run notes of its subject."""
        named = getattr(self.model, "__qualname__", type(self.model).__qualname__)
        classes = list(self.classes) if self.classes else None
        return {"model": named, "fingerprint": self.fingerprint(), "task": self.task, "classes": classes}

    def forward(self, inputs: Tensor) -> Tensor:
        """One complete prediction for a batch: pre-process, run, pick the output."""
        prepared = inputs.clone()  # what works in place must not change the inputs of the next look
        prepared = prepared if self._preprocess is None else self._preprocess(prepared)
        raw = self.model(prepared) if self._forward is None else self._forward(self.model, prepared)
        outputs = _pick(raw, self._output)
        if outputs.ndim == 0 or outputs.shape[0] != inputs.shape[0]:
            raise SubjectError(
                f"the model gave outputs of shape {tuple(outputs.shape)} for {inputs.shape[0]} inputs: the first "
                "dimension must count the inputs; pick the right tensor with output="
            )
        return outputs

    @contextmanager
    def borrowed(self) -> Iterator[Forward]:
        """The model in evaluation mode and on its device; given back exactly as it was, also after an error.

        Borrowing again inside costs nothing.
        """
        if self._lent or not isinstance(self.model, nn.Module):
            yield self.forward
            return
        with ExitStack() as stack:
            stack.enter_context(_given_back(self.model))
            stack.callback(self._return)
            self._lent, self.replays = True, Replays() if self._cuda_graphs else None
            self.model.eval()
            _move(self.model, self.device, stack)
            yield self.forward

    def with_model(self, model: nn.Module) -> "Subject":
        """The same subject with another model in its place, for instance one trained further."""
        twin = copy.copy(self)
        twin.model, twin._fingerprint = model, None
        twin._return()
        return twin

    def _return(self) -> None:
        self._lent, self._known, self.replays = False, None, None

    def layers(self, inputs: Tensor) -> tuple[Layer, ...]:
        """Every layer that runs for these inputs (a sample will do), in order; none of a black box."""
        if not self.white_box:
            return ()
        with self.borrowed() as forward:
            return tuple(list_layers(self.model, forward, inputs.to(self.device)))  # type: ignore[arg-type]


def _class_names(classes: Sequence[str] | int | None) -> tuple[str, ...] | None:
    if classes is None:
        return None
    names = tuple(map(str, range(classes))) if isinstance(classes, int) else tuple(classes)
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names) or not names:
        raise ConfigError(f"classes must be different names, or how many there are; got {classes!r}")
    return names


def _checked_bounds(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    low, high = bounds
    if not low < high:
        raise ConfigError(f"bounds must be (smallest, largest), got {bounds!r}")
    return float(low), float(high)


def _device(device: str | torch.device | None, model: Any) -> torch.device:
    if device is None:
        first = next(model.parameters(), None) if isinstance(model, nn.Module) else None
        return torch.device("cpu") if first is None else first.device
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ConfigError(f"device {device!r} is not known: choose auto, cpu, cuda or cuda:1 …") from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {device!r} was asked for, but torch finds no GPU: use device='cpu' or 'auto'")
    return chosen


def _pick(raw: Any, choice: OutputChoice | None) -> Tensor:
    try:
        if choice is None:
            picked = raw
        elif callable(choice):
            picked = choice(raw)
        elif isinstance(choice, str) and not isinstance(raw, Mapping):
            picked = getattr(raw, choice)
        else:
            picked = raw[choice]
    except (KeyError, IndexError, AttributeError, TypeError) as error:
        raise SubjectError(f"output={choice!r} finds nothing in the model's {type(raw).__name__}: {error}") from error
    if not isinstance(picked, Tensor):
        raise SubjectError(
            f"the model gave {_describe_output(picked)}, expected a tensor: say which one with output= (an index, a "
            "name, or a function)"
        )
    return picked


def _describe_output(raw: Any) -> str:
    if isinstance(raw, Mapping):
        return f"a mapping with {', '.join(map(repr, raw))}"
    return f"a {type(raw).__name__} of {len(raw)}" if isinstance(raw, tuple | list) else f"a {type(raw).__name__}"


def _adapter_identity(adapter: Any) -> Any:
    return _module_fingerprint(adapter) if isinstance(adapter, nn.Module) else canonical(adapter)


def _module_fingerprint(model: nn.Module) -> str:
    sha = hashlib.sha256(f"{type(model).__module__}:{type(model).__qualname__}\n{model!r}".encode())
    for name, tensor in sorted({**dict(model.named_parameters()), **dict(model.named_buffers())}.items()):
        values = tensor.detach().cpu().contiguous()
        sha.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        sha.update(np.ascontiguousarray(values.flatten().view(torch.uint8).numpy()).data)
    return sha.hexdigest()


@contextmanager
def _given_back(model: nn.Module) -> Iterator[None]:
    """Put training flags and buffers back, and notice if parameters were written to."""
    training = [(module, module.training) for module in model.modules()]
    named = [(module._buffers, dict(module._buffers)) for module in model.modules()]
    values = [(buffer, buffer.clone()) for buffer in model.buffers()]
    versions = [(id(parameter), parameter._version) for parameter in model.parameters()]
    try:
        yield
    finally:
        for module, flag in training:
            module.training = flag
        for held, before in named:  # a forward may also put another tensor in a buffer's place
            held.clear()
            held.update(before)
        with torch.no_grad():
            for buffer, value in values:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)
    if versions != [(id(parameter), parameter._version) for parameter in model.parameters()]:
        raise SubjectError("the model's parameters changed while it was examined: its forward must not train it")


def _move(model: nn.Module, device: torch.device, stack: ExitStack) -> None:
    first = next(model.parameters(), None)
    if first is not None and first.device != device:
        stack.callback(model.to, first.device)
        model.to(device)
