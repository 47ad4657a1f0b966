"""Samples read once and kept: a training reads every sample many times, and simulators and JPEG files are slow."""

import numpy as np
import torch

from weakspot.core.errors import DataError
from weakspot.core.observation import Batch
from weakspot.core.source import Source, groups_of

_AT_ONCE = 1024


class CachedSource:
    """All samples of a source in memory, on a GPU if chosen, for training there.

    source: read once, from the first sample to the last.
    device: where inputs and targets are kept.

    >>> from weakspot.data import digits
    >>> kept = CachedSource(digits.test())
    >>> kept.fingerprint() == digits.test().fingerprint()
    True
    """

    def __init__(self, source: Source, *, device: str | torch.device = "cpu"):
        self.ids, self._source, self.groups = source.ids, source, groups_of(source)
        count = len(self.ids)
        if not count:
            raise DataError("the data have no samples to keep")
        places = [np.arange(start, min(start + _AT_ONCE, count)) for start in range(0, count, _AT_ONCE)]
        read = [source.read(some).to(torch.device(device)) for some in places]
        self._inputs = torch.cat([batch.inputs for batch in read])
        self._targets = None if read[0].targets is None else torch.cat([batch.known_targets for batch in read])
        self._metadata = {
            name: np.concatenate([(batch.metadata or {})[name] for batch in read]) for name in read[0].metadata or {}
        }

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places."""
        places = np.asarray(positions)
        rows = torch.from_numpy(places).to(self._inputs.device)
        return Batch(
            ids=tuple(self.ids[index] for index in places),
            positions=places,
            inputs=self._inputs[rows],
            targets=None if self._targets is None else self._targets[rows],
            metadata={name: column[places] for name, column in self._metadata.items()} or None,
        )

    def fingerprint(self) -> str:
        """That of the source: the samples are the same."""
        return self._source.fingerprint()
