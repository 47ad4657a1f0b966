"""Some samples through a model: what comes out, and whether inputs and classes look like those it was trained on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from weakspot.core.errors import SubjectError
from weakspot.core.layers import Layer
from weakspot.core.observation import Batch
from weakspot.core.subject import Subject
from weakspot.core.tasks import correct
from weakspot.models.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Normalise

CAFFE_MEAN = (103.939, 116.779, 123.68)
"""Of ImageNet's blue, green and red from 0 to 255, as older networks have it."""
_CLEARLY = 3.0
"""By how many standard deviations of the difference another normalisation, or order of the classes, must win."""
_AT_ONCE = 64


@dataclass(frozen=True)
class ModelTrial:
    """What some samples show.

    correct: which of them are predicted correctly; None where that is not known.
    predicted, targets: the class of each, of a classification with known targets.
    """

    samples: int
    inputs: tuple[int, ...]
    input_range: tuple[float, float]
    outputs: tuple[int, ...]
    output_range: tuple[float, float]
    like_probabilities: bool
    layers: tuple[Layer, ...]
    correct: Tensor | None
    predicted: Tensor | None = None
    targets: Tensor | None = None

    @property
    def accuracy(self) -> float | None:
        """Share of the samples that are predicted correctly."""
        return None if self.correct is None else float(self.correct.float().mean())

    @property
    def penultimate(self) -> Layer | None:
        """The last convolution or linear layer, whose input is meant by "penultimate"."""
        return next((layer for layer in reversed(self.layers) if layer.weighted), None)


def try_out(subject: Subject, batch: Batch) -> ModelTrial:
    """Run some samples and look at what comes out."""
    layers = subject.layers(batch.inputs[:1])
    outputs = _outputs(subject, batch.inputs)
    subject.class_count(outputs)  # refuses outputs that cannot be what was said of them
    answered = subject.task == "classification" and batch.targets is not None
    return ModelTrial(
        samples=len(batch),
        inputs=tuple(batch.inputs.shape[1:]),
        input_range=_range(batch.inputs),
        outputs=tuple(outputs.shape[1:]),
        output_range=_range(outputs),
        like_probabilities=look_like_probabilities(outputs, one_of_them=subject.task != "multilabel"),
        layers=layers,
        correct=_correct(subject, outputs, batch.targets),
        predicted=outputs.argmax(1) if answered else None,
        targets=batch.targets if answered else None,
    )


def _outputs(subject: Subject, inputs: Tensor) -> Tensor:
    with subject.borrowed() as forward, torch.no_grad():
        return torch.cat([forward(some.to(subject.device)).float().cpu() for some in inputs.split(_AT_ONCE)])


def _range(values: Tensor) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _correct(subject: Subject, outputs: Tensor, targets: Tensor | None) -> Tensor | None:
    has_classes = subject.task == "classification" or (subject.task == "multilabel" and subject.scores is not None)
    return correct(outputs, targets, subject.task, subject.scores) if has_classes and targets is not None else None


def look_like_probabilities(outputs: Tensor, *, one_of_them: bool) -> bool:
    """Whether outputs lie in [0, 1] and, where one class is correct, sum to 1 per sample: a reason to ask, no answer.

    >>> look_like_probabilities(torch.tensor([[0.2, 0.8]]), one_of_them=True)
    True
    """
    inside = bool((outputs >= 0).all() and (outputs <= 1).all())
    return inside and (not one_of_them or outputs.ndim < 2 or bool((outputs.sum(1) - 1).abs().max() < 1e-3))


@dataclass(frozen=True)
class Alternative:
    """Another normalisation, the accuracy with it, and whether that is clearly higher."""

    name: str
    normalise: Normalise
    accuracy: float
    better: bool


def compared_normalisations(subject_with: Callable[[Any], Subject], batch: Batch, now: Tensor) -> list[Alternative]:
    """All usual normalisations on the same samples, the best first, of equal ones the plainest.

    subject_with: gives the subject with another pre-processing.
    now: which samples are predicted correctly so far.

    Clearly better: of the samples that only one of the two predicts correctly, it wins by more than 3 √n.
    """
    alternatives = []
    for name, normalise in usual_normalisations(batch.inputs):
        try:
            with_it = _correct(subject := subject_with(normalise), _outputs(subject, batch.inputs), batch.targets)
        except (SubjectError, RuntimeError, ValueError):  # a shape the model cannot take is no alternative
            continue
        if with_it is not None:
            accuracy = float(with_it.float().mean())
            alternatives.append(Alternative(name, normalise, accuracy, _clearly_better(with_it, now)))
    return sorted(alternatives, key=lambda alternative: -alternative.accuracy)


def better_normalisations(subject_with: Callable[[Any], Subject], batch: Batch, now: Tensor) -> list[Alternative]:
    """Those of `compared_normalisations` with a clearly higher accuracy than now, the best first."""
    return [one for one in compared_normalisations(subject_with, batch, now) if one.better]


@dataclass(frozen=True)
class Reordered:
    """Another order of the classes, with a clearly higher accuracy.

    order: for each output the number of the class that it seems to be.
    accuracy: on samples by which the order was not found.
    """

    order: tuple[int, ...]
    accuracy: float


def better_order(trial: ModelTrial) -> Reordered | None:
    """The assignment of outputs to classes with the highest accuracy, where it is clearly better than none.

    Classes that are numbered otherwise in the data than in the outputs make every number wrong without an error. Which
    output is which class is found by the optimal assignment (Kuhn 1955) on one half of the samples and judged on the
    other, each in turn, so that a free choice among all orders wins nothing by chance.
    """
    if trial.predicted is None or trial.targets is None or trial.correct is None:
        return None
    classes = trial.outputs[0]
    if int(trial.targets.max()) >= classes:  # there are more classes than outputs: no order of them fits
        return None
    reordered = torch.zeros_like(trial.correct)
    half = _half_of_each(trial.targets)
    for part in (half, ~half):
        order = torch.as_tensor(_assigned(trial.predicted[~part], trial.targets[~part], classes))
        reordered[part] = order[trial.predicted[part]] == trial.targets[part]
    if not _clearly_better(reordered, trial.correct):
        return None
    return Reordered(tuple(_assigned(trial.predicted, trial.targets, classes)), float(reordered.float().mean()))


def _half_of_each(targets: Tensor) -> Tensor:
    """Every second sample of each class, so that both halves hold all classes in whatever order the data are."""
    same = targets[:, None] == targets
    return same.tril(-1).sum(1) % 2 == 0


def _assigned(predicted: Tensor, targets: Tensor, classes: int) -> list[int]:
    """For each output the class that it should be, so that most of these samples are correct; else its own number."""
    counts = np.zeros((classes, classes))
    np.add.at(counts, (predicted.numpy(), targets.numpy()), 1)
    counts += np.eye(classes) / (2 * max(len(targets), 1))  # of equally good ones, that which changes least
    _, order = linear_sum_assignment(counts, maximize=True)
    return [int(number) for number in order]


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
