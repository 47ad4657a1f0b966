"""Repeats images of rare root causes until all are as frequent: balance by bootstrap (Fahmy et al. 2021, step 6)."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from weakspot.core.digest import digest
from weakspot.core.errors import DataError
from weakspot.core.observation import Batch
from weakspot.core.source import Source


def balanced_places(clusters: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """Places of samples such that every cluster has as many as the largest: each member once, the rest drawn again.

    clusters: number of each sample's cluster, shape (samples,).
    seed: of the draws, which are with replacement.

    >>> places = balanced_places(np.array([1, 1, 1, 2]))
    >>> places.tolist()
    [0, 1, 2, 3, 3, 3]
    """
    if not len(clusters):
        raise DataError("there is nothing to balance: no sample is labelled")
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(clusters == number) for number in np.unique(clusters)]
    largest = max(map(len, members))
    return np.concatenate([[*some, *rng.choice(some, largest - len(some))] for some in members]).astype(np.int64)


def repeated_places(count: int, size: int, *, seed: int = 0) -> np.ndarray:
    """Places of samples, `size` in all and at least each once: the rest drawn again, with replacement.

    >>> sorted(set(repeated_places(3, 8).tolist())), len(repeated_places(3, 8))
    ([0, 1, 2], 8)
    """
    again = np.random.default_rng(seed).integers(count, size=max(0, size - count))
    return np.concatenate([np.arange(count), again])


class Repeated:
    """Samples of a source, some several times; the second copy of `a` has the id `a~2`.

    source: the samples.
    places: which of them, in order; a place may occur several times.
    """

    def __init__(self, source: Source, places: Sequence[int] | np.ndarray):
        self.original, self._places = source, np.asarray(places, dtype=np.int64)
        names = source.ids
        self.origins = tuple(names[index] for index in self._places)
        """The id of the sample that each one is a copy of."""
        met: Counter[str] = Counter()
        self.ids = tuple(_numbered(name, met) for name in self.origins)

    def read(self, positions: np.ndarray) -> Batch:
        """The copies at these places."""
        batch = self.original.read(self._places[positions])
        names = tuple(self.ids[position] for position in positions)
        return Batch(names, np.asarray(positions), batch.inputs, batch.targets, batch.metadata)

    def fingerprint(self) -> str:
        """Of the samples and of the choice."""
        return digest(["repeated", self.original.fingerprint(), self._places])


def _numbered(name: str, met: Counter[str]) -> str:
    met[name] += 1
    return name if met[name] == 1 else f"{name}~{met[name]}"


def balanced(source: Source, clusters: Mapping[str, int], *, seed: int = 0) -> Repeated:
    """The samples of a source, those of the smaller clusters several times, so that all clusters are as large.

    clusters: the root-cause cluster of every sample by its id; ids that the source does not have are not looked at.
    """
    lost = [name for name in source.ids if name not in clusters]
    if lost:
        raise DataError(f"{len(lost)} samples have no cluster, the first is {lost[0]!r}: balance those that have one")
    return Repeated(source, balanced_places(np.array([clusters[name] for name in source.ids]), seed=seed))
