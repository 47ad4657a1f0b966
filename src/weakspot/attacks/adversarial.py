"""Looks at inputs that attacks have changed: one look for each attack, strongest demands last."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weakspot.attacks.attack import Attack, Case, required_bounds
from weakspot.attacks.goals import Goal
from weakspot.attacks.making import check_within
from weakspot.core.errors import ProbeError
from weakspot.core.look import Forward, Look
from weakspot.core.observation import Batch
from weakspot.core.subject import Subject


@dataclass(frozen=True)
class Adversarial(Look):
    """Look n is at what the n-th attack makes of each sample to lead it away from its target.

    A probe that releases the samples that are predicted incorrectly has each attack work on what the ones before left.
    """

    attacks: tuple[Attack, ...]
    seed: int = 0

    def outputs(self, forward: Forward, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """Not without targets."""
        raise ProbeError("an attack must know the targets: it is looked at in an examination")

    def outputs_of(self, subject: Subject, forward: Forward, batch: Batch, number: int) -> Tensor:
        """Forward of the changed inputs."""
        attack = self.attacks[number - 1]
        attack.check(subject)
        check_within(batch, required_bounds(subject))
        case = Case(subject, forward, batch.inputs, batch.ids, Goal(batch.known_targets), self.seed)
        changed = attack.change(case).detach()
        with torch.no_grad():
            return forward(changed)
