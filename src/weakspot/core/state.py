"""The state of a probe, declared with how two halves of it merge. There is no mean: keep a sum and a count."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from weakspot.core.errors import ProbeError

if TYPE_CHECKING:
    from weakspot.core.probe import Probe


class State:
    """A tensor of a probe that merges with the same tensor of another part of the data.

    It begins as a single number, the identity of the merge, which broadcasts against whatever comes first: so merging
    with a probe that saw nothing changes nothing. Integers are kept in 64 bits, and so are floats.
    """

    identity: ClassVar[float | int | bool]

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, probe: "Probe | None", owner: type | None = None) -> Tensor:
        if probe is None:
            return self  # type: ignore[return-value]  # read on the class, the declaration itself
        if self._name not in probe.__dict__:
            wide = torch.float64 if isinstance(self.identity, float) else None  # 32 bits would round whole numbers
            probe.__dict__[self._name] = torch.tensor(self.identity, dtype=wide)
        return probe.__dict__[self._name]  # type: ignore[no-any-return]

    def __set__(self, probe: "Probe", value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ProbeError(f"{type(probe).__name__}.{self._name} is a state: give it a tensor, not {type(value)}")
        wide = torch.float64 if value.is_floating_point() else value.dtype if value.dtype == torch.bool else torch.int64
        probe.__dict__[self._name] = value.detach().to(wide)

    @staticmethod
    def merge(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The state of both parts together."""
        raise TypeError("use Sum, Min, Max or LogicalOr")


class Sum(State):
    """Adds up."""

    identity = 0

    @staticmethod
    def merge(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """first + second; whole numbers in 64 bits."""
        whole = first.dtype.kind == "i" and second.dtype.kind == "i"
        return np.asarray(np.add(first, second, dtype=np.int64 if whole else None))


class Min(State):
    """Keeps the smallest."""

    identity = float("inf")

    @staticmethod
    def merge(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The smaller, element by element."""
        return np.asarray(np.minimum(first, second))


class Max(State):
    """Keeps the largest."""

    identity = float("-inf")

    @staticmethod
    def merge(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The larger, element by element."""
        return np.asarray(np.maximum(first, second))


class LogicalOr(State):
    """True once it was true."""

    identity = False

    @staticmethod
    def merge(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """First or second."""
        return np.asarray(np.logical_or(first, second))


def narrowed(values: Tensor) -> Tensor:
    """Whole numbers in the smallest type that holds them: counts over a part of the data are small, and there are many.

    >>> narrowed(torch.tensor([0, 200])).dtype, narrowed(torch.tensor([0, 100])).dtype
    (torch.int16, torch.int8)
    """
    if values.dtype != torch.int64 or not values.numel():
        return values
    low, high = (int(end) for end in torch.aminmax(values))
    types = (torch.int8, torch.int16, torch.int32)
    return values.to(next((t for t in types if torch.iinfo(t).min <= low and high <= torch.iinfo(t).max), torch.int64))


def declared(probe: "type[Probe]") -> dict[str, State]:
    """The states a probe declares, by name."""
    return {
        name: item for base in reversed(probe.__mro__) for name, item in vars(base).items() if isinstance(item, State)
    }


def merge_states(
    probe: "type[Probe]", first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """The state of two parts of the data together."""
    return {name: state.merge(first[name], second[name]) for name, state in declared(probe).items()}
