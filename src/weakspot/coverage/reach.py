"""Which targets each input reaches, read from rows on disk a block at a time: for whatever compares inputs."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weakspot.core.errors import DataError

Places = NDArray[np.int64]
Entries = tuple[NDArray[np.int64], NDArray[np.int64]]

_BLOCK_BYTES = 8 << 20


class Reach(ABC):
    """The targets that each of some inputs reaches.

    inputs: how many inputs there are. targets: how many targets. width: entries of one input, at most.
    """

    inputs: int
    targets: int
    width: int

    @abstractmethod
    def entries(self, places: Places) -> Entries:
        """Every target that the inputs at these places reach: positions within `places`, and the targets' numbers."""

    def blocks(self) -> Iterator[Places]:
        """All inputs, as many at a time as a few megabytes hold."""
        step = max(1, _BLOCK_BYTES // (16 * max(1, self.width)))
        return (np.arange(i, min(i + step, self.inputs)) for i in range(0, self.inputs, step))

    def counts(self) -> NDArray[np.int64]:
        """How many inputs reach each target."""
        total = np.zeros(self.targets, dtype=np.int64)
        for places in self.blocks():
            total += np.bincount(self.entries(places)[1], minlength=self.targets)
        return total

    def new(self, places: Places, covered: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many targets that are not covered yet each of the inputs at these places reaches."""
        row, target = self.entries(places)
        return np.bincount(row[~covered[target]], minlength=len(places))

    def covered_by(self, places: Places) -> int:
        """How many targets the inputs at these places reach together."""
        reached = np.zeros(self.targets, dtype=np.bool_)
        reached[self.entries(places)[1]] = True
        return int(np.count_nonzero(reached))

    def shares(self) -> NDArray[np.float64]:
        """What each input contributes to the coverage of all, its Shapley value: Σ 1/(inputs that reach t) over its t.

        Averaged over all orders of the inputs, an input is the first to reach its target t with chance 1/count(t). The
        shares add up to the number of covered targets.
        """
        counts = np.maximum(self.counts(), 1)
        share = np.empty(self.inputs)
        for places in self.blocks():
            row, target = self.entries(places)
            share[places] = np.bincount(row, 1 / counts[target], minlength=len(places))
        return share


@dataclass(frozen=True)
class Bits(Reach):
    """Targets as bits, packed with `numpy.packbits`: inputs × ceil(targets/8), uint8.

    >>> Bits.of(np.array([[True, False, True], [False, False, True]])).counts().tolist()
    [1, 0, 2]
    """

    packed: NDArray[np.uint8]
    targets: int

    @classmethod
    def of(cls, bits: NDArray[np.bool_]) -> "Bits":
        """From a plain matrix, inputs × targets."""
        if bits.ndim != 2 or bits.dtype != np.bool_:
            raise DataError(f"expected a boolean matrix (inputs × targets), got {bits.dtype} of shape {bits.shape}")
        return cls(np.packbits(bits, axis=1), bits.shape[1])

    @property
    def inputs(self) -> int:  # type: ignore[override]
        """How many inputs there are."""
        return len(self.packed)

    @property
    def width(self) -> int:  # type: ignore[override]
        """Every bit may be set."""
        return self.targets

    def entries(self, places: Places) -> Entries:
        """The places of the bits that are set."""
        row, target = np.nonzero(np.unpackbits(self.packed[places], axis=1, count=self.targets))
        return row, target

    def new(self, places: Places, covered: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Counted in bytes, without unpacking."""
        left = self.packed[places] & np.packbits(~covered)
        counted: NDArray[np.int64] = np.bitwise_count(left).sum(axis=1, dtype=np.int64)
        return counted

    def covered_by(self, places: Places) -> int:
        """Counted in bytes, without unpacking."""
        return int(np.bitwise_count(np.bitwise_or.reduce(self.packed[places], axis=0)).sum())


@dataclass(frozen=True)
class Cells(Reach):
    """One cell of each neuron, inputs × neurons; `target` says which target of its neuron a cell is, −1 for none.

    The targets of a neuron lie side by side.

    >>> Cells(np.array([[0, 2], [1, 3]]), np.array([-1, 0, 1, -1])).counts().tolist()
    [1, 0, 0, 1]
    """

    numbers: NDArray[np.integer]
    target: NDArray[np.int64]

    @property
    def inputs(self) -> int:  # type: ignore[override]
        """How many inputs there are."""
        return len(self.numbers)

    @property
    def width(self) -> int:  # type: ignore[override]
        """One cell of each neuron."""
        return int(self.numbers.shape[1])

    @property
    def targets(self) -> int:  # type: ignore[override]
        """All neurons' targets."""
        return self.width * self._each

    @property
    def _each(self) -> int:
        return int(self.target.max()) + 1

    def entries(self, places: Places) -> Entries:
        """The cells that are targets."""
        own = self.target[self.numbers[places]]
        row, neuron = np.nonzero(own >= 0)
        return row, neuron * self._each + own[row, neuron]


def one_each(values: NDArray[np.generic]) -> Cells:
    """One target per input: equal values (rows, where there are several columns) are the same target.

    >>> one_each(np.array([7, 5, 7])).counts().tolist()
    [1, 2]
    """
    whole = np.ascontiguousarray(values).reshape(len(values), -1)
    different, number = np.unique(whole, axis=0, return_inverse=True)
    return Cells(number.reshape(-1, 1), np.arange(len(different)))
