"""What an attack wants of each sample, and whether it got it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.stateless_random import draw_keys, uniform
from weakspot.core.tasks import Scores, Task, correct, predicted

Toward = Literal["random", "least_likely", "runner_up"] | int
Against = Literal["target", "prediction"]
_CLASS = 2
"""The place in the draw of a random class."""


@dataclass(frozen=True)
class Goal:
    """Another prediction than `answers`, or (`targeted`) just that."""

    answers: Tensor
    targeted: bool = False

    def reached(self, outputs: Tensor, task: Task, scores: Scores | None) -> Tensor | None:
        """Which samples are predicted as the attack wants, boolean; None for tasks without classes."""
        if task not in ("classification", "multilabel"):
            return None
        return correct(outputs, self.answers, task, scores) == self.targeted


def away_from(outputs: Tensor, targets: Tensor | None, against: Against, task: Task, scores: Scores | None) -> Tensor:
    """What to lead away from: the targets, or the model's own predictions."""
    if against == "prediction":
        return predicted(outputs, task, scores)
    if targets is None:
        raise ConfigError(
            "the data have no targets to lead the model away from: add them, or attack its own predictions with "
            "against='prediction'"
        )
    return targets


def toward_classes(toward: Toward, outputs: Tensor, answers: Tensor, ids: Sequence[str], *, seed: int) -> Tensor:
    """The wanted class of each sample, never the one to leave unless a number says so; shape (samples,).

    "random": drawn from (seed, id) alone; "least_likely" (Kurakin et al. 2017) and "runner_up": by the outputs.
    """
    classes = outputs.shape[1]
    if isinstance(toward, int):
        if not 0 <= toward < classes:
            raise ConfigError(f"toward is class {toward}, but the model has the classes 0 … {classes - 1}")
        return torch.full_like(answers, toward)
    if toward == "random":
        chance = uniform(draw_keys(ids, seed, _CLASS), 1)[:, 0]
        ahead = 1 + np.floor(chance * (classes - 1)).astype(np.int64)
        return (answers + torch.from_numpy(ahead).to(answers)) % classes
    likely = toward == "runner_up"
    hidden = outputs.scatter(1, answers[:, None], -torch.inf if likely else torch.inf)
    return hidden.argmax(1) if likely else hidden.argmin(1)
