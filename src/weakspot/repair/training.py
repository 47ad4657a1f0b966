"""Further training from the current weights. The given model is not touched: a copy is trained."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.core.observation import Batch
from weakspot.core.progress import Progress, Silent
from weakspot.core.source import Source, Subset, read_ahead
from weakspot.core.subject import Subject
from weakspot.core.tasks import Task
from weakspot.repair.checkpoints import Checkpoint, TrainingProgress

Loss = Callable[[Tensor, Tensor], Tensor]
_READERS = 2
_LOOKED_AT = 32


@dataclass(frozen=True)
class Recipe:
    """Small steps from the current weights, as HUDD retrains (Fahmy et al. 2021): stochastic gradient descent.

    epochs: times over all data, at most.
    learning_rate, momentum, weight_decay: of the optimiser.
    batch_size: samples per step.
    patience: with a validation part, end after so many epochs without a lower loss on it.
    seed: of the order of the samples and of dropout.
    """

    epochs: int = 10
    learning_rate: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 5e-4
    batch_size: int = 128
    patience: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1:
            raise ConfigError(f"expected epochs and batch_size ≥ 1, got {self.epochs} and {self.batch_size}")
        if self.patience < 1 or not self.learning_rate > 0:
            raise ConfigError(
                f"expected patience ≥ 1 and learning_rate > 0, got {self.patience} and {self.learning_rate}"
            )


class Batches:
    """All samples of all sources as pairs (inputs, targets), on the subject's device and pre-processed for its model.

    Each time it is iterated over the order is another one, drawn from the recipe's seed. `len` counts the batches.
    """

    def __init__(self, subject: Subject, sources: Sequence[Source], recipe: Recipe):
        self._subject, self._sources, self._recipe, self._epoch = subject, sources, recipe, 0

    def __len__(self) -> int:
        return len(_chunks(sum(len(source.ids) for source in self._sources), self._recipe.batch_size))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        rng = np.random.default_rng([self._recipe.seed, self._epoch])
        self._epoch += 1
        for batch in shuffled(self._sources, self._recipe.batch_size, rng, device=self._subject.device):
            yield self._subject.prepared(batch.inputs), batch.known_targets


TrainFunction = Callable[..., Any]
"""train(model, batches, *, validation, recipe): trains the model in place, or returns the trained one.

