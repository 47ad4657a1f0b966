"""Several data sets as one: the original samples together with attacked ones."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError
from weakspot.core.observation import Batch
from weakspot.core.source import Source

SET = "set"
"""The column that says which set a sample is of."""


class Together:
    """Sets one after another, for instance U_O + U_S: `Together({"original": test, "noise": noisy})`.

    An id is the set's name, a slash, and the sample's id there. The metadata are the columns that all sets have, and
    `set`. All sets must have targets, or none.
    """

    def __init__(self, sets: Mapping[str, Source]):
        if not sets:
            raise ConfigError("sets to put together: expected one or more, got none")
        self._names, self._sources = tuple(sets), tuple(sets.values())
        self._starts = np.cumsum([0, *(len(source.ids) for source in self._sources)])
        self.ids: Sequence[str] = tuple(f"{name}/{sample}" for name, source in sets.items() for sample in source.ids)
        self._opened = False

    def fingerprint(self) -> str:
        """Of all sets and their names."""
        return digest([[name, source.fingerprint()] for name, source in zip(self._names, self._sources, strict=True)])

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places, of whichever sets they are."""
        self._open()
        positions = np.asarray(positions)
        owners = np.searchsorted(self._starts, positions, side="right") - 1
        rows = [np.flatnonzero(owners == owner) for owner in np.unique(owners)]
        parts = [self._read_of(int(owners[chosen[0]]), positions[chosen]) for chosen in rows]
        back = np.argsort(np.concatenate(rows), kind="stable")
        order = torch.from_numpy(back)
        common = set.intersection(*(set(part.metadata or {}) for part in parts))
        metadata = {name: np.concatenate([(part.metadata or {})[name] for part in parts])[back] for name in common}
        targets = None if parts[0].targets is None else torch.cat([part.known_targets for part in parts])[order]
        return Batch(
            ids=tuple(self.ids[position] for position in positions),
            positions=positions,
            inputs=torch.cat([part.inputs for part in parts])[order],
            targets=targets,
            metadata={**metadata, SET: np.array([self._names[owner] for owner in owners])},
        )

    def _read_of(self, owner: int, positions: np.ndarray) -> Batch:
        return self._sources[owner].read(positions - self._starts[owner])

    def _open(self) -> None:
        """Read one sample of every set first: a set that is made when it is first read must not be made later, when
        the model is being watched.
        """
        if not self._opened:
            for source in self._sources:
                source.read(np.arange(1))
            self._opened = True
