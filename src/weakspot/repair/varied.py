"""A training set of variations: some samples of a source, several times, each time varied in another way."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError
from weakspot.core.observation import Batch
from weakspot.core.source import Source


class Varying(Protocol):
    """What makes variations, such as `weakspot.looks.Neighbour`: a function of inputs, ids and a number."""

    def images(self, inputs: Tensor, ids: Sequence[str], number: int) -> Tensor:
        """Variation `number` of each of these samples."""


class VariedSource:
    """Samples of a source and their variations, with the targets of the originals: what to train on next.

    Targets that tell where things are, such as keypoints and masks, hold for variations alone that move nothing.

    source: the originals, such as the weak inputs.
    look: what varies them.
    copies: variations of each.
    first: number of the first variation; choose it beyond the looks that were examined, so that these stay unseen.
    """

    def __init__(self, source: Source, look: Varying, *, copies: int = 4, first: int = 1001):
        if copies < 1:
            raise ConfigError(f"expected at least one copy of each sample, got {copies}")
        self.original, self._look, self._copies, self._first = source, look, copies, first
        names = source.ids
        self.ids = tuple(f"{name}~{first + copy}" for name in names for copy in range(copies))
        self.origins = tuple(name for name in names for _ in range(copies))
        """The id of the sample that each one is a variation of."""

    def read(self, positions: np.ndarray) -> Batch:
        """The variations at these places."""
        places, copies = np.divmod(np.asarray(positions), self._copies)
        batch = self.original.read(places)
        varied = torch.empty_like(batch.inputs)
        for copy in np.unique(copies):
            rows = np.flatnonzero(copies == copy)
            ids = [batch.ids[row] for row in rows]
            varied[rows] = self._look.images(batch.inputs[rows], ids, int(self._first + copy))
        names = tuple(self.ids[position] for position in positions)
        return Batch(names, np.asarray(positions), varied, batch.targets, batch.metadata)

    def fingerprint(self) -> str:
        """Of the originals, and of how they are varied."""
        return digest([self.original.fingerprint(), self._look, self._copies, self._first])
