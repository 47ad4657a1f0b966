"""Options that run a model faster and change its numbers a little: only on request, and measured."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.tasks import Scores, Task, predicted

Precision = Literal["float32", "bf16"]
_MEMORY_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


@dataclass(frozen=True)
class InferenceOptions:
    """How a model is run; without anything, as it is."""

    precision: Precision = "float32"
    compile: bool = False
    channels_last: bool = False

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "bf16"):
            raise ConfigError(f"precision is {self.precision!r}: choose 'float32' or 'bf16'")

    def on(self, device: torch.device) -> AbstractContextManager[Any]:
        """The context to run in."""
        return torch.autocast(device.type, torch.bfloat16) if self.precision == "bf16" else nullcontext()

    def laid_out(self, inputs: Tensor) -> Tensor:
        """Inputs with the channels innermost, where that is wanted and they are images or volumes."""
        form = _MEMORY_FORMATS.get(inputs.ndim) if self.channels_last else None
        return inputs if form is None else inputs.contiguous(memory_format=form)


def disagreement(
    batches: Iterator[Tensor],
    plain: Callable[[Tensor], Tensor],
    quick: Callable[[Tensor], Tensor],
    task: Task,
    scores: Scores | None,
) -> dict[str, float]:
    """How far two sets of outputs lie apart: largest and mean absolute difference, and the share of other predictions.

    An answer is the class or the set of labels; for numbers and keypoints there is no share.
    """
    samples, numbers, changed, total, largest = 0, 0, 0, 0.0, 0.0
    for inputs in batches:
        exact, fast = plain(inputs), quick(inputs)
        apart = (exact.double() - fast.double()).abs()
        samples, numbers = samples + len(inputs), numbers + apart.numel()
        total, largest = total + float(apart.sum()), max(largest, float(apart.max()))
        if task in ("classification", "multilabel", "segmentation"):
            other = predicted(exact, task, scores) != predicted(fast, task, scores)
            changed += int(other.flatten(1).any(1).sum() if other.ndim > 1 else other.sum())
    measured = {"samples": samples, "largest_difference": largest, "mean_difference": total / numbers}
    return {**measured, "answers_changed": changed / samples} if task not in ("regression", "keypoints") else measured
