"""What the outputs of a subject mean: plain functions from outputs to predictions, probabilities and errors."""

from typing import Literal, get_args

import torch
from torch import Tensor

from weakspot.core.errors import DataError, SubjectError

Task = Literal["classification", "multilabel", "regression", "keypoints", "segmentation"]
Scores = Literal["logits", "probabilities"]

TASKS: tuple[Task, ...] = get_args(Task)


def predicted(outputs: Tensor, task: Task, scores: Scores | None = None) -> Tensor:
    """The prediction: class per sample (or per position), labels present, or the numbers themselves.

    A label is present where its probability is above 1/2, so for multi-label outputs `scores` must be known.
    """
    if task in ("classification", "segmentation"):
        return outputs.argmax(1)
    if task == "multilabel":
        return outputs > (0.5 if _said(scores, task) == "probabilities" else 0.0)
    return outputs


def correct(outputs: Tensor, targets: Tensor, task: Task, scores: Scores | None = None) -> Tensor:
    """Which samples are predicted correctly, boolean: the class, or every label."""
    if task == "classification":
        return predicted(outputs, task) == targets
    if task == "multilabel":
        return (predicted(outputs, task, scores) == targets.bool()).all(1)
    raise SubjectError(
        f"a prediction of {task} is neither correct nor incorrect: expected the task classification or multilabel"
    )


def output_errors(outputs: Tensor, targets: Tensor, task: Task) -> Tensor:
    """How far each number or keypoint is off, float64 (samples, outputs or keypoints).

    |ŷ − y| for numbers; for keypoints, whose coordinates follow each other as x₀, y₀, x₁, y₁ …, ‖(x̂, ŷ) − (x, y)‖.

    >>> import torch
    >>> output_errors(torch.tensor([[0.0, 0.0, 3.0, 4.0]]), torch.zeros(1, 4), "keypoints").tolist()
    [[0.0, 5.0]]
    """
    predicted, true = (values.double().reshape(len(values), -1) for values in (outputs, targets))
    if predicted.shape != true.shape:
        raise DataError(
            f"the model gives {predicted.shape[1]} numbers per sample, and the targets have {true.shape[1]}: expected "
            "as many of both"
        )
    if task != "keypoints":
        return (predicted - true).abs()
    if predicted.shape[1] % 2:
        raise DataError(f"keypoints are pairs of x and y, and the model gives {predicted.shape[1]} numbers per sample")
    return (predicted - true).reshape(len(predicted), -1, 2).square().sum(2).sqrt()


def probabilities(outputs: Tensor, task: Task, scores: Scores | None) -> Tensor:
    """Probabilities of the classes (dimension 1) or of each label."""
    if task not in ("classification", "segmentation", "multilabel"):
        raise SubjectError(f"a {task} subject has no class probabilities")
    if _said(scores, task) == "probabilities":
        return outputs
    return torch.sigmoid(outputs) if task == "multilabel" else torch.softmax(outputs, 1)


def _said(scores: Scores | None, task: Task) -> Scores:
    if scores is None:
        raise SubjectError(
            f"this needs to know what the {task} outputs are: give the subject scores='logits' or "
            "scores='probabilities' (their values do not show which)"
        )
    return scores
