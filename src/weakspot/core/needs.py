"""What a probe needs: which looks, which values from inside the model, which relevance."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from torch import Tensor, nn

from weakspot.core.layers import Point
from weakspot.core.look import Forward, Look, Original
from weakspot.core.taps import Tap
from weakspot.core.tasks import Task

Where = Literal["all", "correct", "incorrect"]


@dataclass(frozen=True)
class RelevanceRequest:
    """One batch whose relevance is wanted.

    points: where.
    rows: says, of the outputs, which samples are wanted, and the others get zeros; by default all are.
    targets: the labels, where the data have them.
    """

    model: nn.Module
    forward: Forward
    inputs: Tensor
    points: Sequence[Point]
    rows: Callable[[Tensor], Tensor] | None
    task: Task
    targets: Tensor | None = None


class Attributed(NamedTuple):
    """What an attribution gives: outputs, relevance at each point, and what each sample's relevance began with.

    start: shape (samples,), where relevance is meant to be conserved; None where that is not asked of the method.
    """

    outputs: Tensor
    relevance: Sequence[Tensor]
    start: Tensor | None = None


@dataclass(frozen=True)
class Attribution(ABC):
    """Which neurons an output rests on: the interface of relevance. The methods are in `weakspot.relevance`.

    tap: the layers whose values get relevance.
    where: for all samples, or only for those that are predicted correctly or incorrectly.
    """

    tap: Tap
    where: Where = "all"

    @abstractmethod
    def attribute(self, request: RelevanceRequest) -> tuple[Tensor, Sequence[Tensor]] | Attributed:
        """The outputs of one forward pass, and the relevance at each point in the shape of its values."""


@dataclass(frozen=True)
class Needs:
    """The looks, with how many of each; the taps, taken at each of them; one attribution."""

    looks: Mapping[Look, int] = field(default_factory=lambda: {Original(): 1})
    taps: tuple[Tap, ...] = ()
    attribution: Attribution | None = None
