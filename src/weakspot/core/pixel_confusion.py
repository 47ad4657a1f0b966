"""Segmentations against their targets: which class is predicted where, counted per sample."""

import torch
from torch import Tensor

from weakspot.core.errors import DataError


def pixel_confusion(predicted: Tensor, targets: Tensor, classes: int) -> Tensor:
    """How many positions of each target class are predicted as each class: int64 (samples, targets, predictions).

    predicted, targets: class numbers, (samples, positions …).

    >>> pixel_confusion(torch.tensor([[0, 1, 1]]), torch.tensor([[0, 0, 1]]), 2).tolist()
    [[[1, 1], [0, 1]]]
    """
    if predicted.shape != targets.shape:
        raise DataError(
            f"the model segments {tuple(predicted.shape[1:])} positions per sample, and the targets have "
            f"{tuple(targets.shape[1:])}: expected a class for each position"
        )
    true, answered = (values.reshape(len(values), -1).long() for values in (targets, predicted))
    if len(true) and not (true.min() >= 0 and true.max() < classes):
        raise DataError(
            f"the targets hold classes from {int(true.min())} to {int(true.max())}, and the model gives {classes}: "
            "number them from 0"
        )
    cells = classes * classes
    codes = true * classes + answered + cells * torch.arange(len(true), device=true.device)[:, None]
    counts = torch.bincount(codes.flatten(), minlength=cells * len(true))
    return counts.reshape(len(true), classes, classes)


def class_ious(confusion: Tensor) -> Tensor:
    """Intersection over union of each class, float64; NaN where it is nowhere (Everingham 2010, `everingham2010`).

    confusion: (…, targets, predictions).

    >>> class_ious(torch.tensor([[2, 1, 0], [1, 4, 0], [0, 0, 0]])).tolist()
    [0.5, 0.6666666666666666, nan]
    """
    both = confusion.diagonal(dim1=-2, dim2=-1)
    either = confusion.sum(-1) + confusion.sum(-2) - both
    return both.double() / torch.where(either > 0, either, torch.nan)


def mean_ious(confusion: Tensor) -> Tensor:
    """The mean over the classes that occur, of each sample; added up in their order, whatever the batch."""
    overlaps = class_ious(confusion)
    occur = (~overlaps.isnan()).sum(-1)
    return torch.stack(overlaps.nan_to_num(0.0).unbind(-1)).cumsum(0)[-1] / occur


def pixel_accuracies(confusion: Tensor) -> Tensor:
    """The share of the positions that are predicted as their class, of each sample, float64."""
    return confusion.diagonal(dim1=-2, dim2=-1).sum(-1).double() / confusion.sum((-2, -1)).clamp_min(1)
