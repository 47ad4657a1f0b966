"""Small nets, data and probes for the tests of the frame."""

import threading
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from weakspot.core.driver import examine
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Estimate, Finding
from weakspot.core.look import Look, Original
from weakspot.core.needs import Attribution, Needs
from weakspot.core.observation import Observation
from weakspot.core.probe import Probe, Rows
from weakspot.core.progress import Silent
from weakspot.core.state import Sum
from weakspot.core.subject import Subject
from weakspot.core.taps import Tap
from weakspot.data.sources import ArraySource


def reading_threads() -> list[threading.Thread]:
    """Those that read batches ahead."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("weakspot-read")]


class Heard(Silent):
    """Keeps what is said."""

    def __init__(self):
        self.said = []

    def tell(self, message):
        self.said.append(message)


SEEN: list[Observation] = []
"""What the last `Grab` was shown."""
TRIED = 2
"""Passes of a few samples before an examination: one lists the layers, one shows whether the answers are the same."""


class Grab(Probe):
    """Keeps every observation, for a test to look at."""

    taps: tuple[Tap, ...] = ()
    looks: tuple[tuple[Look, int], ...] = ((Original(), 1),)
    attribution: Attribution | None = None

    @property
    def needs(self) -> Needs:
        return Needs(dict(self.looks), self.taps, self.attribution)

    def observe(self, seen: Observation) -> None:
        SEEN.append(seen)

    def finish(self) -> Finding:
        return self.finding()


def look_at(
    model: nn.Module,
    inputs: Tensor,
    *taps: Tap,
    batch_size: int = 64,
    attribution: Attribution | None = None,
    **options,
) -> list[Observation]:
    """What a probe with these taps is shown of the inputs."""
    SEEN.clear()
    probe = Grab(taps=taps, attribution=attribution)
    execution = ExecutionOptions(batch_size=batch_size, workers=0)
    examine(Subject(model, **options), ArraySource(inputs.numpy()), [probe], execution=execution)
    return list(SEEN)


class Tally(Probe):
    """Counts samples and adds up outputs.

    weight: of each output.
    """

    weight: float = 1.0

    count = Sum()
    total = Sum()

    def observe(self, seen: Observation) -> None:
        self.count = self.count + len(seen.ids)
        self.total = self.total + self.weight * seen.outputs.double().sum(0)

    def finish(self) -> Finding:
        return self.finding(
            summary={"count": Estimate(int(self.count))}, arrays={"total": np.atleast_1d(self.total.numpy())}
        )


class TrainTally(Tally):
    """Counts training samples.

    weight: of each output.
    """

    split = "train"


class After(Tally):
    """Counts samples, given what came before.

    weight: of each output.
    before: the Finding of `TrainTally`.
    """

    before: Finding

    @classmethod
    def upstream(cls, options):
        from weakspot.core.step import Step

        return {"before": Step.of(TrainTally, weight=options["weight"])}


class Keep(Probe):
    """Keeps the outputs of every look as rows."""

    looks: tuple[tuple[Look, int], ...] = ((Original(), 1),)

    kept = Rows()

    @property
    def needs(self) -> Needs:
        return Needs(dict(self.looks))

    def observe(self, seen: Observation) -> Iterable[str] | None:
        self.kept.append(seen.ids, look=np.full(len(seen.ids), seen.number), output=seen.outputs)
        return None

    def finish(self) -> Finding:
        rows = self.kept.read()
        return self.finding(table=None, arrays={"look": np.array(rows["look"]), "output": np.array(rows["output"])})


class Log(list):
    """What happened to a model so far: no part of what it is."""

    def __canonical__(self) -> str:
        return "log"


class Counting(nn.Module):
    """A linear net that notes the size of every batch it is given."""

    def __init__(self, inputs: int = 3, outputs: int = 2):
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)
        self.batches: list[int] = Log()
        with torch.no_grad():
            self.layer.weight.copy_(torch.arange(inputs * outputs).reshape(outputs, inputs) % 3)
            self.layer.bias.zero_()

    def forward(self, inputs: Tensor) -> Tensor:
        self.batches.append(len(inputs))
        return self.layer(inputs)


def whole_numbers(*shape: int, seed: int = 0) -> Tensor:
    """Small whole numbers, so that sums are exact."""
    return torch.from_numpy(np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32))


def numbered(count: int, width: int = 3, *, targets: bool = True, prefix: str = "s") -> ArraySource:
    """`count` samples with known ids."""
    ids: Sequence[str] = [f"{prefix}{i}" for i in range(count)]
    return ArraySource(whole_numbers(count, width), np.arange(count) % 2 if targets else None, ids=ids)


def everything(model: nn.Module) -> dict[str, object]:
    """All of a model that must come back as it was: values, flags, hooks, gradients."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    state: dict[str, object] = {name: (t.detach().numpy().tobytes(), t.dtype, t.shape) for name, t in tensors.items()}
    state |= {f"{name} grad": (t.requires_grad, t.grad) for name, t in tensors.items()}
    for name, module in model.named_modules():
        hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
        state[f"module {name}"] = (module.training, *map(len, hooks), sorted(module._buffers), sorted(vars(module)))
    return state
