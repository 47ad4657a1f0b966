"""The losses that gradient attacks increase, one value per sample, and their gradients at the inputs."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from weakspot.core.errors import DataError, SubjectError
from weakspot.core.look import Forward
from weakspot.core.tasks import Scores, Task

Loss = Callable[[Tensor, Tensor], Tensor]
"""From outputs and targets to one number per sample, shape (samples,)."""


def cross_entropy(logits: Tensor, classes: Tensor) -> Tensor:
    """−log softmax(z)_y; the mean over positions where there are several."""
    return _mean(F.cross_entropy(logits, classes, reduction="none"))


def binary_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """−Σ y log σ(z) + (1 − y) log(1 − σ(z)), as the mean over the labels."""
    return _mean(F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none"))


def squared_error(numbers: Tensor, truth: Tensor) -> Tensor:
    """(ŷ − y)², as the mean over the outputs."""
    if numbers.shape != truth.shape:
        raise DataError(
            f"the model gives numbers of shape {tuple(numbers.shape)} and the targets have {tuple(truth.shape)}: they "
            "must agree; give targets of that shape"
        )
    return _mean((numbers - truth.to(numbers.dtype)) ** 2)


def loss_of(task: Task) -> Loss:
    """The usual loss of a task, on logits where the outputs are classes or labels."""
    if task in ("classification", "segmentation"):
        return cross_entropy
    return binary_cross_entropy if task == "multilabel" else squared_error


def logits_of(forward: Forward, task: Task, scores: Scores | None) -> Forward:
    """A forward that gives logits: the outputs themselves, or log p (binary: log p/(1 − p)) of probabilities.

    log softmax(z) is z less one number per sample, so differences of logits, and all that attacks make of them, are
    the same. But a probability that rounds to 1 has lost its slope, which no attack can find again.
    """
    if task in ("regression", "keypoints"):
        return forward
    if scores is None:
        raise SubjectError(
            f"an attack by gradients needs to know what the {task} outputs are: give the subject scores='logits' or "
            "scores='probabilities' (their values do not show which)"
        )
    if scores == "logits":
        return forward
    return (lambda x: forward(x).logit(eps=1e-7)) if task == "multilabel" else lambda x: log_probabilities(forward(x))


def log_probabilities(probabilities: Tensor) -> Tensor:
    """log p, with the smallest normal number in place of 0."""
    return probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()


def slope(forward: Forward, inputs: Tensor, answers: Tensor, loss: Loss) -> tuple[Tensor, Tensor]:
    """∂ loss / ∂ inputs of each sample, in the shape of the inputs, and the outputs. The parameters get no gradient."""
    with torch.enable_grad():
        leaf = inputs.detach().requires_grad_()
        outputs = forward(leaf)
        return input_gradient(loss(outputs, answers).sum(), leaf), outputs.detach()


def input_gradient(total: Tensor, leaf: Tensor, *, again: bool = False) -> Tensor:
    """∂ total / ∂ leaf; `again` where the same pass is to be gone back once more."""
    if total.grad_fn is None:
        raise SubjectError(
            "the outputs do not depend on the inputs through gradients: the model must not run under torch.no_grad, "
            "detach its outputs, or compute them outside torch"
        )
    (gradient,) = torch.autograd.grad(total, leaf, retain_graph=again)
    return gradient


def _mean(each: Tensor) -> Tensor:
    return each.flatten(1).mean(1) if each.ndim > 1 else each
