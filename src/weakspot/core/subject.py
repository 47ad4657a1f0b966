"""The Subject: the model under test, and the only place that knows about its normalisation, device and outputs."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from weakspot.core.code import CodeTrace
from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.inference_options import InferenceOptions, Precision
from weakspot.core.layers import Layer, list_layers
from weakspot.core.lending import given_back, move
from weakspot.core.look import Forward
from weakspot.core.options import shortened
from weakspot.core.output_choice import OutputChoice, picked
from weakspot.core.replay import Replays
from weakspot.core.sample_shape import channels_hint
from weakspot.core.source import is_text
from weakspot.core.tasks import TASKS, Scores, Task

MOST_CLASSES = 1_000_000


class Identity(NamedTuple):
    """What identifies a model, and what could not be read for it."""

    fingerprint: str
    unknown: tuple[str, ...]


class Subject:
    """A model under test: an `nn.Module`, or any callable from a batch of inputs to outputs (a black box).

    A black box is given tensors and may return a tensor or a numpy array.

    task: classification, multilabel, regression, keypoints or segmentation.
    classes: their names, or how many there are.
    scores: whether outputs are "logits" or "probabilities"; said, never guessed, and asked for only where it matters.
    output: which tensor to take from a tuple (index), mapping or dataclass (name), or a function that takes it out; not
        needed where there is only one.
    preprocess: from inputs as they are in the data to what the model wants; variations act before it.
    bounds: the smallest and largest value an input may have; what varies an input keeps to them.
    forward: from (model, inputs) to one complete prediction, for instance a sliding window over a volume.
    device: where to run, "auto" for a GPU when there is one; by default where the model's parameters are.
    cuda_graphs: on a GPU, record the forward pass once per batch shape and replay it: faster for small models, as long
        as the model does not decide in Python what to run. By default where passes are small and a trace shows that
        nothing depends on the data, see `weakspot.core.recording`.
    precision: "float32", or "bf16" to run the model's matrix products and convolutions in bfloat16.
    compile: run it through torch.compile wherever nothing is taken from inside.
    channels_last: hand it images with the channels innermost in memory, which suits most convolutions.
        What these three change is measured against plain float32 and noted in every Finding; relevance is always
        worked out in float32.
    fingerprint: names a black box and its version; a module is fingerprinted by its weights, structure and code.
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
        cuda_graphs: bool | None = None,
        precision: Precision = "float32",
        compile: bool = False,
        channels_last: bool = False,
        fingerprint: str | None = None,
    ):
        if not callable(model):
            raise ConfigError(f"a subject is an nn.Module or a callable, not {type(model).__name__}")
        if isinstance(model, torch.jit.ScriptModule):
            raise ConfigError(
                "the layers of a TorchScript module cannot be read, and it cannot be restored afterwards: give the "
                "nn.Module it was made from, a torch.export archive, or a function that calls it, with a fingerprint"
            )
        if task not in TASKS:
            raise ConfigError(f"task {task!r} is not known: choose one of {', '.join(TASKS)}")
        if scores not in (None, "logits", "probabilities"):
            raise ConfigError(f"scores {scores!r} is not known: choose 'logits' or 'probabilities'")
        self.model = model
        self.weights = ""  # names of the files that it was loaded from, for people
        self.task = task
        self.classes = _class_names(classes)
        self.scores = scores
        self.bounds = _checked_bounds(bounds)
        self.device = _device(device, model)
        self._output = output
        self._preprocess = preprocess
        self._forward = forward
        self._fingerprint = fingerprint
        self.inference_options = InferenceOptions(precision, compile, channels_last)
        self._compiled: Any = None
        self.cuda_graphs = cuda_graphs
        self._recorded = bool(cuda_graphs) and self.device.type == "cuda"
        self._lent = False
        self._known: Identity | None = None
        self._mark: str | None = None
        self.replays: Replays | None = None
        """The recorded passes, while the model is borrowed and where passes are recorded."""
        self.traced: dict[Any, str] = {}
        """What a trace showed of the model, by shape and type of the inputs, while it is borrowed."""

    def __repr__(self) -> str:
        named = None if self.classes is None else f"{len(self.classes)} classes"
        parts = [_model_name(self.model), self.task, named, self.scores, str(self.device)]
        return f"Subject({', '.join(part for part in parts if part)})"

    @property
    def white_box(self) -> bool:
        """Whether inner layers can be tapped: a module whose one call is one complete prediction."""
        return isinstance(self.model, nn.Module) and self._forward is None

    @property
    def prepares(self) -> bool:
        """Whether something turns inputs into what the model wants."""
        return self._preprocess is not None

    def fingerprint(self) -> str:
        """Changes whenever weights, structure, code, pre-processing or the choice of output change.

        The code is that of the user's own classes and functions, with the values they find, see `weakspot.core.code`;
        installed packages count by name and version.
        """
        fingerprint = self.identity().fingerprint
        return fingerprint if self._mark is None else digest([fingerprint, self._mark])

    def identity(self) -> Identity:
        """The fingerprint without what a Run knows besides, and what could not be looked at for it.

        While the model is borrowed it is worked out once: a forward may write to buffers, which are put back later.
        """
        if self._known is None:
            worked_out = self._work_out_identity()
            self._known = worked_out if self._lent else None
            return worked_out
        return self._known

    def tell_apart(self, mark: str | None) -> None:
        """Count as another model than the one of the same identity with other outputs; None to be that one again."""
        self._mark = mark

    def _work_out_identity(self) -> Identity:
        if self._fingerprint is None and not isinstance(self.model, nn.Module):
            raise ConfigError(
                "a callable has no weights that identify its version, so results of two versions could be mixed up: "
                "give the subject fingerprint='name and version'"
            )
        trace = CodeTrace(every_method=self._forward is not None)
        if self._fingerprint is not None and not hasattr(self.model, "fingerprint"):
            trace.unknown.add("model: all of it, known by the name that it was given alone")
        model = trace.of(self.model, "model") if self._fingerprint is None else self._fingerprint
        functions = {"output": self._output, "preprocess": self._preprocess, "forward": self._forward}
        adapters = [trace.of(value, name) for name, value in functions.items()]
        options = [] if self.inference_options == InferenceOptions() else [self.inference_options]
        fingerprint = trace.digest(model, self.task, self.classes, self.bounds, self.scores, adapters, options)
        return Identity(fingerprint, tuple(sorted(trace.unknown)))

    def describe(self) -> dict[str, Any]:
        """What a Run notes of its subject."""
        classes = list(self.classes) if self.classes else None
        fingerprint, unknown = self.identity()
        return {
            "model": _model_name(self.model),
            "fingerprint": self.fingerprint(),
            **({} if self._mark is None else {"code_and_weights": fingerprint}),
            **({"weights": self.weights} if self.weights else {}),
            "task": self.task,
            "classes": classes,
            **({"not_fingerprinted": list(unknown)} if unknown else {}),
        }

    def forward(self, inputs: Tensor) -> Tensor:
        """One complete prediction for a batch: pre-process, run, pick the output."""
        return self._run(self.model, inputs, lambda prepared: prepared)

    def prepared(self, inputs: Tensor) -> Tensor:
        """What the model is given for these inputs: a copy, pre-processed."""
        copied = inputs.clone()  # what works in place must not change the inputs of the next look
        return copied if self._preprocess is None else self._preprocess(copied)

    def quick(self, *, compiled: bool) -> Forward:
        """The forward with the inference options; `compiled` where nothing watches the model's operations."""
        if self.inference_options == InferenceOptions():
            return self.forward
        if not (compiled and self.inference_options.compile):
            return partial(self._quick, self.model)
        if self._compiled is None:
            self._compiled = torch.compile(self.model)
        return self._compiled_forward

    def _quick(self, model: Any, inputs: Tensor) -> Tensor:
        with self.inference_options.on(self.device):
            return self._run(model, inputs, self.inference_options.laid_out).float()

    def _compiled_forward(self, inputs: Tensor) -> Tensor:
        try:
            return self._quick(self._compiled, inputs)
        except Exception as error:
            self._quick(self.model, inputs)  # an error of the model itself is raised as always
            reason = str(error).strip().partition("\n")[0]
            raise SubjectError(f"the model cannot be compiled: {reason}; leave compile off") from error

    def _run(self, model: Any, inputs: Tensor, lay_out: Callable[[Tensor], Tensor]) -> Tensor:
        try:
            prepared = lay_out(self.prepared(inputs))
            raw = model(prepared) if self._forward is None else self._forward(model, prepared)
        except SystemExit as error:  # it would end the examination as if all were well
            raise SubjectError(
                f"the model ended the program with sys.exit({error.code!r}): take that out of its forward, or raise an "
                "exception that says what is wrong"
            ) from error
        except Exception as error:
            if hint := channels_hint(tuple(inputs.shape[1:])):
                error.add_note(hint)
            raise
        outputs = picked(raw, self._output, inputs.device)
        if outputs.ndim == 0 or outputs.shape[0] != inputs.shape[0]:
            raise SubjectError(
                f"the model gave outputs of shape {tuple(outputs.shape)} for {inputs.shape[0]} inputs: the first "
                "dimension must count the inputs; pick the right tensor with output="
            )
        if outputs.dtype == torch.bool or outputs.is_complex():
            raise SubjectError(f"the model gave {outputs.dtype}, expected real numbers: convert what it returns")
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
            stack.enter_context(given_back(self.model))
            stack.callback(self._return)
            self._lent, self.replays = True, self._new_replays()
            self.model.eval()
            move(self.model, self.device, stack)
            yield self.forward

    def record(self, recorded: bool) -> None:
        """Record passes from now on, or do not."""
        if recorded != self._recorded:
            self._recorded = recorded
            self.replays = self._new_replays() if self._lent else None

    def forget_replays(self) -> None:
        """Give back the memory that recorded passes hold."""
        self.replays = None if self.replays is None else self._new_replays()

    def _new_replays(self) -> Replays | None:
        return Replays(asked=bool(self.cuda_graphs)) if self._recorded else None

    def with_model(self, model: nn.Module) -> "Subject":
        """The same subject with another model in its place, for instance one trained further."""
        twin = copy.copy(self)
        twin.model, twin._fingerprint, twin._compiled, twin._mark = model, None, None, None
        twin._return()
        return twin

    def with_inference_options(self, options: InferenceOptions) -> "Subject":
        """The same subject with other inference options."""
        twin = copy.copy(self)
        twin.inference_options, twin._compiled = options, None
        twin._return()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Without what belongs to this process: that the model is borrowed, and what was compiled or recorded."""
        return {**vars(self), "_lent": False, "_compiled": None, "replays": None}

    def _return(self) -> None:
        self._lent, self._known, self.replays, self.traced = False, None, None, {}

    def layers(self, inputs: Tensor) -> tuple[Layer, ...]:
        """Every layer that runs for these inputs (a sample will do), in order; none of a black box."""
        return self.tried(inputs)[1]

    def tried(self, inputs: Tensor) -> tuple[Tensor, tuple[Layer, ...]]:
        """What the model gives for these inputs (a sample will do), and every layer that runs for them, in order."""
        outputs: list[Tensor] = []
        with self.borrowed() as forward, torch.no_grad():
            there = inputs.to(self.device)
            try:
                if self.white_box:
                    layers = list_layers(self.model, lambda one: outputs.append(forward(one)), there)  # type: ignore
                else:
                    outputs, layers = [forward(there)], []
            except RuntimeError as error:
                self._tell_of_other_types(there, error)
                raise
        return outputs[0], tuple(layers)

    def _tell_of_other_types(self, inputs: Tensor, error: RuntimeError) -> None:
        """Say so where weights and inputs are of different types, as of a model in half precision."""
        weights = self.model.parameters() if isinstance(self.model, nn.Module) else ()
        kinds = {weight.dtype for weight in weights if weight.is_floating_point()}
        input_dtype = self.prepared(inputs).dtype
        if kinds and input_dtype not in kinds:
            raise SubjectError(
                f"the model's weights are {' and '.join(sorted(map(str, kinds)))}, and its inputs {input_dtype}: cast "
                f"the inputs with preprocess, or the weights with model.float() ({error})"
            ) from error

    def class_count(self, outputs: Tensor) -> int | None:
        """How many classes or labels there are, as some outputs show; None for numbers and keypoints.

        Outputs that cannot be what was said of them are refused.
        """
        self._check_outputs(outputs)
        return outputs.shape[1] if self.task in ("classification", "multilabel", "segmentation") else None

    def _check_outputs(self, outputs: Tensor) -> None:
        shape = tuple(outputs.shape)
        if self.task in ("classification", "multilabel") and outputs.ndim != 2:
            raise SubjectError(
                f"the model gave outputs of shape {shape}, and {self.task} needs (samples, classes): pick the right "
                "tensor with output=, or say what the task is with task="
            )
        if self.task == "segmentation" and outputs.ndim < 3:
            raise SubjectError(
                f"the model gave outputs of shape {shape}, and segmentation needs (samples, classes, positions …): "
                "pick the right tensor with output=, or say what the task is with task="
            )
        if self.classes and self.task in ("classification", "multilabel") and shape[1] != len(self.classes):
            raise SubjectError(
                f"the model gives {shape[1]} scores per sample, and {len(self.classes)} classes are named: name "
                "them all, in the order of the outputs"
            )


def _model_name(model: Any) -> str:
    """What a model is called: its class, or the function that it is."""
    return str(getattr(model, "__qualname__", type(model).__qualname__))


def _class_names(classes: Sequence[str] | int | None) -> tuple[str, ...] | None:
    if classes is None:
        return None
    if isinstance(classes, int) and classes > MOST_CLASSES:
        raise ConfigError(f"classes is {classes:,}: expected {MOST_CLASSES:,} at most")
    names = tuple(map(str, range(classes))) if isinstance(classes, int) else tuple(classes)
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names) or not names:
        raise ConfigError(f"classes must be different names, or how many there are; got {shortened(classes)}")
    odd = next((name for name in names if not is_text(name)), None)
    if odd is not None:
        raise ConfigError(f"the class {odd!a} holds half of a surrogate pair, which is not text: give it another name")
    return names


def _checked_bounds(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    low, high = bounds
    if not low < high:
        raise ConfigError(f"bounds must be (smallest, largest), got {bounds!r}")
    return float(low), float(high)


def check_training_device(device: str) -> None:
    """Refuse to train where torch cannot."""
    if device != "cpu" and not (device.startswith("cuda") and torch.cuda.is_available()):
        raise ConfigError(f"device is {device!r}: expected 'cpu', or 'cuda' where torch finds a GPU")


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
