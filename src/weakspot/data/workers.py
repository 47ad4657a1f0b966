"""Samples of a data set read by worker processes, as torch's `DataLoader` runs them."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from weakspot.core.errors import DataError
from weakspot.core.source import Turn


@dataclass(frozen=True)
class Failed:
    """In the place of a sample: what the data set raised."""

    reason: str
    error: Exception | None = None


def fetched(dataset: Any, position: int) -> Any:
    """A sample of a data set, or that it failed."""
    try:
        return dataset[position]
    except Exception as error:  # the user's code may raise anything
        return Failed(f"{type(error).__name__}: {error}", error)


class _Fetching:
    """The data set as the workers see it: one that never fails."""

    def __init__(self, dataset: Any):
        self._dataset = dataset

    def __getitem__(self, position: int) -> Any:
        return fetched(self._dataset, position)


class _Parts:
    """A batch sampler that gives out the places asked for last, a part for each worker."""

    def __init__(self, workers: int):
        self._workers = workers
        self.positions: Sequence[int] = ()

    def __iter__(self) -> Iterator[list[int]]:
        parts = np.array_split(np.asarray(self.positions, dtype=np.int64), self._workers)
        return iter([part.tolist() for part in parts if len(part)])


class WorkerProcesses:
    """Keeps worker processes that read samples; one call at a time, its places shared out among them.

    `options` are those of `DataLoader`: worker_init_fn, multiprocessing_context, timeout.
    """

    def __init__(self, dataset: Any, workers: int, **options: Any):
        self._lock, self._parts, self._made_of = Turn(), _Parts(workers), (dataset, workers, options)
        self._loader: DataLoader[Any] = DataLoader(
            _Fetching(dataset),  # type: ignore[arg-type]
            batch_sampler=self._parts,
            collate_fn=_packed,
            num_workers=workers,
            persistent_workers=True,
            generator=torch.Generator(),  # the user's own random numbers are left alone
            **options,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process there are other workers."""
        dataset, workers, options = self._made_of
        return partial(WorkerProcesses, dataset, workers, **options), ()

    def samples(self, positions: Sequence[int]) -> list[Any]:
        """The samples at these places, in order; `Failed` where there is none."""
        with self._lock:
            self._parts.positions = positions
            try:
                return [sample for part in self._loader for sample in pickle.loads(part)]
            except Exception as error:  # a worker that dies, a data set that cannot be sent to one
                raise DataError(f"the worker processes cannot read the data set: {error}; try 0 workers") from error


def _packed(samples: list[Any]) -> bytes:
    """Samples as bytes: tensors sent one by one would each take a file handle."""
    try:
        return pickle.dumps(samples)
    except Exception as error:  # whatever a sample or what it raised cannot do
        failed = Failed(f"it cannot be sent from its worker process: {type(error).__name__}: {error}")
        return pickle.dumps([_sendable(sample, failed) for sample in samples])


def _sendable(sample: Any, failed: Failed) -> Any:
    if isinstance(sample, Failed):
        return Failed(sample.reason)
    try:
        pickle.dumps(sample)
    except Exception:
        return failed
    return sample
