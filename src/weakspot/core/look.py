"""The interface of a look: one complete prediction for one sample, of the original or of something made from it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from weakspot.core.observation import Batch
    from weakspot.core.subject import Subject

Forward = Callable[[Tensor], Tensor]
"""From a batch of inputs, before pre-processing, to the chosen output tensor of the subject."""


@dataclass(frozen=True)
class Look(ABC):
    """A way to look at a sample. Frozen, so that two probes that ask for the same look share it.

    What a look draws must depend on its own options, the sample's id and the look's number alone (`core.draws`).
    """

    first: ClassVar[int] = 1
    plain: ClassVar[bool] = False
    """Whether the look does nothing with the forward but call it, so that a recorded pass may stand for it."""
    joint: ClassVar[bool] = False
    """Whether `several` looks share one forward pass, which suits a GPU that small batches leave idle."""

    @abstractmethod
    def outputs(self, forward: Forward, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """The subject's outputs for look `number` at these samples.

        A look may change the inputs (and undo that on spatial outputs), wrap the forward, or replace it.
        """

    def outputs_of(self, subject: "Subject", forward: Forward, batch: "Batch", number: int) -> Tensor:
        """`outputs` for a batch; a look that needs its targets, or more of the subject, overrides this."""
        return self.outputs(forward, batch.inputs, batch.ids, number)

    def several(self, forward: Forward, inputs: Tensor, ids: Sequence[str], numbers: Sequence[int]) -> Tensor:
        """The outputs of several looks, one look after another, (looks · samples, …); of `joint` ones in one pass."""
        return torch.cat([self.outputs(forward, inputs, ids, number) for number in numbers])

    def within(self, bounds: tuple[float, float] | None) -> "Look":
        """The same look, knowing the smallest and largest value of an input; one that makes use of them keeps them."""
        return self

    def numbers(self, count: int) -> range:
        """The numbers of the first `count` looks of this kind."""
        return range(self.first, self.first + count)


@dataclass(frozen=True)
class Original(Look):
    """The sample as it is; its number is 0."""

    first: ClassVar[int] = 0
    plain: ClassVar[bool] = True

    def outputs(self, forward: Forward, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """Forward of the unchanged inputs."""
        return forward(inputs)
