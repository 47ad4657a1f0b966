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

    inputs: how many inputs there are.
    targets: how many targets.
    width: entries of one input, at most.
    """

    inputs: int
    targets: int
    width: int

    @abstractmethod
    def entries(self, places: Places) -> Entries:
        """Every target that the inputs at these places reach: positions within `places`, and the targets' numbers."""

    @abstractmethod
    def covered_by(self, places: Places) -> int:
        """How many targets the inputs at these places reach together."""

    @abstractmethod
    def shares(self, places: Places) -> NDArray[np.float64]:
        """What each input contributes to the coverage of all at these places: Σ 1/(inputs that reach t) over its t.

        This is its Shapley value: averaged over all orders of the inputs, an input is the first to reach its target t
        with chance 1/count(t). The shares add up to the number of covered targets.
        """

    def blocks(self) -> Iterator[Places]:
        """All inputs, as many at a time as a few megabytes hold."""
        step = max(1, _BLOCK_BYTES // (16 * max(1, self.width)))
        return (np.arange(i, min(i + step, self.inputs)) for i in range(0, self.inputs, step))

    def new(self, places: Places, covered: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many targets that are not covered yet each of the inputs at these places reaches."""
        row, target = self.entries(places)
        return np.bincount(row[~covered[target]], minlength=len(places))


@dataclass(frozen=True)
class Bits(Reach):
    """Targets as bits, packed with `numpy.packbits`: inputs × ceil(targets/8), uint8.

    >>> bits = Bits.of(np.array([[True, False, True], [False, False, True]]))
    >>> bits.covered_by(np.array([0, 1])), bits.shares(np.array([0, 1])).tolist()
    (2, [1.5, 0.5])
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

    def shares(self, places: Places) -> NDArray[np.float64]:
        """A block of bytes at a time: counts of its bits, and what they contribute."""
        total = np.zeros(len(places))
        step = max(1, _BLOCK_BYTES // (64 * max(1, len(places))))
        for start in range(0, self.packed.shape[1], step):
            bits = np.unpackbits(self.packed[places, start : start + step], axis=1)
            counts = bits.sum(axis=0, dtype=np.int64)
            total += np.where(bits, 1 / np.maximum(counts, 1), 0.0).sum(axis=1)
        return total


@dataclass(frozen=True)
class Cells(Reach):
    """One cell of each neuron, inputs × neurons: numbers 1 … `each` are its targets, 0 and `each` + 1 are none.

    The targets of a neuron lie side by side.

    >>> cells = Cells(np.array([[0, 2], [1, 3]]), 2)
    >>> cells.covered_by(np.array([0, 1])), cells.shares(np.array([0, 1])).tolist()
    (2, [1.0, 1.0])
    """

    numbers: NDArray[np.integer]
    each: int

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
        return self.width * self.each

    def entries(self, places: Places) -> Entries:
        """The cells that are targets."""
        numbers = self.numbers[places].astype(np.int64)
        row, neuron = np.nonzero((numbers > 0) & (numbers <= self.each))
        return row, neuron * self.each + numbers[row, neuron] - 1

    def covered_by(self, places: Places) -> int:
        """Different numbers of each neuron: sorted, each is counted where it begins."""
        return sum(self._covered_in(block) for block in self._of_neurons(places, 2 * len(places)))

    def _covered_in(self, numbers: NDArray[np.integer]) -> int:
        """numbers: (inputs, neurons)."""
        ordered = np.ascontiguousarray(numbers.T)
        ordered.sort(axis=1)
        different = len(ordered) + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1])
        return int(different - (ordered[:, 0] == 0).sum() - (ordered[:, -1] == self.each + 1).sum())

    def shares(self, places: Places) -> NDArray[np.float64]:
        """Some neurons at a time: counts of their cells, and what they contribute."""
        total, cells = np.zeros(len(places)), self.each + 2
        for numbers in self._of_neurons(places, 8 * (len(places) + cells)):
            cell = numbers + np.arange(0, numbers.shape[1] * cells, cells)
            counts = np.bincount(cell.ravel(), minlength=numbers.shape[1] * cells)
            value = (1 / np.maximum(counts, 1)).reshape(-1, cells)
            value[:, [0, -1]] = 0
            total += value.ravel()[cell].sum(axis=1)
        return total

    def _of_neurons(self, places: Places, neuron_bytes: int) -> Iterator[NDArray[np.integer]]:
        """The numbers at these places, of as many neurons at a time as a few megabytes hold."""
        step = max(1, _BLOCK_BYTES // neuron_bytes)
        return (self.numbers[places, start : start + step] for start in range(0, self.width, step))


def one_each(values: NDArray[np.generic]) -> Cells:
    """One target per input: equal values (rows, where there are several columns) are the same target.

    >>> one_each(np.array([7, 5, 7])).shares(np.arange(3)).tolist()
    [0.5, 1.0, 0.5]
    """
    whole = np.ascontiguousarray(values).reshape(len(values), -1)
    different, number = np.unique(whole, axis=0, return_inverse=True)
    return Cells(number.reshape(-1, 1) + 1, len(different))
