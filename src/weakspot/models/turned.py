"""Whether a network for volumes does better with their axes the other way round, as x, y, z instead of z, y, x."""

from dataclasses import dataclass

import torch
from torch import Tensor

from weakspot.core.observation import Batch
from weakspot.core.subject import Subject


@dataclass(frozen=True)
class TurnedAxes:
    """Dice of all classes but the first together, on the same volumes with the axes as they are and turned."""

    dice: float
    dice_turned: float


def turned_axes(subject: Subject, batch: Batch) -> TurnedAxes | None:
    """Segment volumes as they are and with the axes reversed; None where there are no volumes with labelled voxels."""
    targets = batch.targets
    if subject.task != "segmentation" or batch.inputs.ndim != 5 or targets is None or not bool((targets > 0).any()):
        return None
    with subject.borrowed() as forward, torch.no_grad():
        outputs = forward(batch.inputs.to(subject.device)).cpu()
        try:
            other = _reversed(forward(_reversed(batch.inputs).to(subject.device))).cpu()
        except (RuntimeError, ValueError):  # a network that takes one shape alone
            return None
    truth = targets.reshape(len(targets), *targets.shape[-3:]) > 0
    return TurnedAxes(_dice(outputs, truth), _dice(other, truth))


def _reversed(values: Tensor) -> Tensor:
    return values.permute(0, 1, 4, 3, 2).contiguous()


def _dice(outputs: Tensor, truth: Tensor) -> float:
    found = outputs.argmax(1) > 0
    return 2 * int((found & truth).sum()) / max(1, int(found.sum()) + int(truth.sum()))