model: an nn.Module, a copy. batches: `Batches` to iterate over once per epoch. validation: `Batches`, or None. recipe:
a `Recipe` with what was asked for; a function of your own need not follow it.
"""


def retrained(
    subject: Subject,
    sources: Sequence[Source],
    *,
    recipe: Recipe | None = None,
    loss: Loss | None = None,
    validation: Source | None = None,
    train: TrainFunction | None = None,
    checkpoints: Path | None = None,
    progress: Progress | None = None,
) -> Subject:
    """The subject with a copy of its model, trained further on all the sources together.

    loss: of outputs and targets; by default cross-entropy for classes, binary cross-entropy for labels, squared error
        for numbers, each on logits where there are any.
    validation: samples that are not trained on; the loss on them says when to stop and whose weights to keep. Take some
        that the model was never trained on, see `held_out`: on memorised samples, the old weights look best.
    train: trains in place of all this, see `TrainFunction`.
    checkpoints: a folder; after an interruption the same call resumes after the last whole epoch and ends with the same
        weights. It does nothing for a `train` of your own.
    """
    if not isinstance(subject.model, nn.Module):
        raise SubjectError("a black box cannot be trained: give the nn.Module itself")
    how, reporter = recipe or Recipe(), progress or Silent()
    check_apart(sources, validation)
    twin = subject.with_model(copy.deepcopy(subject.model).to(subject.device))
    with torch.random.fork_rng(), torch.enable_grad():
        torch.manual_seed(how.seed)
        if train is not None:
            return _by_own_function(twin, train, sources, validation, how)
        measured = loss or default_loss(subject)
        kept = None
        if checkpoints is not None:
            data = [source.fingerprint() for source in (*sources, *([] if validation is None else [validation]))]
            kept = Checkpoint(checkpoints / digest([subject.fingerprint(), data, len(sources), how, measured])[:16])
        _Training(twin, sources, how, measured, validation, reporter).run(kept)
    return twin


def check_apart(sources: Sequence[Source], validation: Source | None) -> None:
    """Refuse to judge by what is trained on, copies and variations of it included.

    Samples of different splits may have the same id, such as the number of a row: so a few of them are looked at.
    """
    if validation is None:
        return
    for source in sources:
        used, original = getattr(source, "origins", source.ids), getattr(source, "original", source)
        both = sorted({*used} & {*validation.ids})[:_LOOKED_AT]
        if both and _alike(Subset.named(original, both), Subset.named(validation, both)):
            raise DataError(
                f"the sample {both[0]!r} and others are trained on and judged by: hold them out before samples are "
                "repeated or varied, see held_out"
            )


def _alike(one: Subset, other: Subset) -> bool:
    """Whether any two samples of the same name are equal."""
    there = torch.device("cpu")  # one may be kept on a GPU and the other not
    images = [
        dict(zip(each.ids, each.read(np.arange(len(each.ids))).to(there).inputs, strict=True)) for each in (one, other)
    ]
    return any(torch.equal(image, images[1][name]) for name, image in images[0].items())


def _by_own_function(
    twin: Subject, train: TrainFunction, sources: Sequence[Source], validation: Source | None, recipe: Recipe
) -> Subject:
    judged = None if validation is None else Batches(twin, [validation], recipe)
    model = twin.model
    made = train(model, Batches(twin, sources, recipe), validation=judged, recipe=recipe)
    trained = model if made is None else made
    if not isinstance(trained, nn.Module) or _shapes(trained) != _shapes(model):
        got = f"a {type(trained).__name__}" if not isinstance(trained, nn.Module) else "one with other weights"
        raise SubjectError(f"the training function returned {got}: expected the trained model, or nothing")
    trained.zero_grad(set_to_none=True)
    return twin.with_model(trained)


def _shapes(model: Any) -> dict[str, Any]:
    return {name: value.shape for name, value in model.state_dict().items()}


@dataclass(frozen=True)
class _Training:
    """One training: the twin's model, what it learns from, and how."""

    twin: Subject
    sources: Sequence[Source]
    recipe: Recipe
    loss: Loss
    validation: Source | None
    progress: Progress

    @property
    def model(self) -> nn.Module:
        assert isinstance(self.twin.model, nn.Module)
        return self.twin.model

    def run(self, kept: Checkpoint | None) -> None:
        """All epochs that are still to do, and the best weights at the end; training flags are left as they were."""
        modes = [(module, module.training) for module in self.model.modules()]
        optimiser = self._optimiser()
        training = TrainingProgress() if kept is None else kept.load(self.model, optimiser)
        total = sum(len(source.ids) for source in self.sources)
        self.progress.begin("retraining", total=self.recipe.epochs * total, done=training.epochs * total)
        try:
            while training.epochs < self.recipe.epochs and not training.over(self.recipe.patience):
                self._epoch(training.epochs, optimiser)
                training.note(self.model, self._validation_loss())
                if kept is not None:
                    kept.save(training, self.model, optimiser)
        finally:
            self.progress.end()
            optimiser.zero_grad(set_to_none=True)
            for module, mode in modes:
                module.training = mode
        if training.best is not None:
            self.model.load_state_dict(training.best)

    def _optimiser(self) -> torch.optim.SGD:
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if not parameters:
            raise SubjectError("no parameter of the model can be trained: set requires_grad on those that should be")
        how = self.recipe
        return torch.optim.SGD(parameters, how.learning_rate, momentum=how.momentum, weight_decay=how.weight_decay)

    def _epoch(self, number: int, optimiser: torch.optim.Optimizer) -> None:
        """Once over all data; what is drawn depends on seed and epoch alone, so that training can resume."""
        torch.manual_seed(int(np.random.SeedSequence([self.recipe.seed, number]).generate_state(1)[0]))
        self.model.train()
        rng = np.random.default_rng([self.recipe.seed, number])
        for batch in shuffled(self.sources, self.recipe.batch_size, rng, device=self.twin.device):
            loss = self._loss(batch)
            if not torch.isfinite(loss):
                raise SubjectError(
                    f"the loss is {loss.item()} in epoch {number + 1}: the training diverges; lower the learning rate"
                )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            self.progress.advance(len(batch))

    def _loss(self, batch: Batch) -> Tensor:
        there = batch.to(self.twin.device)
        return self.loss(self.twin.forward(there.inputs), there.known_targets)

    @torch.no_grad()
    def _validation_loss(self) -> float | None:
        """Mean over the samples, in evaluation mode."""
        if self.validation is None:
            return None
        self.model.eval()
        count = len(self.validation.ids)
        batches = map(self.validation.read, np.array_split(np.arange(count), -(-count // self.recipe.batch_size)))
        return sum(float(self._loss(batch)) * len(batch) for batch in batches) / count


def shuffled(
    sources: Sequence[Source], batch_size: int, rng: np.random.Generator, *, device: torch.device | None = None
) -> Iterator[Batch]:
    """All samples of all sources once, in random order; a batch may hold samples of several.

    device: where the batches go, already while they are read; by default the processor's memory.
    """
    to = torch.device("cpu") if device is None else device
    places = np.concatenate([np.full(len(source.ids), i) for i, source in enumerate(sources)])
    within = np.concatenate([np.arange(len(source.ids)) for source in sources])

    def read(chosen: np.ndarray) -> Batch:
        parts = [sources[i].read(within[chosen[places[chosen] == i]]).to(to) for i in np.unique(places[chosen])]
        alike = parts[0].known_targets.shape[1:]  # one number per sample may stand as (samples,) or (samples, 1)
        return Batch(
            ids=tuple(name for part in parts for name in part.ids),
            positions=np.concatenate([part.positions for part in parts]),
            inputs=torch.cat([part.inputs for part in parts]),
            targets=torch.cat([part.known_targets.reshape(len(part), *alike) for part in parts]),
        )

    order = rng.permutation(len(places))
    yield from read_ahead(read, [order[chunk] for chunk in _chunks(len(order), batch_size)], _READERS)


def _chunks(count: int, size: int) -> list[slice]:
    """Slices of at most `size`, and one more where a single sample would be left: batch norm cannot learn from one."""
    starts = list(range(0, count, size))
    if len(starts) > 1 and count - starts[-1] == 1:
        starts.pop()
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], count], strict=True)]


def _squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.mse_loss(outputs, targets.to(outputs.dtype).reshape(outputs.shape))


def default_loss(subject: Subject) -> Loss:
    """The usual loss of a task, on logits where the outputs are classes or labels."""
    losses: dict[Task, Loss] = {
        "classification": F.cross_entropy,
        "segmentation": F.cross_entropy,
        "multilabel": lambda outputs, targets: F.binary_cross_entropy_with_logits(outputs, targets.to(outputs.dtype)),
        "regression": _squared_error,
        "keypoints": _squared_error,
    }
    if subject.task in ("classification", "segmentation", "multilabel") and subject.scores != "logits":
        raise SubjectError(
            f"the usual loss of a {subject.task} model works on logits: give the subject scores='logits', or a loss= "
            "of your own"
        )
    return losses[subject.task]
