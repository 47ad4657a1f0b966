"""Attacks one batch: arguments of the attack, its results, and what they changed."""

import torch
from torch import Tensor

from weakspot.attacks.attack import Attack, Case, Directed, required_bounds
from weakspot.attacks.goals import Against, Goal, away_from, toward_classes
from weakspot.attacks.losses import logits_of, loss_of
from weakspot.attacks.outcome import distortion
from weakspot.core.errors import DataError
from weakspot.core.look import Forward
from weakspot.core.observation import Batch
from weakspot.core.subject import Subject


def attack_batch(
    subject: Subject, attack: Attack, batch: Batch, *, seed: int = 0, against: Against = "target"
) -> tuple[Tensor, dict[str, Tensor]]:
    """The changed inputs, and the columns of their `Outcome`, each (samples,). The model comes back as it was.

    The model runs with the inference options of the subject, but not compiled: batches shrink as samples are done.

    against: what to lead away from, the targets ("target") or the model's own predictions ("prediction").
    """
    attack.check(subject)
    with subject.borrowed():
        forward = subject.quick(compiled=False)
        here = batch.to(subject.device)
        _check_within(here, required_bounds(subject))
        with torch.no_grad():
            outputs = forward(here.inputs)
        goal = _goal(subject, attack, here, outputs, seed, against)
        changed = attack.change(Case(subject, forward, here.inputs, here.ids, goal, seed)).detach()
        with torch.no_grad():
            answered = _answered(subject, goal, outputs, forward(changed))
    return changed, {**answered, **distortion(here.inputs, changed)}


def _goal(subject: Subject, attack: Attack, batch: Batch, outputs: Tensor, seed: int, against: Against) -> Goal:
    answers = away_from(outputs, batch.targets, against, subject.task, subject.scores)
    if not isinstance(attack, Directed) or attack.toward is None:
        return Goal(answers)
    return Goal(toward_classes(attack.toward, outputs, answers, batch.ids, seed=seed), targeted=True)


def _answered(subject: Subject, goal: Goal, outputs: Tensor, after: Tensor) -> dict[str, Tensor]:
    """Before and after: whether the prediction is as the attack wants, or the loss for tasks without classes."""
    before, success = (goal.reached(some, subject.task, subject.scores) for some in (outputs, after))
    if before is not None and success is not None:
        return {"before": before, "success": success}
    loss = loss_of(subject.task)
    losses = (loss(_as_logits(subject, some), goal.answers).double() for some in (outputs, after))
    return dict(zip(("loss_before", "loss_after"), losses, strict=True))


def _as_logits(subject: Subject, outputs: Tensor) -> Tensor:
    already: Forward = lambda some: some  # noqa: E731
    return logits_of(already, subject.task, subject.scores)(outputs)


def _check_within(batch: Batch, bounds: tuple[float, float]) -> None:
    """What lies outside would be pulled in, and counted as a change that the attack made."""
    flat = batch.inputs.flatten(1)
    outside = ((flat < bounds[0]) | (flat > bounds[1]) | flat.isnan()).any(1)
    if outside.any():
        row = int(outside.nonzero()[0, 0])
        raise DataError(
            f"sample {batch.ids[row]!r} has values from {float(flat[row].min()):g} to {float(flat[row].max()):g}, "
            f"outside the subject's bounds {bounds}: give bounds that hold for all data, before pre-processing"
        )
