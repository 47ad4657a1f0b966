"""Further training from the current weights. The given model is not touched: a copy is trained."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.observation import Batch
from weakspot.core.progress import Progress, Silent
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.core.tasks import Task

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Recipe:
    """Small steps from the current weights, as HUDD retrains (Fahmy et al. 2021): stochastic gradient descent.

    epochs: times over all data. learning_rate, momentum, weight_decay: of the optimiser. batch_size: samples per step.
    seed: of the order of the samples and of dropout.
    """

    epochs: int = 10
    learning_rate: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 5e-4
    batch_size: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1:
            raise ConfigError(f"expected epochs and batch_size ≥ 1, got {self.epochs} and {self.batch_size}")


def retrained(
    subject: Subject,
    sources: Sequence[Source],
    *,
    recipe: Recipe | None = None,
    loss: Loss | None = None,
    progress: Progress | None = None,
) -> Subject:
    """The subject with a copy of its model, trained further on all the sources together.

    `loss` takes outputs and targets; by default cross-entropy for classes, binary cross-entropy for labels, squared
    error for numbers, each on logits where there are any.
    """
    if not isinstance(subject.model, nn.Module):
        raise SubjectError("a black box cannot be trained: give the nn.Module itself")
    how, told = recipe or Recipe(), progress or Silent()
    measured = loss or default_loss(subject)
    twin = subject.with_model(copy.deepcopy(subject.model).to(subject.device))
    total = sum(len(source.ids) for source in sources)
    told.begin("retraining", total=how.epochs * total)
    try:
        with torch.random.fork_rng(), torch.enable_grad():
            torch.manual_seed(how.seed)
            _train(twin, sources, how, measured, told)
    finally:
        told.end()
    return twin


def _train(twin: Subject, sources: Sequence[Source], recipe: Recipe, loss: Loss, progress: Progress) -> None:
    model = twin.model
    assert isinstance(model, nn.Module)
    optimiser = torch.optim.SGD(
        model.parameters(), recipe.learning_rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay
    )
    modes = [(module, module.training) for module in model.modules()]
    model.train()
    rng = np.random.default_rng(recipe.seed)
    for _ in range(recipe.epochs):
        for batch in shuffled(sources, recipe.batch_size, rng):
            on_device = batch.to(twin.device)
            optimiser.zero_grad()
            loss(twin.forward(on_device.inputs), on_device.known_targets).backward()
            optimiser.step()
            progress.advance(len(batch))
    optimiser.zero_grad(set_to_none=True)
    for module, mode in modes:
        module.training = mode


def shuffled(sources: Sequence[Source], batch_size: int, rng: np.random.Generator) -> Iterator[Batch]:
    """All samples of all sources once, in random order; a batch may hold samples of several."""
    places = np.concatenate([np.full(len(source.ids), i) for i, source in enumerate(sources)])
    within = np.concatenate([np.arange(len(source.ids)) for source in sources])
    order = rng.permutation(len(places))
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        parts = [sources[i].read(within[chosen[places[chosen] == i]]) for i in np.unique(places[chosen])]
        yield Batch(
            ids=tuple(name for part in parts for name in part.ids),
            positions=np.concatenate([part.positions for part in parts]),
            inputs=torch.cat([part.inputs for part in parts]),
            targets=torch.cat([part.known_targets for part in parts]),
        )


def default_loss(subject: Subject) -> Loss:
    """The usual loss of a task, on logits where the outputs are classes or labels."""
    losses: dict[Task, Loss] = {
        "classification": F.cross_entropy,
        "segmentation": F.cross_entropy,
        "multilabel": lambda outputs, targets: F.binary_cross_entropy_with_logits(outputs, targets.to(outputs.dtype)),
        "regression": lambda outputs, targets: F.mse_loss(outputs, targets.to(outputs.dtype)),
        "keypoints": lambda outputs, targets: F.mse_loss(outputs, targets.to(outputs.dtype)),
    }
    if subject.task in ("classification", "segmentation", "multilabel") and subject.scores != "logits":
        raise SubjectError(
            f"the usual loss of a {subject.task} model works on logits: give the subject scores='logits', or a loss= "
            "of your own"
        )
    return losses[subject.task]
