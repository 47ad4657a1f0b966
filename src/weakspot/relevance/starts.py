"""Where relevance starts: which outputs are to be explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from weakspot.core.errors import ConfigError, DataError, SubjectError


class Start(Protocol):
    """Chooses outputs of each sample."""

    def weights(self, outputs: Tensor) -> Tensor:
        """How much each output counts, in the shape of the outputs.

        What is explained is Σ weights ⊙ outputs; its relevance starts as weights ⊙ outputs.
        """


@dataclass(frozen=True)
class Winner:
    """The winning logit of each sample; for outputs (N, classes)."""

    def weights(self, outputs: Tensor) -> Tensor:
        _expect_rows(outputs, "Winner")
        return _one_hot(outputs.argmax(1), outputs)


@dataclass(frozen=True)
class ForClass:
    """The logit of a given class: one for all samples, or one per sample; for outputs (N, classes)."""

    index: int | Tensor

    def weights(self, outputs: Tensor) -> Tensor:
        _expect_rows(outputs, "ForClass")
        return _one_hot(_indices(self.index, outputs), outputs)


@dataclass(frozen=True)
class ClassContrast:
    """Why one class rather than another: logit of `index` − logit of `other`."""

    index: int | Tensor
    other: int | Tensor

    def weights(self, outputs: Tensor) -> Tensor:
        return ForClass(self.index).weights(outputs) - ForClass(self.other).weights(outputs)


@dataclass(frozen=True)
class Output:
    """An output of a regression: all of them, or those at `index`; for outputs (N,) or (N, outputs)."""

    index: int | None = None

    def weights(self, outputs: Tensor) -> Tensor:
        if self.index is None or outputs.dim() == 1:
            return torch.ones_like(outputs)
        return ForClass(self.index).weights(outputs)


@dataclass(frozen=True)
class Worst:
    """Of several regression outputs, the one furthest from its target; for outputs and targets (N, outputs, ...)."""

    targets: Tensor

    def weights(self, outputs: Tensor) -> Tensor:
        if self.targets.shape != outputs.shape:
            raise DataError(
                f"Worst needs targets of the outputs' shape {tuple(outputs.shape)}, got {tuple(self.targets.shape)}; "
                "give the targets of this very batch"
            )
        errors = (outputs - self.targets.to(outputs)).abs().flatten(1)
        return _one_hot(errors.argmax(1), errors).view_as(outputs)


@dataclass(frozen=True)
class Region:
    """The summed logits of a class over a region; for outputs (N, classes, positions ...).

    mask: marks the region, shape (N, positions ...); by default it is where the class wins.
    """

    index: int
    mask: Tensor | None = None

    def weights(self, outputs: Tensor) -> Tensor:
        if outputs.dim() < 3:
            raise SubjectError(
                f"Region needs outputs (N, classes, positions ...), got shape {tuple(outputs.shape)}; "
                "use ForClass for a classifier"
            )
        index = _indices(self.index, outputs)[0]
        mask = outputs.argmax(1) == index if self.mask is None else self.mask.to(outputs.device)
        if mask.shape != outputs[:, 0].shape:
            raise DataError(
                f"Region needs a mask of shape {tuple(outputs[:, 0].shape)}, got {tuple(mask.shape)}; "
                "one value per sample and position"
            )
        weights = torch.zeros_like(outputs)
        weights[:, index] = mask.to(outputs)
        return weights


@dataclass(frozen=True)
class Winners:
    """The winning logit at every position; for outputs (N, classes, positions ...)."""

    def weights(self, outputs: Tensor) -> Tensor:
        if outputs.dim() < 3:
            raise SubjectError(
                f"Winners needs outputs (N, classes, positions ...), got shape {tuple(outputs.shape)}; use Winner for "
                "a classifier"
            )
        return torch.zeros_like(outputs).scatter_(1, outputs.argmax(1, keepdim=True), 1.0)


def _one_hot(indices: Tensor, outputs: Tensor) -> Tensor:
    return torch.zeros_like(outputs).scatter_(1, indices[:, None], 1.0)


def _indices(index: int | Tensor, outputs: Tensor) -> Tensor:
    samples, classes = outputs.shape[:2]
    indices = torch.as_tensor(index, device=outputs.device, dtype=torch.long)
    if indices.dim() > 0 and indices.shape != (samples,):
        raise DataError(f"expected one class per sample, shape ({samples},), got shape {tuple(indices.shape)}")
    if bool((indices < 0).any() | (indices >= classes).any()):
        raise ConfigError(f"classes must lie in 0 … {classes - 1}, got {index}; the model has {classes} outputs")
    return indices.expand(samples)


def _expect_rows(outputs: Tensor, start: str) -> None:
    if outputs.dim() != 2:
        raise SubjectError(
            f"{start} needs outputs (N, classes), got shape {tuple(outputs.shape)}; use Output for a regression with "
            "one output, Region for a segmentation"
        )
