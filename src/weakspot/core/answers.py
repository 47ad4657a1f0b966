"""The digest of the model's outputs for a few samples, and whether it is the same twice.

A fingerprint cannot see everything that answers depend on; the answers themselves show most of the rest.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weakspot.core.digest import canonical
from weakspot.core.errors import DataError, SubjectError
from weakspot.core.layers import Layer
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.core.tensors import tensor_digest

_SAMPLES, _VALUES = 4, 1 << 20
"""Samples that are asked about, fewer where they have more values than this together."""


@dataclass(frozen=True)
class OutputCheck:
    """To so many samples: the digest of the outputs; None for a model that answers differently each time.

    apart: how far two answers to the same input lie apart at most.
    """

    samples: int
    digest: str | None
    apart: float = 0.0

    @property
    def trouble(self) -> str | None:
        """What to tell the user of a model that answers differently each time."""
        if self.digest is not None:
            return None
        return (
            f"the model answers differently each time: the same {self.samples} samples twice, and outputs lie up to "
            f"{self.apart:.3g} apart; results cannot be repeated, and whether the model changed since cannot be seen "
            "from its answers"
        )

    def record(self) -> dict[str, Any]:
        """As JSON."""
        result = {"digest": self.digest} if self.digest is not None else {"largest_difference": canonical(self.apart)}
        return {"samples": self.samples, **result}


def first_inputs(source: Source, most: int) -> Tensor:
    """A few samples, no more than `most`: as few as one where they are large."""
    one = source.read(np.arange(1)).inputs
    few = min(_SAMPLES, most, len(source.ids), max(1, _VALUES // max(1, one.numel())))
    if few == 1:
        return one
    more = source.read(np.arange(1, few)).inputs
    if more.shape[1:] != one.shape[1:]:
        raise DataError(
            f"the first sample has shape {tuple(one.shape[1:])}, the next {tuple(more.shape[1:])}: samples of "
            "different shapes cannot share a batch; use batches of 1"
        )
    return torch.cat([one, more])


@dataclass(frozen=True)
class FirstSamples:
    """What the first samples show: inputs as they are in the data, outputs, the layers that run, and the answers."""

    inputs: Tensor
    outputs: Tensor
    layers: tuple[Layer, ...]
    answers: OutputCheck


def try_model(subject: Subject, source: Source, most: int | None, before: OutputCheck | None = None) -> FirstSamples:
    """Run the first samples, no more than `most`, and see whether the model's outputs are the same each time.

    before: what an earlier call found out about that; it saves one pass.
    """
    inputs = first_inputs(source, most or _SAMPLES)
    try:
        return _first_samples(subject, inputs, before)
    except torch.OutOfMemoryError as error:
        reason = error
    try:  # out here, where the error no longer holds on to the memory
        return _first_samples(subject, inputs[:1], before)
    except torch.OutOfMemoryError:
        raise too_large(subject, reason) from reason


def _first_samples(subject: Subject, inputs: Tensor, before: OutputCheck | None) -> FirstSamples:
    outputs, layers = subject.tried(inputs)
    checked = before or answers(subject, inputs, before=tensor_digest(outputs))
    return FirstSamples(inputs, outputs, layers, checked)


def too_large(subject: Subject, reason: Exception) -> SubjectError:
    """What to tell the user where not even one sample can be run."""
    return SubjectError(
        f"one sample alone does not fit into the memory of {subject.device}: {reason}; ask for fewer layers at once, "
        "give smaller inputs, or use device='cpu'"
    )


def answers(subject: Subject, inputs: Tensor, *, before: str) -> OutputCheck:
    """Run the inputs, once where that gives the same as `before`, else twice: a watched model may take another way."""
    outputs = plain(subject, inputs)
    first = tensor_digest(outputs)
    if first != before:
        again = plain(subject, inputs)
        if tensor_digest(again) != first:
            return OutputCheck(len(inputs), None, _apart(outputs, again))
    return OutputCheck(len(inputs), first)


def plain(subject: Subject, inputs: Tensor) -> Tensor:
    """The model's outputs for inputs as they are in the data, without anything that makes it faster."""
    with subject.borrowed() as forward, torch.no_grad(), _same_kernels():
        return forward(inputs.to(subject.device))


def _apart(one: Tensor, other: Tensor) -> float:
    """How far two outputs lie apart; infinitely where they have different shapes."""
    if one.shape != other.shape:
        return float("inf")
    return float((one.double() - other.double()).abs().nan_to_num(nan=float("inf")).max()) if one.numel() else 0.0


@contextmanager
def _same_kernels() -> Iterator[None]:
    """Do not let a GPU choose its kernels by their speed, which may differ from process to process."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def settings(device: torch.device, threads: int) -> dict[str, Any]:
    """What must agree for equal models to answer alike, to the last bit."""
    return {
        "device": _processor() if device.type == "cpu" else _gpu(device),
        "threads": threads,
        "dtype": str(torch.get_default_dtype()),
        "matmul": torch.get_float32_matmul_precision(),
        "torch": torch.__version__,
    }


def _gpu(device: torch.device) -> str:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return f"{name}, cudnn {torch.backends.cudnn.version()}"


@cache
def _processor() -> str:
    """What kind of processor this is, and which of its instructions torch uses."""
    name = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"
