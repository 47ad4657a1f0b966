"""Samples from several networks: an ensemble as one model, and looks at one member after another.

Deep ensembles: Lakshminarayanan et al. 2017. nnU-Net's five folds are one (Isensee et al. 2021).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.core.look import Forward, Look


@dataclass
class MemberRequest:
    """Which member is to predict, counted from 0, and for which samples; `heard` is set by a model with members."""

    member: int
    ids: Sequence[str]
    heard: bool = field(default=False)

    def of(self, count: int) -> int:
        """The member's place, where there are `count` of them."""
        self.heard = True
        if self.member >= count:
            raise SubjectError(
                f"sample {self.member + 1} was asked for, and there are {count} members: ask for no more than that"
            )
        return self.member


_asked: ContextVar[MemberRequest | None] = ContextVar("weakspot_member", default=None)


def asked() -> MemberRequest | None:
    """The current request for one member's prediction; None outside of a `Members` look."""
    return _asked.get()


@contextmanager
def asking(member: int, ids: Sequence[str]) -> Iterator[MemberRequest]:
    """Request one member's prediction while the block runs."""
    question = MemberRequest(member, ids)
    token = _asked.set(question)
    try:
        yield question
    finally:
        _asked.reset(token)


@dataclass(frozen=True)
class Members(Look):
    """Look k is the prediction of member k alone: of an `Ensemble`, or of `StoredSamples`."""

    def outputs(self, forward: Forward, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """Forward of member `number`, counted from 1."""
        with asking(number - 1, ids) as question:
            outputs = forward(inputs)
        if not question.heard:
            raise SubjectError(
                "the model has no members, so its samples would all be equal: give the subject an Ensemble of networks "
                "(in a configuration: a list of weights) or StoredSamples, or sample by dropout or flips"
            )
        return outputs


class Ensemble(nn.Module):
    """Several networks for one task as one model: the mean of their outputs, or under `Members` one of them.

    members: networks that take the same inputs and give outputs of one shape.
    """

    def __init__(self, members: Iterable[nn.Module]):
        super().__init__()
        self.members = nn.ModuleList(members)
        if len(self.members) < 2:
            raise ConfigError(f"an ensemble has two members or more, got {len(self.members)}")

    def forward(self, inputs: Tensor) -> Any:
        """The member's outputs that is asked for, else the mean of all."""
        question = asked()
        if question is not None:
            return self.members[question.of(len(self.members))](inputs)
        total = self.members[0](inputs)
        if not isinstance(total, Tensor):
            raise SubjectError(
                f"the members give a {type(total).__name__}, and only tensors have a mean: sample them with Members, "
                "or let each give the tensor alone"
            )
        for member in self.members[1:]:
            total = total + member(inputs)
        return total / len(self.members)
