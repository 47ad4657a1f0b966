"""One batch through a model: what comes out, and whether its inputs look like those it was trained on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from weakspot.core.errors import SubjectError
from weakspot.core.layers import Layer
from weakspot.core.observation import Batch
from weakspot.core.subject import Subject
from weakspot.core.tasks import right
from weakspot.models.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Normalise

CAFFE_MEAN = (103.939, 116.779, 123.68)
"""Of ImageNet's blue, green and red from 0 to 255, as older networks have it."""
_CLEARLY = 3.0
"""By how many standard deviations of the difference another normalisation must win."""


@dataclass(frozen=True)
class Trial:
    """What one batch shows. `right`: which samples are answered rightly; None where that is not known."""

    samples: int
    inputs: tuple[int, ...]
    input_range: tuple[float, float]
    outputs: tuple[int, ...]
    output_range: tuple[float, float]
    like_probabilities: bool
    layers: tuple[Layer, ...]
    right: Tensor | None

    @property
    def accuracy(self) -> float | None:
        """Share of the samples that are answered rightly."""
        return None if self.right is None else float(self.right.float().mean())

    @property
    def penultimate(self) -> Layer | None:
        """The last convolution or linear layer, whose input is meant by "penultimate"."""
        return next((layer for layer in reversed(self.layers) if layer.weighted), None)


def try_out(subject: Subject, batch: Batch) -> Trial:
    """Run one batch and look at what comes out."""
    layers = subject.layers(batch.inputs[:1])
    with subject.borrowed() as forward, torch.no_grad():
        outputs = forward(batch.inputs.to(subject.device)).float().cpu()
    subject.class_count(outputs)  # refuses outputs that cannot be what was said of them
    return Trial(
        samples=len(batch),
        inputs=tuple(batch.inputs.shape[1:]),
        input_range=_range(batch.inputs),
        outputs=tuple(outputs.shape[1:]),
        output_range=_range(outputs),
        like_probabilities=look_like_probabilities(outputs, one_of_them=subject.task != "multilabel"),
        layers=layers,
        right=_right(subject, outputs, batch.targets),
    )


def _range(values: Tensor) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _right(subject: Subject, outputs: Tensor, targets: Tensor | None) -> Tensor | None:
    known = subject.task == "classification" or (subject.task == "multilabel" and subject.scores is not None)
    return right(outputs, targets, subject.task, subject.scores) if known and targets is not None else None


def look_like_probabilities(outputs: Tensor, *, one_of_them: bool) -> bool:
    """Whether outputs lie in [0, 1] and, where one class is right, sum to 1 per sample: a reason to ask, no answer.

    >>> look_like_probabilities(torch.tensor([[0.2, 0.8]]), one_of_them=True)
    True
    """
    inside = bool((outputs >= 0).all() and (outputs <= 1).all())
    return inside and (not one_of_them or outputs.ndim < 2 or bool((outputs.sum(1) - 1).abs().max() < 1e-3))


@dataclass(frozen=True)
class Alternative:
    """Another normalisation, how many samples are answered rightly with it, and whether that is clearly better."""

    name: str
    normalise: Normalise
    accuracy: float


def better_normalisations(subject_with: Callable[[Any], Subject], batch: Batch, now: Tensor) -> list[Alternative]:
    """Usual normalisations under which far more samples are answered rightly than now, the plainest of the best first.

    subject_with: the subject with another pre-processing in the place of its own. now: which samples are right so far.
    Clearly better: of the samples that only one of the two answers rightly, it wins by 3 √n or more.
    """
    found: list[tuple[Alternative, Tensor]] = []
    for name, normalise in usual_normalisations(batch.inputs):
        try:
            trial = try_out(subject_with(normalise), batch)
        except (SubjectError, RuntimeError, ValueError):  # a shape the model cannot take is no alternative
            continue
        if trial.right is not None and _clearly_better(trial.right, now):
            found.append((Alternative(name, normalise, float(trial.right.float().mean())), trial.right))
    beaten = [any(_clearly_better(other, answers) for _, other in found) for _, answers in found]
    return [
        alternative for (alternative, _), worse in sorted(zip(found, beaten, strict=True), key=lambda item: item[1])
    ]


def _clearly_better(other: Tensor, now: Tensor) -> bool:
    wins, losses = int((other & ~now).sum()), int((now & ~other).sum())
    return wins - losses > _CLEARLY * sqrt(max(wins + losses, 1))


def usual_normalisations(inputs: Tensor) -> Iterator[tuple[str, Normalise]]:
    """What models are usually given in the place of inputs like these, with a name for each."""
    to_one = 1 / 255 if float(inputs.max()) > 2 else 1.0
    yield "as they are in the data", Normalise()
    yield "from 0 to 1", Normalise(to_one)
    yield "from 0 to 255", Normalise(to_one * 255)
    yield "from −1 to 1", Normalise(to_one, (0.5,), (0.5,))
    others = [dim for dim in range(inputs.ndim) if dim != 1]
    if inputs.ndim > 2 and len(inputs) > 1:
        mean, std = (inputs.mean(others) * to_one, inputs.std(others).clamp_min(1e-6) * to_one)
        yield "with the data's own mean and standard deviation", Normalise(to_one, _rounded(mean), _rounded(std))
    if inputs.ndim == 4 and inputs.shape[1] == 3:
        yield "with ImageNet's mean and standard deviation", Normalise(to_one, IMAGENET_MEAN, IMAGENET_STD)
        yield "from 0 to 1, blue first", Normalise(to_one, bgr=True)
        yield "from 0 to 255, blue first", Normalise(to_one * 255, bgr=True)
        yield "from 0 to 255, blue first, less ImageNet's mean", Normalise(to_one * 255, CAFFE_MEAN, bgr=True)
        swapped = IMAGENET_MEAN[::-1], IMAGENET_STD[::-1]
        yield "with ImageNet's mean and standard deviation, blue first", Normalise(to_one, *swapped, bgr=True)


def _rounded(values: Tensor) -> tuple[float, ...]:
    return tuple(float(f"{float(value):.4g}") for value in values)
